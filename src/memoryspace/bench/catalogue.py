"""Every experiment by name: the module that holds it as ``EXPERIMENT``, loaded when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ..errors import InvalidInput
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
}


def experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in MODULES:
        raise InvalidInput(f"there is no experiment {name!r}; there are: {', '.join(MODULES)}")
    found: Experiment = import_module(f".{MODULES[name]}", __package__).EXPERIMENT
    return found
