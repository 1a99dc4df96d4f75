"""Every compared system by name, created for a budget and a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..harness.experiment import Cell, Parameter, integer
from .baselines import SampleMemory, SlidingMemory, WordCounts
from .managed import UNBOUNDED, Memory, TieredMemory, managed, uncollected
from .peers import LangChainMemory, Mem0Memory, RuntimeMemory

QUICK = ("manager", "tiered", "no-gc", "sliding", "reservoir", "bag-of-words", "unbounded")

Make = Callable[[int, int], Memory]  # budget in bytes, seed


@dataclass(frozen=True)
class System:
    """How to create a system, and whether the budget bounds it."""

    about: str
    make: Make
    bounded: bool = True


SYSTEMS: Mapping[str, System] = {
    "manager": System(
        "MemoryManager; what was not used for longest goes", lambda budget, _: managed(budget)
    ),
    "manager-newest": System(
        "MemoryManager; the oldest goes", lambda budget, _: managed(budget, keep="newest")
    ),
    "tiered": System(
        "TieredMemoryManager; the budget is its hot tier, the rest is on disk",
        lambda budget, _: TieredMemory(budget),
    ),
    "no-gc": System(
        "MemoryManager without collectors; full, it takes nothing more",
        lambda budget, _: uncollected(budget),
    ),
    "sliding": System(
        "the newest texts, same index as ours", lambda budget, _: SlidingMemory(budget)
    ),
    "reservoir": System("a fair sample of all texts, same index as ours", SampleMemory),
    "bag-of-words": System(
        "the prototype's retriever over the newest texts",
        lambda budget, _: SlidingMemory(budget, WordCounts()),
    ),
    "langchain": System(
        "LangChain InMemoryVectorStore over the newest texts",
        lambda budget, _: LangChainMemory(budget),
    ),
    "mem0": System(
        "mem0, infer=False, over the newest texts", lambda budget, _: Mem0Memory(budget)
    ),
    "agentscope-runtime": System(
        "agentscope-runtime InMemoryMemoryService over the newest texts",
        lambda budget, _: RuntimeMemory(budget),
    ),
    "unbounded": System(
        "MemoryManager with room for everything: the most that words can find",
        lambda budget, _: managed(UNBOUNDED),
        bounded=False,
    ),
}


def open_system(cell: Cell) -> tuple[Memory, int | None]:
    """Create the system of a cell; return it with its budget, if it has one."""
    system, budget = SYSTEMS[str(cell["system"])], integer(cell, "capacity")
    return system.make(budget, integer(cell, "seed")), budget if system.bounded else None


def system_cells(
    kept: Mapping[str, Parameter], systems: Sequence[str], budgets: Sequence[int]
) -> list[dict[str, Parameter]]:
    """Return a cell for each system and budget, and one for each unbounded system."""
    return [
        {**kept, "system": name, "capacity": budget}
        for name in systems
        for budget in (budgets if SYSTEMS[name].bounded else budgets[-1:])
    ]
