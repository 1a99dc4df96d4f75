"""Tables and claims that the fair settings share."""

from __future__ import annotations

from collections.abc import Callable

from ..harness.experiment import Claim, Table
from ..harness.findings import Findings, NotMeasured

FAIR = {"setting": "fair"}
_COSTS = ("kept", "store_us", "retrieve_us")
_USED = ("bytes_peak", "resident_bytes", "index_bytes", "disk_bytes", "kept")
_VECTORS = (
    "langchain and mem0 search by vectors, which our static embedder (WordLlama) makes for them; "
    "all others search by words."
)
_USED_NOTE = (
    "bytes_peak is what the budget bounds: the UTF-8 of the texts that are held, and for the "
    "tiered manager the bytes of its hot tier. resident_bytes is everything in memory at the end, "
    "of which index_bytes are the index, where it can be told apart; disk_bytes are files. "
    "Nobody bounds the last three."
)


def compared(title: str, figures: tuple[str, ...]) -> Table:
    """Return the table of all systems by budget, with the cost of a store and a search."""
    return Table(title, FAIR, ("n", *figures, *_COSTS), ("system", "capacity"), note=_VECTORS)


def really_used(*by: str) -> Table:
    """Return the table of what each system takes besides its budget."""
    grouped = by if by else ("system", "capacity")
    return Table("Fair: what each system really uses", FAIR, _USED, grouped, note=_USED_NOTE)


def by_age(title: str, figures: tuple[str, ...]) -> Table:
    """Return the table of all systems by the age of the queried text."""
    return Table(title, FAIR, ("n", *figures), ("system", "capacity", "age"), parts="age")


def tiered_finds_all(figure: str) -> Claim:
    """Claim that the tiered manager finds what an unbounded one finds."""

    def holds(found: Findings) -> bool:
        most = found.mean(figure, {**FAIR, "system": "unbounded"})
        tiered = found.where({**FAIR, "system": "tiered"})
        return bool(tiered) and all(group.figures[figure].mean >= most for group in tiered)

    return Claim("fair: the tiered manager finds as much as one with room for all", holds)


def as_good_as(system: str, other: str, figure: str) -> Callable[[Findings], bool]:
    """Return whether a system finds as much as another one, at every budget."""

    def holds(found: Findings) -> bool:
        ours = found.where({**FAIR, "system": system})
        if not ours:
            raise NotMeasured(f"{system} was not run")
        return all(
            group.figures[figure].mean >= found.mean(figure, {**group.cell, "system": other})
            for group in ours
        )

    return holds
