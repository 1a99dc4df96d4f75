"""Histories of concurrent clients of a store, and a checker that finds what must not happen.

Clients append, replace by compare-and-set, delete and read, each on the records of a few users,
while something else kills servers. Every operation is recorded with the moments of its call and its
answer. An operation that fails has an unknown outcome: it may have happened, then or later.

    recorder = Recorder()
    await run_clients(make_store, recorder, seed=7)
    await recorder.read_finally(make_store())
    assert find_violations(recorder.history) == []

The checker looks at every user by itself and reports

* an acknowledged append that a later read does not show, though nothing deleted it,
* a record that is read again after its acknowledged deletion,
* a record that nobody appended, or that is read twice,
* compare-and-sets and reads of a register that no order explains (linearisability).
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ..errors import StoreError
from ..record import Record, Scope, Where
from ..store import Store

SESSION = "history"
REGISTER = "register"  # the id prefix of the record that compare-and-sets replace
KIND = "note"
FOREVER = float("inf")

_Sighting: TypeAlias = tuple[float, float, int, str]  # began, ended, place in the chain, what
Verb: TypeAlias = Literal["append", "cas", "delete", "read"]


class Operation(Struct, frozen=True):
    """One operation of a client.

    Attributes:
        user: Whose records it was about.
        verb: What it did.
        began: The moment before the call, as a number that grows.
        ended: The moment after the answer; infinite if there was none.
        id: The record that was appended, deleted, or put into the register.
        before: The record that a compare-and-set expected in the register.
        outcome: Whether it took effect; ``None`` if that is unknown.
        seen: What a read returned.
    """

    user: str
    verb: Verb
    began: float
    ended: float
    id: str = ""
    before: str = ""
    outcome: bool | None = True
    seen: tuple[str, ...] = ()


class Recorder:
    """Runs operations and keeps their history."""

    def __init__(self) -> None:
        self.history: list[Operation] = []
        self._moment = 0
        self.users: set[str] = set()

    def now(self) -> float:
        """Return the next moment. One event loop runs all clients, so a counter orders them."""
        self._moment += 1
        return self._moment

    async def append(self, store: Store, user: str, id_: str) -> None:
        """Append a record."""
        began, answer = self.now(), None
        try:
            answer = await store.append(Scope(user, SESSION), [_record(id_)])
        except StoreError:
            self._note(Operation(user, "append", began, FOREVER, id_, outcome=None))
            return
        # A known id is one that an earlier attempt of the store itself has stored.
        self._note(Operation(user, "append", began, self.now(), id_, outcome=answer is not None))

    async def delete(self, store: Store, user: str, id_: str) -> None:
        """Delete a record."""
        began = self.now()
        try:
            await store.delete(Scope(user, SESSION), _one(id_))
        except StoreError:
            self._note(Operation(user, "delete", began, FOREVER, id_, outcome=None))
            return
        self._note(Operation(user, "delete", began, self.now(), id_))

    async def swap(self, store: Store, user: str, before: str, after: str) -> bool | None:
        """Replace the register's record, if it is still ``before``; return whether it was."""
        began = self.now()
        try:
            added = await store.replace(
                Scope(user, SESSION), _one(before), [_record(after)], if_found=True
            )
        except StoreError:
            self._note(Operation(user, "cas", began, FOREVER, after, before, None))
            return None
        self._note(Operation(user, "cas", began, self.now(), after, before, bool(added)))
        return bool(added)

    async def read(self, store: Store, user: str) -> tuple[str, ...] | None:
        """Read all records of a user; return their ids, or ``None`` if that failed."""
        began = self.now()
        try:
            found = await store.select(Scope(user, SESSION))
        except StoreError:
            return None
        ids = tuple(record.id for record in found)
        self._note(Operation(user, "read", began, self.now(), seen=ids))
        return ids

    async def read_finally(self, store: Store) -> None:
        """Read every user once more, when all clients are done and all servers are back."""
        for user in sorted(self.users):
            if await self.read(store, user) is None:
                raise AssertionError(f"the records of {user!r} cannot be read at the end")

    def _note(self, operation: Operation) -> None:
        self.history.append(operation)
        self.users.add(operation.user)


async def run_clients(
    make: Callable[[], Store],
    recorder: Recorder,
    *,
    seed: int,
    users: Sequence[str],
    clients: int = 6,
    steps: int = 40,
) -> None:
    """Run concurrent clients, each with a random list of operations that the seed decides."""
    store = make()
    for user in users:
        await recorder.append(store, user, f"{REGISTER} 0")
    runs = [
        _Client(make(), recorder, random.Random(f"{seed} {number}"), users, number).run(steps)
        for number in range(clients)
    ]
    await asyncio.gather(*runs)


class _Client:
    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        rng: random.Random,
        users: Sequence[str],
        number: int,
    ) -> None:
        self._store, self._recorder, self._rng = store, recorder, rng
        self._users, self._number = users, number
        self._appended: dict[str, list[str]] = defaultdict(list)
        self._made = 0

    async def run(self, steps: int) -> None:
        for _ in range(steps):
            user = self._rng.choice(self._users)
            verb = self._rng.choices(("append", "cas", "delete", "read"), (5, 3, 1, 2))[0]
            if verb == "append":
                self._appended[user].append(self._new("record"))
                await self._recorder.append(self._store, user, self._appended[user][-1])
            elif verb == "cas":
                await self._swap(user)
            elif verb == "delete" and self._appended[user]:
                gone = self._appended[user].pop(self._rng.randrange(len(self._appended[user])))
                await self._recorder.delete(self._store, user, gone)
            else:
                await self._recorder.read(self._store, user)

    async def _swap(self, user: str) -> None:
        seen = await self._recorder.read(self._store, user)
        held = [each for each in seen or () if each.startswith(REGISTER)]
        if held:
            await self._recorder.swap(self._store, user, held[0], self._new(REGISTER))

    def _new(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix} {self._number}.{self._made}"


def find_violations(history: Iterable[Operation]) -> list[str]:
    """Return what the history proves to be wrong, in words; an empty list if nothing is."""
    by_user: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        by_user[operation.user].append(operation)
    return [
        f"user {user!r}: {trouble}"
        for user, operations in sorted(by_user.items())
        for trouble in (*_record_troubles(operations), *_register_troubles(operations))
    ]


def _record_troubles(operations: Sequence[Operation]) -> Iterable[str]:
    """Yield what is wrong with the records that are appended once and deleted at most once."""
    appends = {each.id: each for each in operations if each.verb == "append"}
    swapped = {each.id for each in operations if each.verb == "cas"}
    deletes: dict[str, list[Operation]] = defaultdict(list)
    for each in operations:
        if each.verb == "delete":
            deletes[each.id].append(each)
    for read in (each for each in operations if each.verb == "read"):
        seen = set(read.seen)
        if len(seen) < len(read.seen):
            yield f"a record was read twice at {read.began}"
        for id_ in seen:
            made = appends.get(id_)
            if made is None and id_ not in swapped:
                yield f"{id_!r} was read at {read.began}, but nobody appended it"
            elif made is not None and made.began > read.ended:
                yield f"{id_!r} was read at {read.ended}, before it was appended"
            # An append without an answer may happen late, after its deletion found nothing.
            is_sure = made is not None and made.outcome
            if is_sure and any(each.outcome and each.ended < read.began for each in deletes[id_]):
                yield f"{id_!r} was read at {read.began}, after its deletion"
        for id_, made in appends.items():
            if id_.startswith(REGISTER) or not made.outcome or made.ended > read.began:
                continue
            if id_ not in seen and not any(each.began < read.ended for each in deletes[id_]):
                yield f"{id_!r} was acknowledged at {made.ended} and is lost at {read.began}"


def _register_troubles(operations: Sequence[Operation]) -> Iterable[str]:
    """Yield what is wrong with the register.

    Every value is put in once, and a swap names the one it replaces. So the swaps that took effect
    form a chain, whose order is known. It must hold every acknowledged swap, and no swap or read
    may find an earlier place of it than one that was reached before it began.
    """
    chain, trouble = _chain(operations)
    if trouble:
        yield trouble
        return
    place = {id_: number for number, id_ in enumerate(chain)}
    sightings = [*_sightings(operations, place)]
    for began, ended, at, what in sightings:
        reached = max((each[2] for each in sightings if each[1] < began), default=-1)
        if at < reached:
            found = f"{chain[at]!r}" if at >= 0 else "nothing that could be there"
            yield f"{what} at {began} to {ended} goes back from {chain[reached]!r} to {found}"
    yield from _refusals(operations, chain, sightings)


def _refusals(
    operations: Sequence[Operation], chain: Sequence[str], sightings: Sequence[_Sighting]
) -> Iterable[str]:
    """Yield the swaps that were refused although their value was in the register all the time."""
    swaps = {each.id: each for each in operations if each.verb == "cas"}
    for each in operations:
        if each.verb != "cas" or each.outcome is not False or each.before not in chain:
            continue
        at = chain.index(each.before)
        is_there = any(end < each.began and place >= at for _, end, place, _ in sightings)
        is_last = at + 1 == len(chain)
        if is_there and (is_last or swaps[chain[at + 1]].began > each.ended):
            yield f"the swap from {each.before!r} at {each.began} was refused, but it was there"


def _chain(operations: Sequence[Operation]) -> tuple[list[str], str]:
    """Return the values of the register in order, or what makes an order impossible."""
    first = [
        each.id for each in operations if each.verb == "append" and each.id.startswith(REGISTER)
    ]
    swaps = [each for each in operations if each.verb == "cas"]
    seen = {id_ for each in operations if each.verb == "read" for id_ in each.seen}
    following: dict[str, list[Operation]] = defaultdict(list)
    for each in swaps:
        if each.outcome is not False:
            following[each.before].append(each)
    for before, found in following.items():
        known = [each for each in found if each.outcome]
        if len(known) > 1:
            return [], f"two compare-and-sets replaced {before!r}: {[each.id for each in known]}"
    chain = first[:1]
    while chain:
        found = following.get(chain[-1], [])
        sure = [each for each in found if each.outcome] or [
            each for each in found if each.id in seen or following.get(each.id)
        ]
        if len(sure) > 1:
            return [], f"two values followed {chain[-1]!r}: {[each.id for each in sure]}"
        if not sure:
            break
        chain.append(sure[0].id)
    lost = [each.id for each in swaps if each.outcome and each.id not in chain]
    if lost:
        return [], f"acknowledged compare-and-sets are not in the register's history: {lost}"
    return chain, ""


def _sightings(operations: Sequence[Operation], place: dict[str, int]) -> Iterable[_Sighting]:
    """Yield when which place of the chain was certainly reached or seen: began, ended, place.

    A place of -1 stands for a read that found no value of the chain, or more than one.
    """
    for each in operations:
        if each.verb == "append" and each.id in place and each.outcome:
            yield each.began, each.ended, place[each.id], f"the first value {each.id!r}"
        elif each.verb == "cas" and each.outcome:
            yield each.began, each.ended, place[each.id], f"the swap to {each.id!r}"
        elif each.verb == "read" and place:
            held = [id_ for id_ in each.seen if id_.startswith(REGISTER)]
            at = place.get(held[0], -1) if len(held) == 1 else -1
            what = "several values" if len(held) > 1 else "an empty register"
            yield each.began, each.ended, at, f"a read of {held[0] if len(held) == 1 else what!r}"


def _record(id_: str) -> Record:
    return Record(id_, {"id": id_}, id_, kind=KIND)


def _one(id_: str) -> Where:
    return Where(ids=frozenset({id_}))
