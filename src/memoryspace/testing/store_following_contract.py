"""The part of the store contract about pages, compare-and-set and ``changes``.

The checks are part of ``STORE_CONTRACT``.
"""

from __future__ import annotations

import asyncio

from ..message import new_id
from ..record import Record, Scope, Where
from ..store import Store
from .store_tools import Mirror, StoreCheck, StoreMaker, ids, record, records
from .tools import ManualClock, fresh_scope


def note(id_: str, *marks: str, kind: str = "note", expires_at: float | None = None) -> Record:
    """Return a record that is not a message."""
    return Record(id_, {"said": id_}, id_, frozenset(marks), kind, expires_at=expires_at)


def at(found: Record) -> Where:
    """Return a condition that matches exactly this version of a record."""
    return Where(ids=frozenset({found.id}), after=found.seq - 1, before=found.seq + 1)


async def check_before_and_after_bound_the_seq(make: StoreMaker) -> None:
    store, scope, five = make(), fresh_scope(), records(5)
    await store.append(scope, five)
    seqs = [each.seq for each in await store.select(scope)]
    for whose in (scope, Scope(scope.user)):
        assert ids(await store.select(whose, Where(before=seqs[2]))) == ids(five[:2])
        between = Where(after=seqs[0], before=seqs[4])
        assert ids(await store.select(whose, between)) == ids(five[1:4])
        assert await store.count(whose, between) == 3
        assert await store.select(whose, Where(before=seqs[0])) == []
        assert await store.select(whose, Where(after=seqs[2], before=seqs[1], limit=3)) == []
    assert await store.delete(scope, Where(before=seqs[1])) == [five[0].id]


async def check_pages_are_counted_from_the_end_that_is_asked_for(make: StoreMaker) -> None:
    store, scope, seven = make(), fresh_scope(), records(7)
    await store.append(scope, seven)
    for whose in (scope, Scope(scope.user)):
        assert ids(await store.select(whose, Where(limit=3))) == ids(seven[:3])
        assert ids(await store.select(whose, Where(limit=3, skip=3))) == ids(seven[3:6])
        assert ids(await store.select(whose, Where(limit=3, skip=6))) == ids(seven[6:])
        last = Where(limit=3, skip=6, newest=True)
        assert ids(await store.select(whose, last)) == ids(seven[:1])
        third = Where(limit=2, skip=4, newest=True)
        assert ids(await store.select(whose, third)) == ids(seven[1:3])
        for newest in (False, True):
            assert await store.select(whose, Where(limit=3, skip=7, newest=newest)) == []
            assert await store.select(whose, Where(limit=0, skip=2, newest=newest)) == []
        assert await store.count(whose, Where(limit=3, skip=6)) == 1
    named = frozenset(ids(seven[2:]))
    chosen = Where(ids=named, limit=2, skip=1, newest=True)
    assert ids(await store.select(scope, chosen)) == ids(seven[4:6])
    assert await store.mark(scope, Where(limit=1, skip=1), add={"x"}) == 1
    assert ids(await store.select(scope, Where(marks=frozenset({"x"})))) == [seven[1].id]
    assert await store.delete(scope, Where(limit=1, skip=1, newest=True)) == [seven[5].id]


async def check_every_page_is_a_piece_of_the_whole_answer(make: StoreMaker) -> None:
    store, user = make(), fresh_scope(None)
    await _fill_sessions(store, user.user)
    hidden = frozenset({"hidden", "absent"})
    whole = await store.select(user)
    bounds = {"after": whole[3].seq, "before": whole[-4].seq}
    conditions = [
        Where(),
        Where(kind="note"),
        Where(kind="fact", without=hidden),
        Where(without=hidden),
        Where(kind="note", marks=frozenset({"x"})),
        Where(kind="note", without=hidden, **bounds),  # type: ignore[arg-type]  # numbers
        Where(**bounds),  # type: ignore[arg-type]  # numbers
    ]
    for scope in (user, Scope(user.user, "one"), Scope(user.user, "two"), Scope(user.user, "no")):
        for condition in conditions:
            await _check_pages(store, scope, condition)


async def check_a_replace_if_found_changes_what_it_found(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    await store.append(scope, [note("a"), note("b")])
    first = (await store.select(scope))[0]
    assert await store.replace(scope, at(first), [note("a", "x")], if_found=True) == ["a"]
    second = (await store.select(scope))[-1]
    assert (second.id, {*second.marks}) == ("a", {"x"})
    assert second.seq > first.seq
    assert await store.replace(scope, at(first), [note("a", "late")], if_found=True) == []
    assert await store.replace(scope, at(first), [note("c")], if_found=True) == []
    assert ids(await store.select(scope)) == ["b", "a"]
    assert (await store.select(scope))[-1].marks == {"x"}
    assert await store.replace(scope, at(second), [], if_found=True) == []
    assert ids(await store.select(scope)) == ["b"]


async def check_a_replace_if_found_makes_nothing_out_of_nothing(make: StoreMaker) -> None:
    clock = ManualClock()
    store, scope = make(clock=clock), fresh_scope()
    assert await store.replace(scope, Where(), [note("a")], if_found=True) == []
    assert await store.sessions(scope.user) == []
    await store.append(scope, [note("a", expires_at=clock.now + 5)])
    clock.advance(5)
    assert await store.replace(scope, Where(), [note("b")], if_found=True) == []
    assert await store.select(scope) == []
    await store.append(Scope(scope.user, "other"), [note("a")])
    assert await store.replace(scope, Where(), [note("b")], if_found=True) == []
    assert await store.sessions(scope.user) == ["other"]


async def check_of_those_who_change_one_version_one_wins(make: StoreMaker) -> None:
    scope, stores = fresh_scope(), [make() for _ in range(4)]
    await stores[0].append(scope, [note("a")])
    for _ in range(3):
        (found,) = await stores[0].select(scope)
        calls = [
            stores[n % 4].replace(scope, at(found), [note("a", f"by {n}")], if_found=True)
            for n in range(12)
        ]
        won = [n for n, added in enumerate(await asyncio.gather(*calls)) if added]
        assert len(won) == 1
        (now,) = await stores[0].select(scope)
        assert now.marks == {f"by {won[0]}"}


async def check_sessions_are_those_that_have_living_records(make: StoreMaker) -> None:
    clock = ManualClock()
    store, user = make(clock=clock), fresh_scope(None).user
    assert await store.sessions(user) == []
    for name in ("b", "a", "长:x", "B"):
        await store.append(Scope(user, name), [note("1"), note("2")])
    await store.append(Scope(user, "passing"), [note("1", expires_at=clock.now + 5)])
    await store.append(fresh_scope("another's"), [note("1")])
    assert await store.sessions(user) == ["B", "a", "b", "passing", "长:x"]
    clock.advance(5)
    await store.delete(Scope(user, "a"))
    await store.delete(Scope(user, "b"), Where(ids=frozenset({"1"})))
    assert await store.sessions(user) == ["B", "b", "长:x"]
    await store.delete(Scope(user))
    assert await store.sessions(user) == []


async def check_changes_tell_what_came(make: StoreMaker) -> None:
    store, user, mirror = make(), fresh_scope(None), Mirror()
    assert (await mirror.catch_up(store, user.user)).records == []
    one, two = Scope(user.user, "one"), Scope(user.user, "two")
    await store.append(one, [note("a", "x", kind="fact")])
    await store.append(fresh_scope(), records(2))
    (told,) = (await mirror.catch_up(store, user.user)).records
    assert (told.id, told.kind, told.value) == ("a", "fact", {"said": "a"})
    assert (told.session, {*told.marks}) == ("one", {"x"})
    await store.append(two, [note("a"), note("b")])
    await store.append(one, [note("b")])
    came = await mirror.catch_up(store, user.user)
    assert {(each.session, each.id) for each in came.records} >= {("two", "a"), ("one", "b")}
    assert [each.seq for each in came.records] == sorted({each.seq for each in came.records})
    assert came.gone == frozenset()
    await _check_mirror(store, user.user, mirror)
    everything = await store.changes(user.user)
    assert len(everything.records) == 4


async def check_changes_tell_what_went(make: StoreMaker) -> None:
    store, user, mirror = make(), fresh_scope(None).user, Mirror()
    one, two, three = (Scope(user, name) for name in ("one", "two", "three"))
    for scope in (one, two, three):
        await store.append(scope, [note("a"), note("b"), note("c")])
    await mirror.catch_up(store, user)
    await store.delete(one, Where(ids=frozenset({"b"})))
    (found,) = await store.select(two, Where(ids=frozenset({"a"})))
    await store.replace(two, at(found), [note("a", "new")], if_found=True)
    await store.append(two, [note("d")])
    told = await mirror.catch_up(store, user)
    assert [*told.kept["one"]] == ["a", "c"]
    assert {*told.kept["two"]} == {"a", "b", "c", "d"}
    await _check_mirror(store, user, mirror)
    await store.delete(one)
    told = await mirror.catch_up(store, user)
    assert "one" in told.gone
    await _check_mirror(store, user, mirror)
    await store.delete(three)
    await store.append(three, [note("b")])  # a session of the same name
    await store.delete(Scope(user), Where(ids=frozenset({"c", "d"})))
    await _check_mirror(store, user, mirror)
    await store.delete(two, Where(limit=1, newest=True))
    await _check_mirror(store, user, mirror)


async def check_changes_tell_of_a_user_who_left_and_came_again(make: StoreMaker) -> None:
    store, user, mirror = make(), fresh_scope(None).user, Mirror()
    one, two = Scope(user, "one"), Scope(user, "two")
    for came in (one, two):
        await store.append(came, [note("a"), note("b")])
    await mirror.catch_up(store, user)
    await store.delete(Scope(user))
    await store.append(one, [note("a")])
    told = await mirror.catch_up(store, user)
    assert "two" in told.gone
    await _check_mirror(store, user, mirror)
    await store.delete(one, Where(ids=frozenset({"a"})))
    told = await mirror.catch_up(store, user)
    assert told.gone == {"one"}
    assert mirror.held() == []
    assert (await mirror.catch_up(store, user)).gone == frozenset()
    await store.append(two, [note("a")])
    await _check_mirror(store, user, mirror)


async def check_what_has_expired_is_not_among_what_is_kept(make: StoreMaker) -> None:
    clock = ManualClock()
    store, scope, mirror = make(clock=clock), fresh_scope(), Mirror()
    passing = note("passing", expires_at=clock.now + 5)
    await store.append(scope, [note("a"), passing, note("b")])
    await mirror.catch_up(store, scope.user)
    clock.advance(5)
    assert ids((await store.changes(scope.user)).records) == ["a", "b"]
    await store.delete(scope, Where(ids=frozenset({"a"})))
    told = await mirror.catch_up(store, scope.user)
    assert [*told.kept["session"]] == ["b"]
    await _check_mirror(store, scope.user, mirror)
    await store.append(scope, [note("passing")])
    assert ids((await mirror.catch_up(store, scope.user)).records)[-1] == "passing"


async def check_changes_are_followed_while_many_write(make: StoreMaker) -> None:
    user, mirror, stores = fresh_scope(None).user, Mirror(), [make() for _ in range(4)]

    async def write(number: int) -> None:
        store, scope = stores[number], Scope(user, f"session {number % 3}")
        for step in range(10):
            await store.append(scope, [note(f"{number} {step}"), record()])
            if step % 4 == 3:
                await store.delete(scope, Where(ids=frozenset({f"{number} {step - 1}"})))

    async def follow() -> None:
        while not writing.done():
            await mirror.catch_up(stores[0], user)
            await asyncio.sleep(0)

    writing = asyncio.ensure_future(asyncio.gather(*map(write, range(4))))
    await follow()
    await writing
    await _check_mirror(stores[1], user, mirror)
    assert len(mirror.held()) == 72


async def _check_mirror(store: Store, user: str, mirror: Mirror) -> None:
    await mirror.catch_up(store, user)
    found = await store.select(Scope(user))
    assert mirror.held() == [(each.seq, each.session, each.id) for each in found]


async def _check_pages(store: Store, scope: Scope, condition: Where) -> None:
    whole = ids(await store.select(scope, condition))
    fields = {name: getattr(condition, name) for name in condition.__struct_fields__}
    for size in (1, 4, 50):
        for skip in (0, 1, 5, len(whole) - 1, len(whole)):
            page = {**fields, "limit": size, "skip": max(skip, 0)}
            first = page["skip"]
            expected = whole[first : first + size]
            assert ids(await store.select(scope, Where(**page))) == expected, page
            end = max(len(whole) - first, 0)
            newest = Where(**{**page, "newest": True})
            assert ids(await store.select(scope, newest)) == whole[max(end - size, 0) : end], page
            assert await store.count(scope, newest) == len(whole[max(end - size, 0) : end])


async def _fill_sessions(store: Store, user: str) -> None:
    """Fill sessions with one, two, or mostly other kinds, interleaved and consecutively."""
    for number in range(12):
        await store.append(Scope(user, "one"), [note(new_id())])
        marks = ["hidden"] if number % 3 == 0 else ["x"] if number % 3 == 1 else []
        kind = "fact" if number % 4 else "note"
        await store.append(Scope(user, "two"), [note(new_id(), *marks, kind=kind)])
    await store.append(Scope(user, "three"), [note(new_id()) for _ in range(5)])
    await store.append(Scope(user, "four"), [note(new_id(), kind="log") for _ in range(3)])


FOLLOWING: list[StoreCheck] = [
    check for name, check in list(globals().items()) if name.startswith("check_")
]
