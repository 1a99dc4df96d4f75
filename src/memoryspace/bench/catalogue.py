"""The catalogue of experiments and benchmarks: each name's module is imported on demand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ..errors import InvalidInput
from .harness.benchmark import Benchmark
from .harness.experiment import Experiment

MODULES: Mapping[str, str] = {
    "capacity-sweep": "experiments.capacity_sweep",
    "hotpot": "experiments.hotpot",
    "long-context": "experiments.long_context",
    "tiered": "experiments.tiered",
    "gc-ablation": "experiments.gc_ablation",
    "locomo": "boards.locomo",
    "longmemeval": "boards.longmemeval",
    "beam": "boards.beam",
    "zh": "boards.zh",
    "system": "studies.system",
    "workloads": "studies.workloads",
    "crash": "studies.crash",
    "concurrency": "studies.concurrency",
    "stores": "studies.stores",
    "policies": "policies.policies",
    "compaction": "experiments.compaction",
    "tasks": "boards.tasks",
}

BENCHMARKS: Mapping[str, str] = {
    "kernel": "speed.kernel.benchmark",
    "working-memory": "speed.working_memory",
    "embedding-cache": "speed.embedding_cache",
    "service": "speed.service",
    "scale-postgres": "speed.scale_postgres",
    "service-postgres": "speed.service_postgres",
    "server-search": "speed.server_search",
    "compaction-speed": "speed.compaction",
    "agent-lifecycle": "speed.agent_lifecycle",
    "dense": "speed.dense",
    "recall-speed": "speed.recall_speed",
    "deriving-speed": "speed.deriving",
    "events": "speed.events",
    "restart": "speed.restart",
    "scale": "speed.scale",
    "startup": "speed.startup",
    "loop-blocking": "speed.loop_blocking",
    "import": "speed.moving",
    "door": "speed.door",
    "recall": "quality.recall",
    "service-recall": "quality.service_recall",
    "summaries": "quality.summaries",
    "lessons": "quality.lessons",
    "relevance": "quality.relevance",
    "token-estimate": "quality.token_estimate",
    "orders": "quality.orders",
    "secrets": "quality.secrets",
    "personal-rules": "quality.personal_rules",
}
_ENVIRONMENTS = {  # packages that ours are compared with, and how to install each in a checkout
    "agentscope": "make bench",
    "agentscope_runtime": "make bench-service",
}


def experiment(name: str) -> Experiment:
    """Return an experiment by name."""
    if name not in MODULES:
        there = ", ".join([*MODULES, *BENCHMARKS])
        raise InvalidInput(f"there is no experiment {name!r}; there are: {there}")
    found: Experiment = import_module(f".{MODULES[name]}", __package__).EXPERIMENT
    return found


def benchmark(name: str) -> Benchmark:
    """Return a benchmark by name; packages it compares with must be installed."""
    try:
        found: Benchmark = import_module(f".{BENCHMARKS[name]}", __package__).BENCHMARK
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        how = _ENVIRONMENTS.get(missing, f"pip install {missing}")
        raise InvalidInput(f"{name} needs {missing}, which is not installed: {how}") from error
    except ImportError as error:
        raise InvalidInput(f"{name} cannot be loaded: {error}") from error
    return found
