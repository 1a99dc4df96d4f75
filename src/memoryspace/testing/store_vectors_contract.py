"""The contract of stores that keep vectors: see ``store.vectors``.

    for check in VECTORS_CONTRACT:
        await check(make_store)

``make_store`` is the same as for ``STORE_CONTRACT``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidInput
from ..message import new_id
from ..record import Record, Scope, Where
from ..store import KeepsVectors, Kept, Place, Store
from ..store.vectors import MAX_VECTOR_BYTES, place_of
from .store_tools import StoreCheck, StoreMaker, assert_refused, record, records
from .tools import ManualClock, fresh_scope

SPACE = "model/3"
AWKWARD = [":", "a:b", "*", "%3A", "'; --", "\\", "é", "e\u0301", "A", "a", " ", "😀", "x" * 255]
ODD_BYTES = [b"\0", b"\xff" * 400, bytes(range(256)), b"3\0abc", b"\r\n$-1\r\n", b"x" * 5000]


def power_of(store: Store) -> KeepsVectors:
    """Return the store as ``KeepsVectors``."""
    assert isinstance(store, KeepsVectors), "this store keeps no vectors"
    return store


async def stored(store: Store, scope: Scope, new: Sequence[Record]) -> list[Place]:
    """Append records and return their locations."""
    await store.append(scope, new)
    names = frozenset(each.id for each in new)
    return [place_of(each) for each in await store.select(scope, Where(ids=names))]


def numbered(places: Sequence[Place]) -> dict[Place, bytes]:
    """Return a different vector for each place."""
    return {place: f"vector of {number}".encode() for number, place in enumerate(places)}


def by_seq(vectors: dict[Place, bytes]) -> dict[int, bytes]:
    """Return vectors by seq, as a store does."""
    return {place.seq: vector for place, vector in vectors.items()}


async def everything(store: Store, user: str, space: str = SPACE) -> dict[int, bytes]:
    """Return all vectors of a user's live records."""
    places = [place_of(each) for each in await store.select(Scope(user))]
    return await power_of(store).vectors(user, space, places)


async def check_what_was_put_is_there_for_everyone(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    places = await stored(store, scope, records(5))
    given = numbered(places[:3])
    assert await power_of(store).vectors(scope.user, SPACE, places) == {}
    assert await power_of(store).put_vectors(scope.user, SPACE, given) == 3
    for each in (store, make()):
        assert await power_of(each).vectors(scope.user, SPACE, places) == by_seq(given)
        assert await power_of(each).vectors(scope.user, SPACE, places[1:2]) == {
            places[1].seq: b"vector of 1"
        }
    assert await power_of(store).put_vectors(scope.user, SPACE, {places[0]: b"newer"}) == 1
    assert (await everything(store, scope.user))[places[0].seq] == b"newer"
    assert await power_of(store).vectors(scope.user, SPACE, []) == {}
    assert await power_of(store).put_vectors(scope.user, SPACE, {}) == 0


async def check_any_bytes_come_back_as_they_were(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    places = await stored(store, scope, records(len(ODD_BYTES)))
    given = dict(zip(places, ODD_BYTES, strict=True))
    assert await power_of(store).put_vectors(scope.user, SPACE, given) == len(given)
    assert await power_of(store).put_vectors(scope.user, "other", given) == len(given)
    assert await everything(store, scope.user) == by_seq(given)


async def check_spaces_are_kept_apart_and_dropped_one_by_one(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    power, places = power_of(store), await stored(store, scope, records(3))
    await power.put_vectors(scope.user, "old/2", numbered(places))
    await power.put_vectors(scope.user, "new/2", {places[0]: b"new"})
    assert await power.vectors(scope.user, "new/2", places) == {places[0].seq: b"new"}
    size = len(b"vector of 0")
    assert await power.vector_spaces(scope.user) == {
        "old/2": Kept(3, 3 * size),
        "new/2": Kept(1, 3),
    }
    assert await power.drop_vectors(scope.user, "old/2") == 3
    assert await power.drop_vectors(scope.user, "old/2") == 0
    assert await power.vectors(scope.user, "old/2", places) == {}
    assert await power.vector_spaces(scope.user) == {"new/2": Kept(1, 3)}
    assert await power.put_vectors(scope.user, "old/2", numbered(places)) == 3
    assert await power.vectors(scope.user, "old/2", places) == by_seq(numbered(places))


async def check_vectors_go_with_their_records(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    power, places = power_of(store), await stored(store, scope, records(6))
    await power.put_vectors(scope.user, SPACE, numbered(places))
    await store.delete(scope, Where(ids=frozenset({places[0].id})))
    await store.replace(scope, Where(ids=frozenset({places[1].id})), [record("in its place")])
    await store.delete(Scope(scope.user), Where(ids=frozenset({places[2].id})))
    assert await power.vector_spaces(scope.user) == {SPACE: Kept(3, 33)}
    assert set(await power.vectors(scope.user, SPACE, places)) == {each.seq for each in places[3:]}
    await store.delete(scope)
    assert await power.vector_spaces(scope.user) == {}
    again = await stored(store, scope, [record("again", id=places[0].id)])
    assert await power.vectors(scope.user, SPACE, [*places, *again]) == {}
    await power.put_vectors(scope.user, SPACE, numbered(again))
    await store.delete(Scope(scope.user))
    assert await power.vector_spaces(scope.user) == {}


async def check_a_vector_is_of_one_version_of_a_record(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    power, (old,) = power_of(store), await stored(store, scope, [record("one", id="1")])
    await power.put_vectors(scope.user, SPACE, {old: b"of the old one"})
    await store.replace(scope, Where(ids=frozenset({"1"})), [record("two", id="1")])
    (new,) = [place_of(each) for each in await store.select(scope)]
    assert await power.vectors(scope.user, SPACE, [old, new]) == {}
    assert await power.put_vectors(scope.user, SPACE, {old: b"late"}) == 0
    assert await power.vector_spaces(scope.user) == {}
    assert await power.put_vectors(scope.user, SPACE, {old: b"late", new: b"right"}) == 1
    assert await power.vectors(scope.user, SPACE, [old, new]) == {new.seq: b"right"}


async def check_marks_leave_vectors_alone(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    places = await stored(store, scope, records(2))
    await power_of(store).put_vectors(scope.user, SPACE, numbered(places))
    await store.mark(scope, Where(), add={"x"})
    await store.append(scope, [record("known", "y", id=places[0].id)])
    await store.mark(scope, Where(), remove={"x"})
    assert await everything(store, scope.user) == by_seq(numbered(places))


async def check_vectors_expire_with_their_records(make: StoreMaker) -> None:
    clock = ManualClock()
    store, scope = make(clock=clock), fresh_scope()
    power, lasting = power_of(store), record("lasting")
    passing = Record("passing", {"soon": "gone"}, kind="note", expires_at=clock.now + 10)
    places = await stored(store, scope, [lasting, passing])
    assert await power.put_vectors(scope.user, SPACE, numbered(places)) == 2
    clock.advance(10)
    assert set(await power.vectors(scope.user, SPACE, places)) == {places[0].seq}
    assert await power.put_vectors(scope.user, SPACE, numbered(places)) == 1
    assert await power.vector_spaces(scope.user) == {SPACE: Kept(1, 11)}
    anew = await stored(store, scope, [Record("passing", {"a": 1}, kind="note")])
    assert set(await power.vectors(scope.user, SPACE, [*places, *anew])) == {places[0].seq}


async def check_nobody_reaches_anothers_vectors(make: StoreMaker) -> None:
    store, one, two = make(), fresh_scope("same"), fresh_scope("same")
    power = power_of(store)
    ones = await stored(store, one, [record("one", id="1")])
    twos = await stored(store, two, [record("two", id="1")])
    assert await power.put_vectors(one.user, SPACE, {twos[0]: b"forged"}) == 0
    await power.put_vectors(two.user, SPACE, numbered(twos))
    assert await power.vectors(one.user, SPACE, [*ones, *twos]) == {}
    assert await power.vector_spaces(one.user) == {}
    assert await power.drop_vectors(one.user, SPACE) == 0
    await store.delete(Scope(one.user))
    assert await everything(store, two.user) == by_seq(numbered(twos))


async def check_only_the_very_place_will_do(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    power, (place,) = power_of(store), await stored(store, scope, [record()])
    others = [
        Place("another session", place.id, place.seq),
        Place(place.session, "another id", place.seq),
        Place(place.session, place.id, place.seq + 1),
        Place(place.session, place.id, 0),
        Place(place.session, place.id, -1),
    ]
    assert await power.put_vectors(scope.user, SPACE, dict.fromkeys(others, b"astray")) == 0
    await power.put_vectors(scope.user, SPACE, {place: b"right"})
    assert await power.vectors(scope.user, SPACE, others) == {}
    assert await power.vectors(scope.user, SPACE, [*others, place]) == {place.seq: b"right"}


async def check_awkward_names_of_all_sorts_are_told_apart(make: StoreMaker) -> None:
    store, prefix = make(), new_id()[:8]
    scopes = [Scope(name[:247] + prefix, name) for name in AWKWARD]
    for number, scope in enumerate(scopes):
        places = await stored(store, scope, [record("text", id=name) for name in AWKWARD])
        for space in AWKWARD:
            given = {place: f"{number} {space} {place.id}".encode() for place in places}
            assert await power_of(store).put_vectors(scope.user, space, given) == len(AWKWARD)
    for number, scope in enumerate(scopes):
        for space in AWKWARD:
            found = await everything(store, scope.user, space)
            wanted = {f"{number} {space} {name}".encode() for name in AWKWARD}
            assert set(found.values()) == wanted
    assert await power_of(store).drop_vectors(scopes[0].user, "a") == len(AWKWARD)
    assert set(await power_of(store).vector_spaces(scopes[0].user)) == {*AWKWARD} - {"a"}
    assert set(await power_of(store).vector_spaces(scopes[1].user)) == {*AWKWARD}


async def check_what_cannot_be_kept_is_refused(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    power, (place, other) = power_of(store), await stored(store, scope, records(2))
    bad: list[tuple[str, str, dict[Place, Any]]] = [
        (scope.user, "", {place: b"x"}),
        (scope.user, "a\0b", {place: b"x"}),
        ("", SPACE, {place: b"x"}),
        (scope.user, SPACE, {other: b"x", place: b""}),
        (scope.user, SPACE, {other: b"x", place: b"x" * (MAX_VECTOR_BYTES + 1)}),
    ]
    for user, space, vectors in bad:
        await assert_refused(power.put_vectors(user, space, vectors))
    for user, space in (("", SPACE), (scope.user, "a\nb")):
        await assert_refused(power.vectors(user, space, [place]))
        await assert_refused(power.drop_vectors(user, space))
    assert await power.vector_spaces(scope.user) == {}
    try:
        await power.put_vectors(scope.user, SPACE, {place: "text"})  # type: ignore[dict-item]
    except (TypeError, InvalidInput):
        return
    raise AssertionError("a text was accepted as a vector")


async def check_thousands_of_vectors_in_one_call(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    power, places = power_of(store), await stored(store, scope, records(6000))
    given = {place: f"{place.seq}".encode().ljust(400, b".") for place in places}
    assert await power.put_vectors(scope.user, SPACE, given) == 6000
    assert await power.vectors(scope.user, SPACE, places) == by_seq(given)
    assert await power.vector_spaces(scope.user) == {SPACE: Kept(6000, 6000 * 400)}
    assert len(await store.delete(scope, Where(limit=5999))) == 5999
    assert await power.vector_spaces(scope.user) == {SPACE: Kept(1, 400)}


async def check_many_may_put_the_same_vectors(make: StoreMaker) -> None:
    scope, stores = fresh_scope(), [make() for _ in range(4)]
    places = await stored(stores[0], scope, records(50))
    kept = await asyncio.gather(
        *(
            power_of(stores[number % 4]).put_vectors(scope.user, SPACE, numbered(places))
            for number in range(12)
        )
    )
    assert kept == [50] * 12
    assert await everything(stores[0], scope.user) == by_seq(numbered(places))


async def check_no_vector_outlives_a_deletion_it_races_with(make: StoreMaker) -> None:
    scope, stores = fresh_scope(), [make() for _ in range(2)]
    for _ in range(10):
        places = await stored(stores[0], scope, records(20))
        halves = places[:10], places[10:]
        gone = Where(ids=frozenset(each.id for each in halves[0]))
        await asyncio.gather(
            power_of(stores[0]).put_vectors(scope.user, SPACE, numbered(places)),
            stores[1].delete(scope, gone),
            power_of(stores[1]).put_vectors(scope.user, SPACE, numbered(places)),
        )
        assert set(await everything(stores[0], scope.user)) == {each.seq for each in halves[1]}
        await asyncio.gather(
            stores[1].delete(Scope(scope.user)),
            power_of(stores[0]).put_vectors(scope.user, SPACE, numbered(places)),
        )
        assert await power_of(stores[0]).vector_spaces(scope.user) == {}


VECTORS_CONTRACT: list[StoreCheck] = [
    check for name, check in list(globals().items()) if name.startswith("check_")
]
