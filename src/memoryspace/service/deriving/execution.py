"""Idempotent execution of a job's decisions.

Memories derived from quarantined sources are added in quarantine. They never change a trusted
memory. Those that must be approved are added as proposals, and change no approved memory either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace as change

from ...errors import InvalidInput, UnknownMemory
from ...record import Origin, Record, Scope, Where, is_number
from ...store.contract import admit
from ..review.lineage import Lineage, links_in
from ..review.proposing import admissible, proposed, rewording, supersessions
from ..review.rejections import claims_of, is_rejected, rejections_about
from ..values.envelope import details_of, memory_from, record_of, sources_of
from ..values.kinds import RETIRED_BY, SOURCE_VERSIONS, SUPERSEDED, SUPERSEDED_BY
from ..values.memory import QUARANTINED, WAITING, Draft, MemoryItem
from ..writing.admission import SUSPICION
from ..writing.erasing import is_source
from ..writing.repository import Edit, MemoryRepository
from ..writing.superseding import superseded
from .contract import BadDecision, Deriver
from .jobs import StoredJob, draft_from

ADJUSTED_BY = "adjusted_by"  # the detail that lists the last decisions executed on a memory
_REMEMBERED = 50  # of them

Decided = Mapping[str, Any]
Plan = Sequence[Decided]
Judge = Callable[[MemoryItem], MemoryItem]  # quarantines what looks like an attack


class PlanExecutor:
    """Executes the decisions of one job.

    ``seen`` holds memories already read for the job; one of them is read again only if another
    process has changed it. ``fresh`` holds the job's own memories if they were just stored;
    sources found in either are not read again. New memories of the ``reviewed`` kinds must be
    approved.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        stored: StoredJob,
        deriver: Deriver,
        judge: Judge,
        *,
        seen: Mapping[str, MemoryItem] | None = None,
        fresh: Sequence[MemoryItem] = (),
        reviewed: Collection[str] = (),
    ) -> None:
        self._reviewed = frozenset(reviewed)
        self._rewordings: list[tuple[MemoryItem, str]] = []  # with what they reword
        self._seen = {} if seen is None else dict(seen)
        self._fresh = {each.id: each for each in fresh}
        self._repository = repository
        self._judge = judge
        self._stored = stored
        self._everywhere = Scope(stored.scope.user)
        self._deriver = deriver

    def check(self, plan: Plan) -> None:
        """Raise ``BadDecision`` if a draft cannot be stored. Writes nothing."""
        drafts = _drafts(plan)
        for draft in drafts:
            if draft.kind not in self._deriver.kinds:
                raise BadDecision(
                    f"{self._deriver.name} derived a memory of kind {draft.kind!r}, which is not "
                    f"among its kinds: {', '.join(self._deriver.kinds)}"
                )
        try:
            admit([record_of(each) for each in self._memories(drafts, _Sources())])
        except (InvalidInput, TypeError) as error:
            raise BadDecision(
                f"{self._deriver.name} derived a memory that cannot be stored: {error}"
            ) from error

    async def execute(self, plan: Plan) -> list[Record]:
        """Change existing memories as decided; return the records to add."""
        plan = await self._admissible(plan)
        sources = await self._sources(plan)
        effective = [each for each in plan if sources.held_back.isdisjoint(self._sources_of(each))]
        for decision in effective:
            await self._change(decision, sources)
        made = [await self._placed(each) for each in self._memories(_drafts(plan), sources)]
        return [record_of(each) for each in await self._proposed(made, effective)]

    async def _admissible(self, plan: Plan) -> Plan:
        """Return a plan without what was rejected. Nothing new can have been rejected before."""
        sources = {each["draft"]["id"]: self._sources_of(each) for each in plan if "draft" in each}
        old = [each for each in sources.values() if self._fresh.keys().isdisjoint(each)]
        named = {each for some in old for each in some} - sources.keys()
        if not named:
            return plan
        user = self._everywhere.user
        return admissible(
            plan, sources, await rejections_about(self._repository.store, user, named)
        )

    async def _proposed(self, made: Sequence[MemoryItem], plan: Plan) -> list[MemoryItem]:
        """Return new memories, those that must be approved as proposals."""
        new = {each.id: each for each in made if each.is_waiting}
        if not new and not self._rewordings:
            return list(made)
        links = supersessions(plan, new)
        links.update((each.id, {of: each.created_at}) for each, of in self._rewordings)
        new.update((each.id, each) for each, _ in self._rewordings)
        has_links = any(links.values()) or any(SUPERSEDED in each.marks for each in new.values())
        lineage = (
            await Lineage.read(self._repository, self._everywhere.user, with_superseded=True)
            if has_links
            else Lineage(())
        )
        approved = [each for each in made if not each.is_waiting]
        return [*approved, *proposed(new.values(), links, lineage)]

    async def _placed(self, memory: MemoryItem) -> MemoryItem:
        """Return a new memory that is not superseded yet if its successor waits for approval."""
        by = memory.details.get(SUPERSEDED_BY)
        if memory.is_waiting or SUPERSEDED not in memory.marks or not isinstance(by, str):
            return memory
        successor = await self._repository.find(self._everywhere, by)
        if successor is None or not successor.is_waiting or memory.valid_to is None:
            return memory
        details = {**memory.details, RETIRED_BY: {by: memory.valid_to}}
        del details[SUPERSEDED_BY]
        marks = memory.marks - {SUPERSEDED}
        return change(memory, details=details, marks=marks, valid_to=None)

    async def _change(self, decision: Decided, sources: _Sources) -> None:
        match decision["do"]:
            case "supersede":
                if decision["draft"]["kind"] not in self._reviewed:
                    await self._supersede(decision)
            case "adjust":
                await self._adjust(await self._split(decision, sources))
            case "drop":
                await self._drop(decision["id"])

    async def _supersede(self, decision: Decided) -> None:
        def end(memory: MemoryItem) -> MemoryItem | None:
            if SUPERSEDED in memory.marks:
                return None
            by, valid_to = decision["draft"]["id"], float(decision["valid_to"])
            if not memory.is_waiting:
                return superseded(memory, by, valid_to)
            retired_by = links_in(memory.details, RETIRED_BY)
            if by in retired_by:
                return None
            links = {**retired_by, by: valid_to}
            return change(memory, details={**memory.details, RETIRED_BY: links})

        await self._edit(decision["id"], end)

    async def _split(self, decision: Decided, sources: _Sources) -> Decided:
        """Return an adjustment without a new text for an approved memory, which is proposed."""
        text = decision.get("text")
        if text is None or not self._reviewed:
            return decision
        memory = await self._repository.find(self._everywhere, decision["id"])
        if memory is None or memory.is_waiting or memory.kind not in self._reviewed:
            return decision
        given = decision.get("details", {})
        named = self._sources_of(decision)
        said_at = [sources.there[each].created_at for each in named if each in sources.there]
        fuller = change(memory, details=_merged(memory.details, given))
        new = rewording(
            fuller, decision["by"], text, named, max(said_at, default=self._repository.now())
        )
        versions = self._versions_of(named)
        new = change(new, details={**new.details, SOURCE_VERSIONS: versions})
        new = change(new, session_id=self._stored.scope.session or "")
        if text != memory.text and not await self._was_rejected(new):
            self._rewordings.append((self._judge(new), memory.id))
        kept = {name: given[name] for name in ("confirmed_by",) if name in given}
        return {**decision, "text": None, "importance": None, "details": kept}

    async def _was_rejected(self, memory: MemoryItem) -> bool:
        user, sources = self._everywhere.user, sources_of(memory)
        rejections = await rejections_about(self._repository.store, user, sources)
        claims = claims_of(memory.kind, memory.text, memory.details)
        return is_rejected(claims, sources, rejections)

    async def _adjust(self, decision: Decided) -> None:
        def adjust(memory: MemoryItem) -> MemoryItem | None:
            done = list(memory.details.get(ADJUSTED_BY, ()))
            if decision["by"] in done:
                return None
            details = _merged(memory.details, decision.get("details", {}))
            for name, by in decision.get("counters", {}).items():
                before = memory.details.get(name, 0)
                details[name] = before + by if is_number(before) else by
            details[ADJUSTED_BY] = [*done, decision["by"]][-_REMEMBERED:]
            return self._reworded(change(memory, details=details), decision)

        await self._edit(decision["id"], adjust, keep=decision.get("text") is not None)

    def _reworded(self, memory: MemoryItem, decision: Decided) -> MemoryItem:
        """Return a memory with the decided text and importance; a new text adds its sources."""
        text, importance = decision.get("text"), decision.get("importance")
        if importance is not None:
            memory = change(memory, importance=importance)
        if text is None:
            return memory
        old = Origin() if memory.origin is None else memory.origin
        sources = dict.fromkeys((*old.derived_from, *self._sources_of(decision)))
        value = text if isinstance(memory.value, str) else memory.value
        origin = Origin(old.author, tuple(sources))
        return self._judge(change(memory, text=text, value=value, origin=origin))

    def _sources_of(self, decision: Decided) -> tuple[str, ...]:
        """Return the source memories of a decision; all of the job's if it names none."""
        named = _named(decision["draft"]["origin"]) if "draft" in decision else ()
        named = tuple(decision.get("derived_from", named))
        return named if named else tuple(self._stored.state.memories)

    async def _edit(self, memory_id: str, edit: Edit, *, keep: bool = True) -> None:
        try:
            seen = self._seen.pop(memory_id, None)
            await self._repository.amend(self._everywhere, memory_id, edit, seen=seen, keep=keep)
        except UnknownMemory:
            return  # deleted in the meantime; a deleted memory stays deleted

    async def _drop(self, memory_id: str) -> None:
        found = await self._repository.find(self._everywhere, memory_id)
        if found is not None and found.kind in self._deriver.kinds:
            await self._repository.remove(Scope(found.user_id, found.session_id), [memory_id])

    async def _sources(self, plan: Plan) -> _Sources:
        named = {each for decision in plan for each in self._sources_of(decision)}
        made = {each["draft"]["id"] for each in plan if "draft" in each}
        ids = frozenset({*named, *self._stored.state.memories} - made)
        there = await self._records(ids)
        session, own = self._stored.scope.session, self._stored.state.memories
        return _Sources({each.id: each for each in there if is_source(each, session, own)})

    async def _records(self, ids: frozenset[str]) -> list[Record]:
        known = {**self._seen, **self._fresh} if self._fresh else {}
        if ids <= known.keys():
            memories = (known[each] for each in ids)
            return [change(record_of(each), session=each.session_id) for each in memories]
        return await self._repository.store.select(self._everywhere, Where(ids=ids))

    def _memories(self, drafts: Sequence[Draft], sources: _Sources) -> list[MemoryItem]:
        """Return drafts as memories; a draft may name another draft of the plan as its source."""
        known = {*self._stored.state.memories, *sources.there, *(each.id for each in drafts)}
        made: list[MemoryItem] = []
        for draft in drafts:
            made.append(self._memory(draft, sources, known))
            if made[-1].is_quarantined:
                sources.held_back.add(made[-1].id)
            if made[-1].is_waiting:
                sources.waiting.add(made[-1].id)
        return made

    def _memory(self, draft: Draft, sources: _Sources, known: Collection[str | None]) -> MemoryItem:
        """Return a draft as a memory; it inherits quarantine, expiry and waiting from sources."""
        named = tuple(each for each in _named(draft.origin) if each in known)
        from_ = named if named else tuple(self._stored.state.memories)
        marks = draft.marks | {QUARANTINED} if sources.held_back & set(from_) else draft.marks
        if draft.kind in self._reviewed or sources.waiting & set(from_):
            marks |= {WAITING}
        expires = draft.expires_at if draft.expires_at is not None else sources.last_end(from_)
        origin = Origin(self._deriver.name, from_)
        details = {**draft.details, SOURCE_VERSIONS: self._versions_of(from_)}
        complete = change(draft, origin=origin, marks=marks, expires_at=expires, details=details)
        assert draft.id is not None  # ``numbered`` gave it one
        user, session = self._stored.scope.user, self._stored.scope.session or ""
        memory = memory_from(complete, draft.id, user, session, self._repository.now())
        return memory if sources.were_released(from_) else self._judge(memory)

    def _versions_of(self, ids: Sequence[str]) -> dict[str, int]:
        versions = self._stored.state.memories
        return {each: versions[each].version for each in ids if each in versions}


class _Sources:
    """The current state of the memories that drafts are derived from."""

    def __init__(self, there: Mapping[str, Record] | None = None) -> None:
        self.there = {} if there is None else there
        self.held_back = {each.id for each in self.there.values() if QUARANTINED in each.marks}
        self.waiting = {each.id for each in self.there.values() if WAITING in each.marks}

    def were_released(self, ids: Sequence[str]) -> bool:
        """Return whether a reviewer has released one of these from quarantine."""
        there = [self.there[each] for each in ids if each in self.there]
        return any(
            SUSPICION in details_of(each) and QUARANTINED not in each.marks for each in there
        )

    def last_end(self, ids: Sequence[str]) -> float | None:
        """Return when the last of these expires; ``None`` if one never does."""
        ends = [self.there[each].expires_at for each in ids if each in self.there]
        given = [each for each in ends if each is not None]
        return max(given) if given and len(given) == len(ends) else None


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``old`` updated with ``new``; values that are dicts in both are merged."""
    merged = dict(old)
    for name, value in new.items():
        before = merged.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            both = {**before, **value}
            merged[name] = {key: each for key, each in both.items() if each is not None}
        else:
            merged[name] = value
    return merged


def _drafts(plan: Plan) -> list[Draft]:
    """Return the drafts of a plan, each once: one new fact may supersede several."""
    found = [draft_from(each["draft"]) for each in plan if "draft" in each]
    return list({draft.id: draft for draft in found}.values())


def _named(origin: Origin | Mapping[str, Any] | None) -> tuple[str, ...]:
    if isinstance(origin, Mapping):  # as plain data
        return tuple(origin.get("derived_from", ()))
    return () if origin is None else origin.derived_from
