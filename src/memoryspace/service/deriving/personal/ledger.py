"""Comparison of new facts with known ones: which repeat, which supersede, which are new.

``FactLedger`` is one job's view of a user's facts: the stored ones and those the job has decided so
far. A sentence said twice is one fact, and of two homes in one message the later holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b

from msgspec.structs import replace as change

from ....record import Origin
from ...values.kinds import SUPERSEDED, SUPERSEDED_BY
from ...values.memory import QUARANTINED, Draft, MemoryItem
from ..contract import Add, Adjust, Decision, Supersede
from ..similarity import similarity, value_words
from .entries import (
    FactEntry,
    Relation,
    has_same_slot,
    is_ended_by,
    may_end,
    related,
    says_more,
    says_the_same,
)
from .facts import CORRECTION, IMPORTANCE, INSTRUCTION, Fact, label_of, with_subject

FACT = "fact"  # the kind of memory

_SPOKEN_OF = frozenset({"medication"})  # matters in which a change need not name what it changes
_CONFIRMERS = 20  # memories listed as having confirmed a fact, the newest


class FactLedger:
    """The facts that hold during a job, and the decisions of the job."""

    def __init__(self, job_id: str, known: Iterable[MemoryItem], author: str) -> None:
        self._job_id = job_id
        self._author = author
        self._decisions: list[Decision] = []
        self._adjusted: dict[str, int] = {}  # index of the decision about each stored fact
        self.entries = {memory.id: FactEntry.of(memory) for memory in known}
        self.touched: set[tuple[str, str, int]] = set()  # groups in which something changed

    @property
    def decisions(self) -> Sequence[Decision]:
        """The decisions so far, in order."""
        return self._decisions

    def take(
        self,
        fact: Fact,
        *,
        like: Collection[str] = (),
        verdict: tuple[Relation, str] | None = None,
    ) -> None:
        """Decide about a fact. A ``verdict`` on a known fact, by its id, overrides the rules.

        ``like`` holds ids of known facts with similar words, whatever their subject.
        """
        if fact.quarantined:  # it may neither confirm nor end a trusted fact
            self._decisions += [] if fact.needs_rival else [Add(self._draft(fact))]
            return
        relation, entry = self._judged(verdict) or self._related(fact, like)
        if entry is not None and relation is Relation.SAME:
            self._confirm(entry, fact)
        elif entry is not None and fact.said_at < entry.said_at:
            self._add_superseded(fact, entry)  # an older fact, told late: already superseded
        else:
            rivals = [] if verdict is not None else self._ended_by(fact)
            self._replace(fact, rivals if entry is None else [entry, *rivals])

    def _ended_by(self, fact: Fact) -> list[FactEntry]:
        """Return the entries a fact ends; "the dose went up" ends the last one mentioned."""
        if not may_end(fact):
            return []
        found = [entry for entry in self.entries.values() if is_ended_by(entry, fact)]
        if fact.attribute == CORRECTION:
            return sorted(found, key=lambda entry: similarity(entry.text, fact.text))[-1:]
        if fact.attribute.startswith(f"{CORRECTION} "):
            return found[-1:]  # "actually he's a labrador": about the last one mentioned
        if found or not fact.change or fact.attribute not in _SPOKEN_OF:
            return found
        same = [entry for entry in self.entries.values() if has_same_slot(entry, fact)]
        return same[-1:]

    def _replace(self, fact: Fact, rivals: Sequence[FactEntry]) -> None:
        """Add a fact, superseding its rivals if there are any."""
        if rivals and fact.needs_rival:
            fact = with_subject(fact, rivals[0].subject)
        if rivals and fact.attribute == INSTRUCTION and fact.polarity < 0:
            fact = change(fact, ended=True)  # a withdrawn instruction leaves none behind
        if rivals:
            self._supersede({entry.id: entry for entry in rivals}.values(), fact)
        elif not fact.needs_rival:
            self._add(fact)

    def _judged(
        self, verdict: tuple[Relation, str] | None
    ) -> tuple[Relation, FactEntry | None] | None:
        if verdict is None:
            return None
        relation, known_id = verdict
        entry = self.entries.get(known_id)
        if relation is Relation.OTHER:
            return relation, None
        return (relation, entry) if entry is not None else None

    def _related(self, fact: Fact, like: Collection[str]) -> tuple[Relation, FactEntry | None]:
        """Return the related entry; the same fact takes precedence over a contradicted one."""
        for entry in filter(None, map(self.entries.get, like)):
            if says_the_same(entry, fact):
                return Relation.SAME, entry
        contradicted, words = None, value_words(fact.value)
        for entry in reversed(self.entries.values()):  # the newest first
            relation = related(entry, fact, words)
            if relation is Relation.SAME:
                return relation, entry
            if relation is Relation.CONTRADICTED and contradicted is None:
                contradicted = entry
        found = Relation.OTHER if contradicted is None else Relation.CONTRADICTED
        return found, contradicted

    def _add(self, fact: Fact) -> None:
        draft = self._draft(fact)
        self._decisions.append(Add(draft))
        self._enter(fact, draft)

    def _add_superseded(self, fact: Fact, successor: FactEntry) -> None:
        """Add a fact that was already superseded when it was told."""
        draft = _ended(self._draft(fact), max(successor.since, fact.since), successor.id)
        self._decisions.append(Add(draft))

    def _supersede(self, rivals: Iterable[FactEntry], fact: Fact) -> None:
        """Supersede the rivals; all these decisions share the draft of the new fact."""
        draft, before = self._draft(fact), len(self._decisions)
        for entry in rivals:
            valid_to = max(fact.since, entry.since)
            if entry.is_new and draft.id is not None:
                self._end(entry.id, valid_to, draft.id)
            else:
                self._decisions.append(Supersede(entry.id, draft, valid_to))
            del self.entries[entry.id]
            self.touched.add((entry.subject, entry.attribute, entry.polarity))
        if len(self._decisions) == before:
            self._decisions.append(Add(draft))
        self._enter(fact, draft)

    def _end(self, draft_id: str, valid_to: float, successor: str) -> None:
        """Mark a fact of this job as superseded by another fact of this job."""
        for place, decision in self._making(draft_id):
            draft = _ended(decision.draft, valid_to, successor)
            self._decisions[place] = change(decision, draft=draft)

    def _making(self, draft_id: str) -> list[tuple[int, Add | Supersede]]:
        """Return the decisions that add a memory, with their indexes."""
        return [
            (place, decision)
            for place, decision in enumerate(self._decisions)
            if isinstance(decision, Add | Supersede) and decision.draft.id == draft_id
        ]

    def _confirm(self, entry: FactEntry, fact: Fact) -> None:
        new = [source for source in fact.sources if source not in entry.sources]
        if not new:
            return  # derived again from the same messages
        entry.sources.update(new)
        if entry.is_new:
            self._add_sources(entry.id, new)
            return
        entry.confirmed_by = [*entry.confirmed_by, *new][-_CONFIRMERS:]
        adjust = Adjust(
            entry.id,
            {"confirmed_by": list(entry.confirmed_by)},
            {"confirmations": 1},
            derived_from=tuple(new),
        )
        if says_more(fact, entry):
            entry.value, entry.text = fact.value, fact.text
            adjust = change(adjust, details={**adjust.details, "value": fact.value}, text=fact.text)
        self._put(entry.id, adjust)

    def _put(self, memory_id: str, adjust: Adjust) -> None:
        """Merge all adjustments of a stored fact into one decision per job."""
        place = self._adjusted.setdefault(memory_id, len(self._decisions))
        if place == len(self._decisions):
            self._decisions.append(adjust)
            return
        before = self._decisions[place]
        assert isinstance(before, Adjust)
        count = before.counters["confirmations"] + 1
        details = {**before.details, **adjust.details}
        text = adjust.text if adjust.text is not None else before.text
        sources = tuple(dict.fromkeys((*before.derived_from, *adjust.derived_from)))
        counters = {"confirmations": count}
        self._decisions[place] = Adjust(memory_id, details, counters, text, derived_from=sources)

    def _add_sources(self, draft_id: str, sources: Sequence[str]) -> None:
        for place, decision in self._making(draft_id):
            origin = decision.draft.origin
            known = origin.derived_from if origin is not None else ()
            draft = change(decision.draft, origin=Origin(self._author, (*known, *sources)))
            self._decisions[place] = change(decision, draft=draft)

    def _enter(self, fact: Fact, draft: Draft) -> None:
        assert draft.id is not None
        self.touched.add((fact.subject, fact.attribute, fact.polarity))
        self.entries[draft.id] = FactEntry(
            draft.id,
            fact.subject,
            fact.attribute,
            fact.value,
            fact.polarity,
            fact.ended,
            fact.text,
            fact.said_at,
            fact.since,
            fact.event,
            set(fact.sources),
            is_exclusive=fact.is_exclusive,
            is_new=True,
        )

    def _draft(self, fact: Fact) -> Draft:
        return Draft(
            id=self.name(FACT, fact.subject, fact.attribute, fact.text),
            value=fact.text,
            text=fact.text,
            kind=FACT,
            title=label_of(fact),
            details=fact.details,
            marks=frozenset({QUARANTINED}) if fact.quarantined else frozenset(),
            importance=IMPORTANCE.get(fact.type, 0.5),
            created_at=fact.said_at,
            valid_from=fact.since,
            origin=Origin(self._author, fact.sources),
        )

    def name(self, *parts: str) -> str:
        """Return an id that is the same whenever this job is derived again."""
        digest = blake2b("\n".join((self._job_id, *parts)).encode(), digest_size=12)
        return f"{parts[0]}-{digest.hexdigest()}"


def _ended(draft: Draft, valid_to: float, successor: str) -> Draft:
    """Return a superseded draft that names its successor."""
    details = {**draft.details, SUPERSEDED_BY: successor}
    return change(draft, valid_to=valid_to, marks=draft.marks | {SUPERSEDED}, details=details)
