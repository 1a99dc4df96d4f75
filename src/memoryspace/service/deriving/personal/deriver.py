"""``PersonalDeriver``: facts, preferences, events and plans of a user, and insights over them.

Without a model, rules read English and Chinese. With a model, the model extracts, compares and
summarises facts. If it fails for good, the rules take over; if it is only unavailable, the job is
retried.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Any

from ....errors import InvalidInput, ModelFailed, ModelUnavailable
from ....model import ChatModel, Spending
from ...values.memory import MemoryItem
from ..contract import Decision, Job, Known
from ..language import is_chinese
from ..similarity import similarity
from .entries import FactEntry, Relation
from .extraction import facts_in, is_said_by_user
from .facts import Fact, slot_of
from .insights import INSIGHT, FactGroup, group_of, groups, outdated, renewed
from .ledger import FACT, FactLedger
from .model import FactModel
from .people import names_of

logger = logging.getLogger(__name__)

_LIKE = 5  # known facts that each new one is compared with
_AT_HAND = 1000  # facts read at once; if there are more, similar ones are searched for
_COMPARED = 20  # candidates that are ranked by similarity
_NEAR = 0.5  # share of common words from which two texts are candidates


class PersonalDeriver:
    """Derives memories of kinds ``fact`` and ``insight`` from what a user says.

    Args:
        model: A chat model that extracts and compares facts; rules do so if it is ``None``.
        insight_from: How many facts about one thing make an insight.
        attempts: How often the model is asked for a valid answer.
        spending: Where to account for model calls; a new ``Spending`` by default.

    Raises:
        InvalidInput: ``insight_from`` is below 2 or ``attempts`` below 1.

    Example::

        service = InMemoryMemoryService(derivers=[PersonalDeriver(insight_from=3)])
    """

    kinds = (FACT, INSIGHT)
    is_about_people = True

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        insight_from: int = 5,
        attempts: int = 3,
        spending: Spending | None = None,
    ) -> None:
        if insight_from < 2 or attempts < 1:
            raise InvalidInput(
                f"insight_from must be 2 or more and attempts 1 or more, "
                f"got {insight_from} and {attempts}"
            )
        self.spending = spending if spending is not None else Spending()
        self._insight_from = insight_from
        self._name = "personal" if model is None else f"personal/{model.name}"
        self._model = (
            None if model is None else FactModel(model, spending=self.spending, attempts=attempts)
        )

    @property
    def name(self) -> str:
        """The deriver's name, with the model's name after a slash."""
        return self._name

    @property
    def is_quick(self) -> bool:
        """Whether it works by rules alone, without a model."""
        return self._model is None

    def concerns(self, memories: Sequence[MemoryItem], details: Mapping[str, Any]) -> bool:
        """Return whether a user said any of these."""
        return any(map(is_said_by_user, memories))

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return decisions about what a user said, given what is known about them."""
        said = [memory for memory in job.memories if is_said_by_user(memory)]
        kept = await known.of_kind(FACT, limit=_AT_HAND) if said else []
        names = names_of([slot_of(memory.details)[0] for memory in kept])
        facts = _distinct(await self._facts(said, names))
        if not facts:
            return []
        like = [await self._like(fact, kept, known) for fact in facts]
        stored = {each.id: each for some in (*like, kept) for each in some}
        ledger = FactLedger(job.id, _in_order(stored.values()), self.name)
        ids = [[memory.id for memory in some] for some in like]
        verdicts = await self._verdicts(facts, ids, ledger)
        for number, fact in enumerate(facts):
            ledger.take(fact, like=ids[number], verdict=verdicts.get(number))
        if FACT in job.reviewed:  # what waits is summed up once it is approved: see ``renew``
            return list(ledger.decisions)
        return [*ledger.decisions, *await self._insights(ledger, known, job.now)]

    async def renew(self, job: Job, known: Known, changed: Sequence[MemoryItem]) -> list[Decision]:
        """Return decisions that bring the insights about changed facts up to date."""
        kept = await known.of_kind(FACT, limit=_AT_HAND)
        ledger = FactLedger(job.id, kept, self.name)
        ledger.touched.update(map(group_of, changed))
        return await self._insights(ledger, known, job.now)

    async def _like(self, fact: Fact, kept: Sequence[MemoryItem], known: Known) -> list[MemoryItem]:
        """Return known facts with similar words; none for a quarantined fact.

        The rules need only near duplicates. If all facts are in ``kept``, that takes no search.
        """
        if fact.quarantined:
            return []
        if self._model is None and len(kept) < _AT_HAND:
            return _nearly_the_same(fact, kept)
        return [memory for memory, _ in await known.similar(fact.text, kinds=[FACT], top_k=_LIKE)]

    async def _facts(self, said: Sequence[MemoryItem], names: Mapping[str, str]) -> list[Fact]:
        """Return the facts in conversation order. A model never sees quarantined messages."""
        if self._model is None:
            return [fact for memory in said for fact in facts_in(memory, names)]
        clean = [memory for memory in said if not memory.is_quarantined]
        try:
            found = await self._model.facts(clean) if clean else []
        except ModelUnavailable:
            raise
        except ModelFailed as error:
            logger.warning("extracting facts by rules instead: %s", error)
            return [fact for memory in said for fact in facts_in(memory, names)]
        held = [memory for memory in said if memory.is_quarantined]
        return found + [fact for memory in held for fact in facts_in(memory, names)]

    async def _verdicts(
        self, facts: Sequence[Fact], like: Sequence[Sequence[str]], ledger: FactLedger
    ) -> dict[int, tuple[Relation, str]]:
        """Return a model's verdicts by index of the fact; the rules decide about the rest."""
        asked = {f"new-{at}": at for at, fact in enumerate(facts) if not fact.quarantined}
        near = {
            each.id: each for at in asked.values() for each in _near(facts[at], like[at], ledger)
        }
        if self._model is None or not near:
            return {}
        try:
            new = {name: facts[at] for name, at in asked.items()}
            found = await self._model.verdicts(new, list(near.values()))
        except ModelUnavailable:
            raise
        except ModelFailed as error:
            logger.warning("comparing facts by rules instead: %s", error)
            return {}
        return {asked[name]: verdict for name, verdict in found.items()}

    async def _insights(self, ledger: FactLedger, known: Known, now: float) -> list[Decision]:
        if not ledger.touched:
            return []
        old = outdated(ledger, await known.of_kind(INSIGHT))
        found = groups(ledger, least=self._insight_from)
        told = [(group, await self._told(group)) for group in found]
        return renewed(ledger, old, told, now=now, author=self.name)

    async def _told(self, group: FactGroup) -> str:
        if self._model is None:
            return group.text
        try:
            summary = await self._model.summary([fact.text for fact in group.facts])
        except ModelUnavailable:
            raise
        except ModelFailed as error:
            logger.warning("wording an insight by rules instead: %s", error)
            return group.text
        return summary if summary is not None else group.text


def _distinct(facts: Sequence[Fact]) -> list[Fact]:
    """Return facts without exact repetitions from the same memory."""
    return list(
        {(fact.text, fact.attribute, fact.value, fact.sources): fact for fact in facts}.values()
    )


def _nearly_the_same(fact: Fact, kept: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Return facts with nearly the same words as a new one, most similar first."""
    words = _words(fact.text)
    shares = ((_share(words, _words(each.text)), each.seq, each) for each in kept)
    near = nlargest(_COMPARED, (each for each in shares if each[0] >= _NEAR), key=_first_two)
    best = [each for _, _, each in near]
    best.sort(key=lambda each: (-similarity(fact.text, each.text), -each.seq))
    return best[:_LIKE]


def _first_two(rated: tuple[float, int, MemoryItem]) -> tuple[float, int]:
    return rated[:2]


def _words(text: str) -> frozenset[str]:
    """Return the words of a text, or its characters if it is Chinese, for a quick comparison."""
    return frozenset(text if is_chinese(text) else text.casefold().split())


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one), len(other))


def _near(fact: Fact, like: Sequence[str], ledger: FactLedger) -> list[FactEntry]:
    """Return the known facts that the model should compare with a new one."""
    slot = (fact.subject, fact.attribute)
    beside = [each for each in ledger.entries.values() if (each.subject, each.attribute) == slot]
    return [*beside[-_LIKE:], *(ledger.entries[each] for each in like)]


def _in_order(stored: Iterable[MemoryItem]) -> list[MemoryItem]:
    return sorted(stored, key=lambda memory: memory.seq)
