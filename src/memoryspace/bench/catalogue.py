"""Every experiment by name: the module that holds it as ``EXPERIMENT``, loaded when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ..errors import InvalidInput
from .experiment import Experiment

MODULES: Mapping[str, str] = {
    "capacity-sweep": "capacity_sweep",
    "hotpot": "hotpot",
    "long-context": "long_context",
    "tiered": "tiered",
    "gc-ablation": "gc_ablation",
    "locomo": "locomo",
    "longmemeval": "longmemeval",
    "beam": "beam",
    "zh": "zh",
    "system": "system",
    "workloads": "workloads",
    "crash": "crash",
    "concurrency": "concurrency",
    "stores": "stores",
    "policies": "policies",
    "compaction": "compaction",
    "tasks": "tasks",
}


def experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in MODULES:
        raise InvalidInput(f"there is no experiment {name!r}; there are: {', '.join(MODULES)}")
    found: Experiment = import_module(f".{MODULES[name]}", __package__).EXPERIMENT
    return found
