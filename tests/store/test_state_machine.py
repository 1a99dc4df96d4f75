"""Every backend and a model that fits on a page take the same random steps and must agree."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memoryspace import Msg, Record, Scope, Store, Where
from memoryspace.message import new_id
from memoryspace.testing import ManualClock

from backends import STORE_BACKENDS, server_url, store_maker

IDS = st.sampled_from(["1", "2", "3", "a:b", "长", "*"])
MARKS = st.frozensets(st.sampled_from(["x", "xx", "y", "压缩"]), max_size=2)
SESSIONS = st.sampled_from(["one", "two"])
SPANS = st.sampled_from(["one", "two", None])
KINDS = st.sampled_from(["message", "note"])
NEW = st.lists(st.tuples(IDS, KINDS, MARKS, st.sampled_from([None, 5, 50])), max_size=4)
WHERES = st.builds(
    Where,
    ids=st.none() | st.frozensets(IDS, max_size=3),
    kind=st.none() | KINDS,
    marks=MARKS,
    without=MARKS,
    limit=st.none() | st.integers(0, 3),
    newest=st.booleans(),
)


@dataclass
class Kept:
    id: str
    kind: str
    text: str
    marks: frozenset[str]
    session: str
    expires_at: float | None


@dataclass
class Model:
    """The contract in its shortest form: one list per user, in conversation order."""

    clock: ManualClock
    kept: list[Kept] = field(default_factory=list)

    def choose(self, session: str | None, where: Where) -> list[Kept]:
        found = [each for each in self._alive() if session in (None, each.session)]
        found = [each for each in found if where.ids is None or each.id in where.ids]
        found = [each for each in found if where.kind in (None, each.kind)]
        found = [each for each in found if not where.marks or each.marks & where.marks]
        found = [each for each in found if not each.marks & where.without]
        if where.limit is None:
            return found
        first = max(0, len(found) - where.limit) if where.newest else 0
        return found[first : first + where.limit]

    def append(self, session: str, new: list[Kept]) -> list[str]:
        added = []
        for each in new:
            known = [old for old in self._alive() if (old.session, old.id) == (session, each.id)]
            if known:
                known[0].marks |= each.marks
            else:
                self.kept.append(each)
                added.append(each.id)
        return list(dict.fromkeys(added))

    def mark(self, chosen: list[Kept], add: frozenset[str], remove: frozenset[str]) -> int:
        changed = 0
        for each in chosen:
            marks = (each.marks - remove) | add
            changed += marks != each.marks
            each.marks = marks
        return changed

    def delete(self, chosen: list[Kept]) -> list[str]:
        self.kept = [each for each in self.kept if each not in chosen]
        return [each.id for each in chosen]

    def _alive(self) -> list[Kept]:
        now = self.clock()
        self.kept = [each for each in self.kept if each.expires_at is None or each.expires_at > now]
        return self.kept


class SideBySide(RuleBasedStateMachine):
    """One store and the model. The backend is set by the test that runs it."""

    backend: str

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.exit = AsyncExitStack()
        self.clock = ManualClock()
        self.model = Model(self.clock)
        self.user = f"user-{new_id()}"
        self.store: Store = self.runner.run(self._open())

    async def _open(self) -> Store:
        make = await self.exit.enter_async_context(store_maker(self.backend))
        return make(clock=self.clock)

    def teardown(self) -> None:
        self.runner.run(self.exit.aclose())
        self.runner.close()

    @rule(session=SESSIONS, new=NEW)
    def append(self, session: str, new: list[tuple[str, str, frozenset[str], int | None]]) -> None:
        records, kept = self._made(session, new)
        expected = self.model.append(session, kept)
        assert self.runner.run(self.store.append(Scope(self.user, session), records)) == expected

    @rule(session=SESSIONS, where=WHERES, new=NEW)
    def replace(
        self, session: str, where: Where, new: list[tuple[str, str, frozenset[str], int | None]]
    ) -> None:
        records, kept = self._made(session, new)
        self.model.delete(self.model.choose(session, where))
        expected = self.model.append(session, kept)
        scope = Scope(self.user, session)
        assert self.runner.run(self.store.replace(scope, where, records)) == expected

    @rule(session=SPANS, where=WHERES, add=MARKS, remove=MARKS)
    def mark(
        self, session: str | None, where: Where, add: frozenset[str], remove: frozenset[str]
    ) -> None:
        expected = self.model.mark(self.model.choose(session, where), add, remove)
        call = self.store.mark(Scope(self.user, session), where, add=add, remove=remove)
        assert self.runner.run(call) == expected

    @rule(session=SPANS, where=WHERES)
    def delete(self, session: str | None, where: Where) -> None:
        expected = self.model.delete(self.model.choose(session, where))
        removed = self.runner.run(self.store.delete(Scope(self.user, session), where))
        assert sorted(removed) == sorted(expected)

    @rule(session=SPANS, where=WHERES)
    def select_and_count(self, session: str | None, where: Where) -> None:
        scope = Scope(self.user, session)
        expected = self.model.choose(session, where)
        assert self._seen(self.runner.run(self.store.select(scope, where))) == _told(expected)
        assert self.runner.run(self.store.count(scope, where)) == len(expected)

    @rule(seconds=st.sampled_from([1, 10]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @invariant()
    def everything_is_the_same(self) -> None:
        found = self.runner.run(self.store.select(Scope(self.user)))
        assert self._seen(found) == _told(self.model.choose(None, Where()))
        assert [each.seq for each in found] == sorted({each.seq for each in found})

    def _made(
        self, session: str, new: list[tuple[str, str, frozenset[str], int | None]]
    ) -> tuple[list[Record], list[Kept]]:
        records, kept = [], []
        for id_, kind, marks, lifetime in new:
            text = new_id()
            value = Msg("Ann", text, "user") if kind == "message" else {"text": text}
            expires_at = None if lifetime is None else self.clock.now + lifetime
            records.append(Record(id_, value, text, marks, kind, expires_at=expires_at))
            kept.append(Kept(id_, kind, text, marks, session, expires_at))
        return records, kept

    @staticmethod
    def _seen(found: list[Record]) -> list[tuple[object, ...]]:
        return [(each.id, each.kind, each.text, each.marks, each.session) for each in found]


def _told(kept: list[Kept]) -> list[tuple[object, ...]]:
    return [(each.id, each.kind, each.text, each.marks, each.session) for each in kept]


@pytest.mark.parametrize("backend", STORE_BACKENDS)
def test_a_backend_and_the_model_agree_after_any_steps(backend: str) -> None:
    if backend in ("postgres", "mariadb", "redis"):
        server_url(backend)  # started, or skipped, before the first example
    machine = type(f"On_{backend}", (SideBySide,), {"backend": backend})
    examples = 100 if backend == "memory" else 15
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=25)
    )
