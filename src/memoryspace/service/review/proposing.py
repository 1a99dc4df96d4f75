"""Proposals: how a job's decisions are executed if what it derives must be approved.

A proposal is stored like any derived memory, but waits. What it would supersede is only recorded in
it (see ``lineage``). What was rejected before is left out of the plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace as change

from ...record import Origin, is_number
from ..values.envelope import sources_of
from ..values.kinds import (
    DECIDED,
    RETIRED_BY,
    RETIRES,
    SOURCE_VERSIONS,
    SUPERSEDED,
    SUPERSEDED_BY,
)
from ..values.memory import WAITING, MemoryItem
from .lineage import Lineage, Links, closure, links_in
from .rejections import Rejection, claims_of, is_rejected

Decision = Mapping[str, Any]


def admissible(
    plan: Sequence[Decision], sources: Mapping[str, Sequence[str]], rejections: Sequence[Rejection]
) -> list[Decision]:
    """Return a plan without what was rejected before, and without what builds on that.

    ``sources`` are those of the drafts, by id. If a memory that builds on something rejected is
    left out, the memories it was to replace are not dropped either.
    """
    out: set[str] = set()
    for draft in _drafts(plan):
        claims = claims_of(draft["kind"], draft["text"], draft.get("details", {}))
        builds_on = out.intersection(sources[draft["id"]])
        if builds_on or is_rejected(claims, sources[draft["id"]], rejections):
            out.add(draft["id"])
    if not out:
        return list(plan)
    is_built_on = any(out.intersection(sources[each]) for each in out)
    return [
        _unended(each, out)
        for each in plan
        if ("draft" not in each or each["draft"]["id"] not in out)
        and not (is_built_on and each["do"] == "drop")
    ]


def _drafts(plan: Sequence[Decision]) -> Iterable[Mapping[str, Any]]:
    return (each["draft"] for each in plan if "draft" in each)


def _unended(decision: Decision, out: Collection[str]) -> Decision:
    """Return a decision whose draft is not superseded by a draft that was left out."""
    draft = decision.get("draft")
    if draft is None or draft.get("details", {}).get(SUPERSEDED_BY) not in out:
        return decision
    details = {key: value for key, value in draft["details"].items() if key != SUPERSEDED_BY}
    marks = [each for each in draft["marks"] if each != SUPERSEDED]
    return {**decision, "draft": {**draft, "details": details, "marks": marks, "valid_to": None}}


def supersessions(plan: Sequence[Decision], drafts: Iterable[str]) -> dict[str, Links]:
    """Return which stored memories these drafts are to supersede, and until when those hold."""
    found: dict[str, Links] = {each: {} for each in drafts}
    for each in plan:
        if each["do"] == "supersede" and each["draft"]["id"] in found:
            found[each["draft"]["id"]][each["id"]] = float(each["valid_to"])
    return found


def proposed(
    memories: Iterable[MemoryItem], retires: Mapping[str, Links], lineage: Lineage
) -> list[MemoryItem]:
    """Return new memories as proposals, which record what they retire and are retired by."""
    waiting = [_waiting(each) for each in memories]
    links = {each: dict(former) for each, former in retires.items()}
    for memory in (*lineage.live.values(), *waiting):
        links.setdefault(memory.id, {}).update(links_in(memory.details, RETIRES))
        for newer, until in links_in(memory.details, RETIRED_BY).items():
            links.setdefault(newer, {})[memory.id] = until
    for memory in lineage.superseded:
        by, until = str(memory.details.get(SUPERSEDED_BY)), memory.valid_to or 0.0
        links.setdefault(by, {}).setdefault(memory.id, until)
    return [_linked(each, closure(links, each.id)) for each in waiting]


def _waiting(memory: MemoryItem) -> MemoryItem:
    """Return a new memory that waits; if it was superseded at once, it records by what."""
    details, valid_to = dict(memory.details), memory.valid_to
    by = details.pop(SUPERSEDED_BY, None)
    if SUPERSEDED in memory.marks:
        if by is not None and is_number(valid_to):
            details[RETIRED_BY] = {by: valid_to}
        valid_to = None
    marks = (memory.marks - {SUPERSEDED}) | {WAITING}
    return change(memory, marks=marks, details=details, valid_to=valid_to)


def _linked(memory: MemoryItem, retires: Links) -> MemoryItem:
    if not retires:
        return memory
    return change(memory, details={**memory.details, RETIRES: retires})


def relinked(memory: MemoryItem, others: Iterable[MemoryItem]) -> MemoryItem:
    """Return a memory with links to others of which only one can hold: the last said.

    A rejected memory is not shown to derivers. What was said while it was rejected does not know
    that it supersedes it, or is superseded by it.
    """
    retires = links_in(memory.details, RETIRES)
    retired_by = links_in(memory.details, RETIRED_BY)
    for each in others:
        if each.id == memory.id or _slot(each) is None or _slot(each) != _slot(memory):
            continue
        if each.created_at > memory.created_at:
            retired_by.setdefault(each.id, each.created_at)
        elif each.created_at < memory.created_at:
            retires.setdefault(each.id, memory.created_at)
    links = {RETIRES: retires, RETIRED_BY: retired_by}
    own = {name: each for name, each in links.items() if each}
    return change(memory, details={**memory.details, **own})


def _slot(memory: MemoryItem) -> tuple[str, ...] | None:
    """Return what a memory tells the only value of; ``None`` if there may be several."""
    told = memory.details
    if told.get("exclusive") is not True or not told.get("attribute") or told.get("ended"):
        return None
    return (memory.kind, str(told.get("subject")), str(told["attribute"]))


def rewording(
    memory: MemoryItem, new_id: str, text: str, sources: Sequence[str], said_at: float
) -> MemoryItem:
    """Return the proposal to replace an approved memory by one with another text."""
    former = (RETIRES, RETIRED_BY, DECIDED, SOURCE_VERSIONS)
    details = {key: value for key, value in memory.details.items() if key not in former}
    author = None if memory.origin is None else memory.origin.author
    return change(
        memory,
        id=new_id,
        text=text,
        value=text if isinstance(memory.value, str) else memory.value,
        details=details,
        origin=Origin(author, tuple(dict.fromkeys((*sources_of(memory), *sources)))),
        created_at=said_at,
        updated_at=said_at,
        version=1,
        seq=0,
    )
