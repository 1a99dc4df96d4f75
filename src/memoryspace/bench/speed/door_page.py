"""The page of ``memoryspace bench door``: each memory's calls, beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, TypeAlias

from ..harness.benchmark import Grid, Raw
from .door_systems import SYSTEMS, Ours

SHOWN = 10  # results of a search
ADD_GOAL, SEARCH_GOAL = 5, 3  # times as fast as the others

Cells: TypeAlias = tuple[str, ...]

_TIMES = ("p50 ms", "p99 ms", "p50 without embedding", "CPU ms")
_ADD_HEAD = ("stored", "memory", *_TIMES, "until found ms", "ours is")
_SEARCH_HEAD = ("stored", "memory", *_TIMES, "any@10", "fraction@10", "MRR", "ours is")
_STORE_HEAD = ("stored", "memory", "filled in bulk", "opened and first search", "on disk")
_ADD_NOTE = (
    f"The goal is {ADD_GOAL} times as fast. Wall time of one call that adds one text; each is on "
    "disk when the call returns. CPU is that of the process until all is done, with what follows "
    "in the background: there ours embeds. “Until found” is the time for each add until all adds "
    "of a round, one after another, and what follows them are done. A search that comes first "
    "makes the vectors that are missing."
)
_STORE_NOTE = (
    "Filled by the fastest way that each has, in batches of 1,000; ours without deriving facts, "
    "mem0's vector store directly and without fsync, because its `add` has no batches. Then the "
    "store is closed, opened again in the same process, and searched once."
)
_KINDS_NOTE = "The fsyncs of an add were counted with strace, in a small store."


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return adds, searches and stores, each beside ours, and what the calls do."""
    kinds = tuple((each.name, each.an_add, each.a_search) for each in SYSTEMS.values())
    about = f"{_KINDS_NOTE} {_machine(raw)}{_missing(raw)}"
    return [
        Grid("Adding one memory", 2, _ADD_HEAD, _rows(raw, _add), _ADD_NOTE),
        Grid("Searching", 2, _SEARCH_HEAD, _rows(raw, _search), _search_note(raw)),
        Grid("The store", 2, _STORE_HEAD, _rows(raw, _store), _STORE_NOTE),
        Grid("What the calls do", 1, ("memory", "an add", "a search"), kinds, about),
    ]


def _rows(raw: Mapping[str, Any], row: Callable[[Raw, Raw | None], Cells]) -> tuple[Cells, ...]:
    return tuple(
        (f"{size['size']:,}", SYSTEMS[name].name, *row(found, size["systems"].get(Ours.package)))
        for size in raw["sizes"]
        for name, found in size["systems"].items()
    )


def _add(found: Raw, ours: Raw | None) -> Cells:
    return (*_times(found["add"]), f"{found['add']['settled']:.2f}", _ratio("add", found, ours))


def _search(found: Raw, ours: Raw | None) -> Cells:
    scores = (f"{found[name]:.3f}" for name in ("any", "fraction", "mrr"))
    return (*_times(found["search"]), *scores, _ratio("search", found, ours))


def _store(found: Raw, _: Raw | None) -> Cells:
    return f"{found['fill']:.1f} s", f"{found['reopen']:.2f} s", f"{found['disk_mb']:.0f} MB"


def _times(one: Raw) -> Cells:
    return tuple(f"{one[name]:.2f}" for name in ("p50", "p99", "bare_p50", "cpu"))


def _ratio(call: str, found: Raw, ours: Raw | None) -> str:
    """Return the median over the rounds of their time over ours."""
    if ours is None or found is ours:
        return ""
    pairs = zip(found[call]["rounds"], ours[call]["rounds"], strict=True)
    ratio = median(theirs / mine for theirs, mine in pairs)
    return f"{ratio:.1f}× as fast" if ratio >= 1 else f"{1 / ratio:.1f}× as slow"


def _search_note(raw: Mapping[str, Any]) -> str:
    asked = ", ".join(f"{each['asked']} at {each['size']:,}" for each in raw["sizes"])
    return (
        f"The goal is {SEARCH_GOAL} times as fast at 100,000, and better recall. Ten results; "
        f"warm; each question once. The same questions for all ({asked}), over the turns of all "
        f"conversations of {raw['texts']} as one user's, with its words in random order up to the "
        "size; at a size below its own, over its first turns. Texts are “speaker: text” for all; "
        "nobody is told when or by whom they were said."
    )


def _machine(raw: Mapping[str, Any]) -> str:
    loads = ", ".join(
        f"{each['load']:.1f} to {each['load_after']:.1f} at {each['size']:,}"
        for each in raw["sizes"]
    )
    return (
        f"The load of the machine was {loads}: where that is more than its cores, times are longer "
        "than they need be, and only the ratios count. All use one thread for linear algebra."
    )


def _missing(raw: Mapping[str, Any]) -> str:
    """Return which memories are not in the tables, and why if that is known."""
    left_out = raw["left_out"]
    return "".join(
        f" Not measured at {each['size']:,}: {SYSTEMS[name].name}"
        + (f" ({left_out[name]})." if name in left_out else ".")
        for each in raw["sizes"]
        for name in SYSTEMS
        if name not in each["systems"]
    )
