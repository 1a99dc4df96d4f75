"""The door's values as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..door.recalls import Recalls
from ..door.results import Collected, Diff, Stats, who_said
from ..retrieval.hits import Why, WhyNot
from ..service.values.kinds import SUPERSEDED
from ..service.values.memory import MemoryItem
from ..service.values.receipt import Receipt
from ..service.values.results import MemoryHit
from ..showing import day
from .screen import Fields, Grid

if TYPE_CHECKING:
    from ..care import Examination
    from ..service.values.review import Proposals

_MOST_SIGNALS = 5
_TIMES = ("since", "until", "time")  # in reports


def when(seconds: float | None) -> str:
    """Return a time to the second, in UTC; "" for none, or one that no calendar has."""
    if seconds is None:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def receipt_grid(receipt: Receipt) -> Grid:
    """Show what happened to every message that was added."""
    rows = []
    for each in receipt.ids:
        why = receipt.held_back.get(each, "")
        what = "held back" if why else "new" if each in receipt.new else "known"
        rows.append((what, each, why))
    return Grid(("", "id", "why"), rows, wide=("why",))


def memories_grid(memories: Iterable[MemoryItem]) -> Grid:
    """Show memories, each on a row."""
    rows = [
        (each.text, day(each.created_at), who_said(each), _note(each), each.id) for each in memories
    ]
    return Grid(("text", "when", "who", "note", "id"), rows)


def memory_fields(memory: MemoryItem) -> Fields:
    """Show all of a memory."""
    derived = () if memory.origin is None else memory.origin.derived_from
    fields = {
        "id": memory.id,
        "text": memory.text,
        "who": who_said(memory),
        "when": when(memory.created_at),
        "user": memory.user_id,
        "session": memory.session_id,
        "marks": ", ".join(sorted(memory.marks)),
        "metadata": str(dict(memory.metadata)) if memory.metadata else "",
        "importance": f"{memory.importance:g}",
        "version": str(memory.version),
        "true from": when(memory.valid_from),
        "true until": when(memory.valid_to),
        "expires": when(memory.expires_at),
        "derived from": ", ".join(derived),
    }
    return Fields({name: value for name, value in fields.items() if value})


def versions_grid(versions: Iterable[MemoryItem]) -> Grid:
    """Show the versions of a memory."""
    rows = [(str(each.version), each.text, when(each.updated_at)) for each in versions]
    return Grid(("version", "text", "changed"), rows)


def hits_grid(hits: Iterable[MemoryHit], *, explain: bool) -> Grid:
    """Show the hits of a search; with reasons if asked."""
    rows: list[tuple[str, ...]] = []
    for hit in hits:
        memory = hit.memory
        note = "" if hit.holds else "no longer true"
        row = (f"{hit.score:.2f}", memory.text, day(memory.created_at), who_said(memory), note)
        rows.append((*row, *((_reasons(hit),) if explain else ()), memory.id))
    heads = ("score", "text", "when", "who", "note", *(("why",) if explain else ()), "id")
    return Grid(heads, rows, wide=("text", "why"))


def quarantined_grid(memories: Iterable[MemoryItem]) -> Grid:
    """Show messages that are held back, with the reason."""
    rows = [
        (each.text, day(each.created_at), who_said(each), _short(each.details), each.id)
        for each in memories
    ]
    return Grid(("text", "when", "who", "why", "id"), rows, wide=("text", "why"))


def proposals_grid(page: Proposals) -> Grid:
    """Show what waits for approval."""
    rows = [
        (
            each.memory.text,
            "; ".join(source.text for source in each.sources),
            "; ".join(memory.text for memory in each.retires),
            each.memory.id,
        )
        for each in page.proposals
    ]
    heads = ("fact", "said", "instead of", "id")
    return Grid(heads, rows, wide=("fact", "said", "instead of"))


def examination_grid(examination: Examination) -> Grid:
    """Show what an examination found."""
    rows = [(each.level, each.check, each.what, each.advice) for each in examination.findings]
    return Grid(("", "check", "found", "what to do"), rows, wide=("found", "what to do"))


def why_not_fields(found: WhyNot) -> Fields:
    """Show why a memory is not found."""
    fields = {
        "reason": found.reason,
        "in words": found.detail,
        "rank": "" if found.rank is None else str(found.rank),
        "above it": ", ".join(found.by),
        "signals": "" if found.why is None else _signals(found.why),
    }
    return Fields({name: value for name, value in fields.items() if value})


def recalls_grid(recalls: Recalls) -> Grid:
    """Show the newest entries of a recall log."""
    rows = [
        (when(each.at), each.question, str(len(each.ids)), _used(each.used), each.id)
        for each in recalls.newest
    ]
    return Grid(("when", "question", "found", "used", "id"), rows, wide=("question",))


def stats_fields(stats: Stats) -> Fields:
    """Show the figures of a memory."""
    fields: dict[str, Any] = {
        "address": stats.address,
        "backend": stats.backend,
        "durable": {True: "yes", False: "no", None: "as the server is set up"}[stats.is_durable],
        "embedder": stats.embedder or "none: searches go by words alone",
        "search": stats.search,
        "version": stats.version,
        "space": "" if stats.space is None else _pairs(stats.space),
        "user": stats.user or "",
    }
    if stats.user is not None:
        fields |= {
            "memories": str(stats.memories),
            "facts": str(stats.facts),
            "held back": str(stats.quarantined),
        }
    if stats.usage is not None:
        fields["stored"] = _pairs(stats.usage.to_dict())
    if stats.status is not None:
        pending, failed = stats.status.pending, stats.status.failed
        fields["derivations"] = f"{pending} pending, {failed} failed"
    return Fields({name: value for name, value in fields.items() if value})


def diff_grid(changes: Diff) -> Grid:
    """Show what changed between two moments."""
    rows = [
        (each.what, each.user, each.before or "", each.after or "", each.id) for each in changes
    ]
    return Grid(("what", "user", "before", "after", "id"), rows, wide=("before", "after"))


def garbage_grid(collected: Collected) -> Grid:
    """Show what a collection would free."""
    rows = [(each.id, each.reason, each.collector, str(each.size)) for each in collected.garbage]
    return Grid(("id", "reason", "collector", "bytes"), rows, wide=("reason",))


def fields_of(data: dict[str, Any]) -> Fields:
    """Show a report whose names speak for themselves."""
    fields = {
        name.replace("_", " "): when(value) if name in _TIMES else _short(value)
        for name, value in data.items()
    }
    return Fields({name: value for name, value in fields.items() if value})


def _note(memory: MemoryItem) -> str:
    return "no longer true" if SUPERSEDED in memory.marks else ""


def _reasons(hit: MemoryHit) -> str:
    facts = [f"known: {each.text}" for each in hit.facts if each.valid_to is None]
    signals = [] if hit.why is None else [_signals(hit.why)]
    likeness = None if hit.why is None else hit.why.likeness
    alike = [] if likeness is None else [f"likeness {likeness:.2f}"]
    return "; ".join((*signals, *alike, *facts))


def _signals(why: Why) -> str:
    strongest = sorted(why.signals.items(), key=lambda item: -abs(item[1]))[:_MOST_SIGNALS]
    return ", ".join(f"{name} {worth:+.2f}" for name, worth in strongest)


def _used(ids: Sequence[str] | None) -> str:
    return "not told" if ids is None else str(len(ids))


def _pairs(figures: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in figures.items())


def _short(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
