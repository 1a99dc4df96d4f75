"""The part of the store contract about users and usage."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace as change

from ..message import new_id
from ..record import Scope, Where
from ..store import Store
from ..store.users import MOST_USERS_AT_ONCE, Usage
from .store_tools import StoreCheck, StoreMaker, assert_refused, ids, record, records
from .tools import ManualClock

AWKWARD_ENDS = [
    "", ":", "a:b", "-", "*", "user-*", "/", "../x", "%", "%3A", "a%3Ab", "?", "[a]", "{a}", "'",
    '"', ";--", "\\", "记忆空间", "é", "e\u0301", "A", "a", " ", "a ", "😀", "长" * 200,
    "x" * 200, "_", "~", "..", ":sessions", ":session:s:order",
]  # fmt: skip
BAD_CURSORS = ["", "!", "=", "YQ==", "A", "YW4\n", "é", "AA", "_____w"]


async def walk(store: Store, ours: str, limit: int = MOST_USERS_AT_ONCE) -> list[str]:
    """Return the users of all pages whose names begin with ``ours``; the store may have others."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.users(cursor=cursor, limit=limit)
        assert len(page.users) <= limit
        found += [user for user in page.users if user.startswith(ours)]
        if page.cursor is None:
            return found
        assert page.cursor != cursor
        cursor = page.cursor


async def check_everybody_who_has_records_is_named_once(make: StoreMaker) -> None:
    store, ours = make(), new_id()
    users = [ours + end for end in AWKWARD_ENDS]
    for user in users:
        await store.append(Scope(user, "s"), [record()])
        await store.append(Scope(user, "another"), [record()])
    for limit in (1, 7, MOST_USERS_AT_ONCE):
        assert sorted(await walk(store, ours, limit)) == sorted(users)


async def check_who_has_nothing_left_is_not_named(make: StoreMaker) -> None:
    clock = ManualClock()
    store, ours = make(clock=clock), new_id()
    one = record()
    passing = change(record(), expires_at=clock.now + 5)
    for name in "abcd":
        await store.append(Scope(ours + name, "s"), [passing if name == "d" else one])
    assert sorted(await walk(store, ours)) == [ours + name for name in "abcd"]
    await store.delete(Scope(ours + "a"))
    await store.delete(Scope(ours + "b", "s"), Where(ids=frozenset({one.id})))
    await store.replace(Scope(ours + "c", "s"), Where(), [])
    clock.advance(5)
    assert await walk(store, ours) == []
    assert [await store.usage(ours + name) for name in "abcd"] == [Usage()] * 4
    await store.append(Scope(ours + "a", "s"), [one])
    assert await walk(store, ours) == [ours + "a"]


async def check_nobody_is_passed_over_while_others_come_and_go(make: StoreMaker) -> None:
    store, ours = make(), new_id()
    staying = [f"{ours}{number:02}" for number in range(0, 40, 2)]
    for user in staying:
        await store.append(Scope(user, "s"), [record()])

    async def come_and_go(number: int) -> None:
        scope = Scope(f"{ours}{number:02}", "s")
        for _ in range(3):
            await store.append(scope, [record()])
            await store.delete(Scope(scope.user))

    async def look() -> None:
        for limit in (1, 3, 10):
            found = [user for user in await walk(store, ours, limit) if user in staying]
            assert sorted(found) == staying

    await asyncio.gather(look(), *(come_and_go(number) for number in range(1, 40, 2)))
    assert sorted(await walk(store, ours)) == staying


async def check_usage_counts_what_a_user_has(make: StoreMaker) -> None:
    store, user, other = make(), new_id(), new_id()
    assert await store.usage(user) == Usage()
    await store.append(Scope(other, "s"), [record("x" * 1000)])
    await store.append(Scope(user, "s"), [record("small")])
    small = await store.usage(user)
    assert (small.records, small.sessions) == (1, 1)
    assert small.bytes >= len("small")
    big = record("长" * 1000)
    await store.append(Scope(user, "t"), [big])
    both = await store.usage(user)
    assert (both.records, both.sessions) == (2, 2)
    assert 3000 <= both.bytes - small.bytes <= 8000  # a record may contain the text twice
    await store.mark(Scope(user), Where(), add={"x"})
    await store.append(Scope(user, "t"), [big])
    assert await store.usage(user) == both
    await store.delete(Scope(user, "t"))
    assert await store.usage(user) == small


async def check_usage_goes_beyond_what_is_read_at_once(make: StoreMaker) -> None:
    store, user, many = make(), new_id(), records(1203)
    assert await store.append(Scope(user, "s"), many[:1100]) == ids(many[:1100])
    await store.append(Scope(user, "t"), many[1100:])
    used = await store.usage(user)
    assert (used.records, used.sessions) == (1203, 2)
    per_record = used.bytes / used.records
    await store.delete(Scope(user, "s"))
    used = await store.usage(user)
    assert abs(used.bytes / used.records - per_record) < 10


async def check_a_cursor_or_limit_that_cannot_be_is_refused(make: StoreMaker) -> None:
    store = make()
    for cursor in BAD_CURSORS:
        await assert_refused(store.users(cursor=cursor))
    for limit in (0, -1, True, 1.5, MOST_USERS_AT_ONCE + 1):
        await assert_refused(store.users(limit=limit))  # type: ignore[arg-type]  # on purpose


USERS: list[StoreCheck] = [
    check_everybody_who_has_records_is_named_once,
    check_who_has_nothing_left_is_not_named,
    check_nobody_is_passed_over_while_others_come_and_go,
    check_usage_counts_what_a_user_has,
    check_usage_goes_beyond_what_is_read_at_once,
    check_a_cursor_or_limit_that_cannot_be_is_refused,
]
