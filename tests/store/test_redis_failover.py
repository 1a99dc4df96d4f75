"""A primary of the cluster is killed: what replicas confirmed stays, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from memoryspace import Record, RedisStore, Scope, Where
from memoryspace.errors import StoreUnavailable
from memoryspace.message import new_id
from memoryspace.store.redis.layout import slot_of

import clusters
from backends import no_server
from servers import NoServerError

WRITERS = 4


@pytest.fixture(params=clusters.KINDS)
def cluster(request: pytest.FixtureRequest) -> Iterator[clusters.Cluster]:
    try:
        started = clusters.start(request.param, clusters.HASTY)
    except NoServerError as error:
        no_server(error)
    yield started
    started.remove()


class Writer:
    """Appends records and counts up by compare-and-set, and remembers what was acknowledged."""

    def __init__(self, store: RedisStore, user: str) -> None:
        self.store = store
        self.scope, self.counting = Scope(user, "log"), Scope(user, "count")
        self.acknowledged: list[str] = []
        self.count = 0
        self.unknown = 0
        self.made = asyncio.Event()

    async def begin(self) -> None:
        await self.store.append(self.counting, [Record("0", "0", kind="count")])

    async def write(self) -> None:
        while True:
            await self._attempt()

    async def until(self, more: int) -> None:
        """Wait for so many more acknowledged rounds."""
        goal = len(self.acknowledged) + more
        while len(self.acknowledged) < goal:
            self.made.clear()
            await self.made.wait()

    async def _attempt(self) -> None:
        id_ = new_id()
        try:
            assert await self.store.append(self.scope, [Record(id_, id_, kind="note")]) == [id_]
            await self._count_up()
        except StoreUnavailable:
            self.unknown += 1
            await self._look()
            return
        self.acknowledged.append(id_)
        self.made.set()

    async def _count_up(self) -> None:
        """Nobody else counts, so this cannot fail unless it happens twice."""
        new = Record(str(self.count + 1), str(self.count + 1), kind="count")
        at = Where(ids=frozenset({str(self.count)}))
        assert await self.store.replace(self.counting, at, [new], if_found=True) == [new.id]
        self.count += 1

    async def _look(self) -> None:
        """After an unknown outcome the count is as it was, or one higher."""
        (found,) = await self.store.select(self.counting)
        assert int(found.id) in (self.count, self.count + 1)
        self.count = int(found.id)

    async def check(self) -> None:
        found = [each.id for each in await self.store.select(self.scope)]
        assert len(found) == len(set(found))
        assert set(self.acknowledged) <= set(found)
        assert len(found) <= len(self.acknowledged) + self.unknown + 1  # one was cancelled
        order = {id_: at for at, id_ in enumerate(found)}
        assert sorted(self.acknowledged, key=order.__getitem__) == self.acknowledged
        await self._look()


def users_of(cluster: clusters.Cluster, port: int, count: int) -> list[str]:
    """Return users whose slots a server has."""
    names = (f"user-{number}" for number in range(100_000))
    found = []
    while len(found) < count:
        name = next(names)
        if cluster.owner(slot_of(name)) == port:
            found.append(name)
    return found


async def test_what_a_replica_has_confirmed_outlives_the_primary(cluster: clusters.Cluster) -> None:
    first = cluster.owner(0)
    async with RedisStore(cluster.url, wait_replicas=1, wait_timeout=0.5) as store:
        users = users_of(cluster, first, WRITERS)
        writers = [Writer(store, user) for user in users]
        await asyncio.gather(*(writer.begin() for writer in writers))
        writing = [asyncio.create_task(writer.write()) for writer in writers]
        await asyncio.gather(*(writer.until(10) for writer in writers))

        cluster.kill(first)
        # Reads are repeated until the replica has taken over: not one of them fails.
        listed = await store.users()
        assert sorted(listed.users) == sorted(users)
        for writer in writers:
            known = set(writer.acknowledged)
            assert known <= {each.id for each in await store.select(writer.scope)}
        assert await asyncio.to_thread(cluster.owner, 0) != first

        cluster.run(first)  # it comes back as a replica, so writes can be confirmed again
        await asyncio.gather(*(writer.until(10) for writer in writers))
        for task in writing:
            task.cancel()
        outcomes = await asyncio.gather(*writing, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in outcomes), outcomes
    async with RedisStore(cluster.url) as store:
        for writer in writers:
            writer.store = store
            await writer.check()
