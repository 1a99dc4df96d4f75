"""Histories of concurrent clients: what the checker must notice, and that our stores pass."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import MemoryStore, Record, Scope, SQLStore, Where
from memoryspace.message import new_id
from memoryspace.record import EVERYTHING
from memoryspace.store import stale_reads
from memoryspace.testing.store_histories import Operation, Recorder, find_violations, run_clients

import servers
from backends import STORE_BACKENDS, no_server, store_maker
from length import at_length

USERS = ["ann", "bob", "cid"]


class Forgetful(MemoryStore):
    """A store that answers as if it had done each change, but drops some of one kind."""

    def __init__(self, verb: str, seed: int) -> None:
        super().__init__()
        self._verb, self._rng = verb, random.Random(seed)

    def _drops(self, verb: str) -> bool:
        return verb == self._verb and self._rng.random() < 0.4

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        if self._drops("append") and not records[0].id.startswith("register"):
            return [each.id for each in records]
        return await super().append(scope, records)

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        return [] if self._drops("delete") else await super().delete(scope, where)

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        await asyncio.sleep(0)  # so that clients take turns
        if self._drops("swap"):
            return [each.id for each in records]
        if self._drops("refusal"):
            return []
        return await super().replace(
            scope, where, records, if_found=if_found and not self._drops("guard")
        )


@pytest.mark.parametrize("verb", ["append", "delete", "swap", "refusal", "guard"])
@pytest.mark.parametrize("seed", range(3))
async def test_a_store_that_drops_some_writes_is_caught(verb: str, seed: int) -> None:
    store, recorder = Forgetful(verb, seed), Recorder()
    await run_clients(lambda: store, recorder, seed=seed, users=USERS)
    await recorder.read_finally(store)
    assert find_violations(recorder.history)


class Late(MemoryStore):
    """A store whose reads show a session as it was a few reads ago."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[str, list[list[Record]]] = {}

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        shown = self._shown.setdefault(scope.user, [])
        shown.append(await super().select(scope, where))
        return shown[max(0, len(shown) - 3)]


async def test_a_store_that_reads_old_data_is_caught() -> None:
    store, recorder = Late(), Recorder()
    await run_clients(lambda: store, recorder, seed=1, users=USERS)
    assert any("lost" in each for each in find_violations(recorder.history))


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_every_backend_passes(backend: str) -> None:
    async with store_maker(backend) as make:
        recorder, users = Recorder(), [new_id() for _ in range(3)]
        await run_clients(make, recorder, seed=5, users=users, steps=at_length(15, 100))
        await recorder.read_finally(make())
        assert find_violations(recorder.history) == []
        assert {each.verb for each in recorder.history} == {"append", "cas", "delete", "read"}


def append(id_: str, began: float, ended: float, *, outcome: bool | None = True) -> Operation:
    return Operation("ann", "append", began, ended, id_, outcome=outcome)


def swap(
    before: str, after: str, began: float, ended: float, *, outcome: bool | None = True
) -> Operation:
    return Operation("ann", "cas", began, ended, f"register {after}", f"register {before}", outcome)


def read(began: float, ended: float, *seen: str) -> Operation:
    return Operation("ann", "read", began, ended, seen=seen)


START = append("register 0", 1, 2)
UNKNOWN = float("inf")

WRONG = {
    "lost": [append("a", 1, 2), read(3, 4)],
    "after its deletion": [
        append("a", 1, 2), Operation("ann", "delete", 3, 4, "a"), read(5, 6, "a"),
    ],
    "nobody appended": [read(1, 2, "a")],
    "read twice": [append("a", 1, 2), read(3, 4, "a", "a")],
    "before it was appended": [read(1, 2, "a"), append("a", 3, 4)],
    "two compare-and-sets": [START, swap("0", "1", 3, 6), swap("0", "2", 4, 5)],
    "not in the register's history": [START, swap("9", "1", 3, 4)],
    "goes back": [START, swap("0", "1", 3, 4), read(5, 6, "register 0")],
    "empty register": [START, read(3, 4)],
    "was refused": [START, swap("0", "1", 3, 4, outcome=False)],
    "several values": [START, swap("0", "1", 3, 4), read(5, 6, "register 0", "register 1")],
}  # fmt: skip

RIGHT = [
    [append("a", 1, 4), read(2, 3)],
    [append("a", 1, 4), read(2, 3, "a")],
    [append("a", 1, UNKNOWN, outcome=None), read(3, 4), read(5, 6, "a")],
    [append("a", 1, 2), Operation("ann", "delete", 3, UNKNOWN, "a", outcome=None),
     read(4, 5, "a"), read(6, 7)],
    [START, swap("0", "1", 3, 6), swap("0", "2", 4, 5, outcome=False), read(7, 8, "register 1")],
    [START, swap("0", "1", 3, 9), swap("0", "2", 4, 5, outcome=False)],
    [START, swap("0", "1", 3, 8), read(4, 5, "register 0"), read(6, 7, "register 1")],
    [START, swap("0", "1", 3, UNKNOWN, outcome=None), swap("1", "2", 5, 6),
     read(7, 8, "register 2")],
    [START, swap("0", "1", 3, UNKNOWN, outcome=None), swap("0", "2", 5, 6),
     read(7, 8, "register 2")],
]  # fmt: skip


@pytest.mark.parametrize("trouble", WRONG)
def test_what_must_not_happen_is_found(trouble: str) -> None:
    assert any(trouble in each for each in find_violations(WRONG[trouble]))


@pytest.mark.parametrize("history", RIGHT)
def test_what_may_happen_is_not_reported(history: list[Operation]) -> None:
    assert find_violations(history) == []


@pytest.fixture
def primary() -> Iterator[servers.Postgres]:
    try:
        started = servers.started(servers.Postgres())
    except servers.NoServerError as error:
        no_server(error)
    yield started
    started.remove()


async def test_partitioned_postgres_with_a_replica_passes_while_its_primary_is_killed(
    primary: servers.Postgres,
) -> None:
    standby = servers.started(servers.Standby(primary))
    recorder, users = Recorder(), [new_id() for _ in range(4)]
    engine = create_async_engine(primary.url)
    try:
        store = SQLStore(engine, partitions=4, replica=standby.url)
        await store.create_tables()
        clients = asyncio.create_task(
            run_clients(lambda: store, recorder, seed=3, users=users, steps=at_length(80, 1000))
        )
        for number in range(1, at_length(2, 6) + 1):
            while len(recorder.history) < 120 * number and not clients.done():  # noqa: ASYNC110
                await asyncio.sleep(0)  # let the clients go on
            primary.kill()
            await asyncio.to_thread(primary.start)
        await clients
        await recorder.read_finally(store)
        assert find_violations(recorder.history) == []
        assert any(each.outcome is None for each in recorder.history), "no call met the kill"
        await _check_own_reads(store, recorder)
        await store.close()
    finally:
        await engine.dispose()
        standby.remove()


async def _check_own_reads(store: SQLStore, recorder: Recorder) -> None:
    """Reads that may come from the replica show all that this process wrote."""
    with stale_reads():
        await recorder.read_finally(store)
    assert find_violations(recorder.history) == []
