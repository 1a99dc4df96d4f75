"""The store contract: coroutines that check stores made by a factory.

    for check in STORE_CONTRACT:
        await check(make_store)

``make_store(**options)`` must return a store on the same data each time and pass on ``clock``.
Each check uses its own users, so they can share one database and run in any order.
"""

from __future__ import annotations

import asyncio
import math

from ..message import Msg, new_id
from ..record import Origin, Record, Scope, Where
from .store_following_contract import FOLLOWING
from .store_tools import StoreCheck, StoreMaker, assert_refused, ids, record, records
from .store_users_contract import USERS
from .tools import ManualClock, fresh_scope

__all__ = ["AWKWARD_IDS", "BAD_IDS", "STORE_CONTRACT", "StoreCheck", "StoreMaker"]

AWKWARD_IDS = [
    ":", "a:b", "-", "a-b", "*", "user-*", "/", "../x", "%", "%3A", "a%3Ab", "?", "[a]", "{a}",
    "'", '"', "; DROP TABLE memoryspace_record; --", "\\", "记忆空间", "é", "e\u0301", "A", "a",
    " ", "a ", "😀", "x" * 255, "长" * 255, "None", "null", "_", "a_b", "~", "..", ".",
]  # fmt: skip
BAD_IDS = ["", "x" * 256, "😀" * 255, "a\0b", "a\nb", "\x1f", "\ud800"]


async def check_append_returns_the_ids_it_really_added(make: StoreMaker) -> None:
    store, scope, three = make(), fresh_scope(), records(3)
    assert await store.append(scope, three[:2]) == ids(three[:2])
    assert await store.append(scope, three) == ids(three[2:])
    assert await store.append(scope, three) == []
    assert await store.append(scope, []) == []
    assert ids(await store.select(scope)) == ids(three)


async def check_an_id_given_twice_in_one_call_is_kept_once(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    first, again, other = record("first", "x", id="1"), record("again", "y", id="1"), record()
    assert await store.append(scope, [first, again, other]) == ["1", other.id]
    found = await store.select(scope)
    assert ids(found) == ["1", other.id]
    assert found[0].text == "first"
    assert found[0].marks == {"x", "y"}


async def check_appending_a_known_id_unites_marks(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    plain, marked = record(), record("b", "x")
    await store.append(scope, [plain, marked])
    for each in (plain, marked):
        assert await store.append(scope, [record("ignored", "y", id=each.id)]) == []
    assert [each.marks for each in await store.select(scope)] == [{"y"}, {"x", "y"}]
    assert [each.text for each in await store.select(scope)] == ["hello", "b"]


async def check_order_is_that_of_the_conversation(make: StoreMaker) -> None:
    store, scope, five = make(), fresh_scope(), records(5)
    for each in five:
        await store.append(scope, [each])
    for each in reversed(five):
        await store.mark(scope, Where(ids=frozenset({each.id})), add={"x"})
    assert ids(await store.select(scope, Where(marks=frozenset({"x"})))) == ids(five)
    some = frozenset(ids([five[3], five[0]]))
    assert ids(await store.select(scope, Where(ids=some))) == ids([five[0], five[3]])


async def check_every_field_of_where_narrows(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    a, b, c, d = record("a"), record("b", "x"), record("c", "y"), record("d", "x", "y")
    note = Record(new_id(), {"fact": 1}, kind="note")
    await store.append(scope, [a, b, c, d, note])

    async def chosen(where: Where) -> list[str]:
        found = ids(await store.select(scope, where))
        assert await store.count(scope, where) == len(found)
        return found

    x, y = frozenset({"x"}), frozenset({"y"})
    assert await chosen(Where()) == ids([a, b, c, d, note])
    assert await chosen(Where(kind="note")) == [note.id]
    assert await chosen(Where(kind="message")) == ids([a, b, c, d])
    assert await chosen(Where(kind="absent")) == []
    assert await chosen(Where(marks=x)) == ids([b, d])
    assert await chosen(Where(marks=x | y)) == ids([b, c, d])
    assert await chosen(Where(marks=frozenset({"absent"}))) == []
    assert await chosen(Where(without=x, kind="message")) == ids([a, c])
    assert await chosen(Where(marks=x, without=y)) == [b.id]
    assert await chosen(Where(ids=frozenset())) == []
    assert await chosen(Where(ids=frozenset({a.id, d.id, "absent"}), marks=x)) == [d.id]
    seqs = [each.seq for each in await store.select(scope)]
    assert await chosen(Where(after=seqs[2])) == ids([d, note])
    assert await chosen(Where(after=seqs[0], marks=x)) == ids([b, d])
    assert await chosen(Where(limit=2)) == ids([a, b])
    assert await chosen(Where(limit=2, newest=True)) == ids([d, note])
    assert await chosen(Where(limit=1, marks=y)) == [c.id]
    assert await chosen(Where(limit=0)) == []
    assert await chosen(Where(limit=99, newest=True)) == ids([a, b, c, d, note])


async def check_a_mark_matches_only_as_a_whole(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    short, long, upper = record("1", "x"), record("2", "xx"), record("3", "X")
    await store.append(scope, [short, long, upper])
    assert ids(await store.select(scope, Where(marks=frozenset({"x"})))) == [short.id]
    without = Where(without=frozenset({"x"}))
    assert ids(await store.select(scope, without)) == ids([long, upper])


async def check_marking_is_idempotent_and_counts_changes(make: StoreMaker) -> None:
    store, scope, three = make(), fresh_scope(), records(3)
    await store.append(scope, three)
    first_two = Where(ids=frozenset(ids(three[:2])))
    assert await store.mark(scope, first_two, add={"x"}) == 2
    assert await store.mark(scope, first_two, add={"x"}) == 0
    assert await store.mark(scope, Where(), add={"x", "y"}) == 3
    assert await store.mark(scope, Where(marks=frozenset({"x"})), add={"z"}, remove={"x"}) == 3
    assert await store.select(scope, Where(marks=frozenset({"x"}))) == []
    assert await store.count(scope, Where(without=frozenset({"x"}))) == 3
    assert await store.mark(scope, Where(), remove={"x"}) == 0
    assert await store.mark(scope, Where(ids=frozenset({"absent"})), add={"x"}) == 0
    assert await store.mark(scope, Where(limit=1, newest=True), remove={"y", "z"}) == 1
    found = await store.select(scope)
    assert [each.marks for each in found] == [{"y", "z"}, {"y", "z"}, set()]


async def check_delete_returns_what_it_removed(make: StoreMaker) -> None:
    store, scope, six = make(), fresh_scope(), records(6)
    await store.append(scope, six)
    await store.mark(scope, Where(ids=frozenset(ids(six[:2]))), add={"x", "y"})
    both = frozenset({"x", "y"})
    assert sorted(await store.delete(scope, Where(marks=both))) == sorted(ids(six[:2]))
    assert await store.delete(scope, Where(ids=frozenset({six[0].id, "absent"}))) == []
    assert await store.delete(scope, Where(limit=1, newest=True)) == [six[5].id]
    assert sorted(await store.delete(scope)) == sorted(ids(six[2:5]))
    assert await store.delete(scope) == []
    assert await store.count(scope) == 0
    assert await store.append(scope, six[:1]) == ids(six[:1])
    assert (await store.select(scope))[0].marks == set()


async def check_replace_removes_and_appends_in_one_step(make: StoreMaker) -> None:
    store, scope, four, new = make(), fresh_scope(), records(4), records(2)
    await store.append(scope, four)
    middle = Where(ids=frozenset(ids(four[1:3])))
    assert await store.replace(scope, middle, new) == ids(new)
    assert ids(await store.select(scope)) == ids([four[0], four[3], *new])
    assert await store.replace(scope, Where(), [four[0]]) == [four[0].id]
    assert ids(await store.select(scope)) == [four[0].id]
    assert await store.replace(scope, Where(), []) == []
    assert await store.count(scope) == 0


async def check_a_replace_that_cannot_be_done_changes_nothing(make: StoreMaker) -> None:
    store, scope, two = make(), fresh_scope(), records(2)
    await store.append(scope, two)
    for bad in (record(id=""), Record("1", "text", kind="")):
        await assert_refused(store.replace(scope, Where(), [record(), bad]))
        await assert_refused(store.append(scope, [record(), bad]))
    assert ids(await store.select(scope)) == ids(two)


async def check_tenants_never_meet(make: StoreMaker) -> None:
    store = make()
    one, two = fresh_scope("same"), fresh_scope("same")
    await store.append(one, [record("one", "x", id="1")])
    await store.append(two, [record("two", "x", id="1"), record("more", id="2")])
    for theirs in (two, Scope(two.user)):
        assert await store.count(theirs) == 2
    assert await store.mark(one, Where(), add={"y"}, remove={"x"}) == 1
    assert await store.delete(Scope(one.user), Where(ids=frozenset({"1", "2"}))) == ["1"]
    assert await store.replace(one, Where(), []) == []
    found = await store.select(two)
    assert [(each.text, {*each.marks}) for each in found] == [("two", {"x"}), ("more", set())]


async def check_a_user_has_all_its_sessions(make: StoreMaker) -> None:
    store, user = make(), fresh_scope(None)
    morning, evening = Scope(user.user, "morning"), Scope(user.user, "evening")
    first, second, third = records(3)
    await store.append(morning, [first])
    await store.append(evening, [second])
    await store.append(morning, [third])
    found = await store.select(user)
    assert ids(found) == ids([first, second, third])
    assert [each.session for each in found] == ["morning", "evening", "morning"]
    assert ids(await store.select(user, Where(limit=1, newest=True))) == [third.id]
    assert await store.mark(user, Where(), add={"x"}) == 3
    assert await store.count(user, Where(marks=frozenset({"x"}))) == 3
    assert await store.delete(evening) == [second.id]
    assert sorted(await store.delete(user)) == sorted(ids([first, third]))
    assert await store.select(user) == []


async def check_writing_needs_a_session(make: StoreMaker) -> None:
    store, user = make(), fresh_scope(None)
    await assert_refused(store.append(user, records(1)))
    await assert_refused(store.replace(user, Where(), records(1)))


async def check_awkward_ids_are_told_apart(make: StoreMaker) -> None:
    store, prefix = make(), new_id()[:8]
    scopes = [Scope(user[:247] + prefix, user) for user in AWKWARD_IDS]
    scopes += [Scope(prefix + "a:session:b", "c"), Scope(prefix + "a", "session:b:c")]
    for number, scope in enumerate(scopes):
        awkward = [record(f"{number}", name, id=name) for name in AWKWARD_IDS]
        assert await store.append(scope, awkward) == AWKWARD_IDS
    for number, scope in enumerate(scopes):
        found = await store.select(scope)
        assert [(each.id, each.text, {*each.marks}) for each in found] == [
            (name, f"{number}", {name}) for name in AWKWARD_IDS
        ]
    for name in AWKWARD_IDS:
        where = Where(marks=frozenset({name}))
        assert ids(await store.select(scopes[0], where)) == [name]
        assert await store.delete(scopes[0], Where(ids=frozenset({name}))) == [name]
    assert await store.count(scopes[0]) == 0
    assert await store.count(scopes[1]) == len(AWKWARD_IDS)


async def check_bad_ids_are_refused(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    for bad in BAD_IDS:
        await assert_refused(store.append(scope, [record(id=bad)]))
        await assert_refused(store.append(scope, [record("x", bad)]))
        await assert_refused(store.mark(scope, Where(), add={bad}))
    assert await store.count(scope) == 0


async def check_values_are_not_shared_with_callers(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    msg = Msg("Ann", [{"type": "text", "text": "as said"}], "user", {"list": [1]})
    note = {"list": [1]}
    await store.append(scope, [Record(msg.id, msg), Record("note", note, kind="note")])
    msg.content[0]["text"] = msg.name = "changed"  # type: ignore[index,typeddict-unknown-key]  # a block
    msg.metadata["list"].append(2)
    note["list"].append(2)

    async def stored() -> tuple[Msg, dict[str, list[int]]]:
        first, second = (each.value for each in await store.select(scope))
        assert isinstance(first, Msg)
        assert isinstance(second, dict)
        return first, second

    first, second = await stored()
    first.metadata["list"].append(3)
    first.get_content_blocks()[0]["text"] = "changed"  # type: ignore[typeddict-unknown-key]  # a text block
    second["list"].append(3)
    first, second = await stored()
    assert first.name == "Ann"
    assert first.metadata == second == {"list": [1]}
    assert first.content == [{"type": "text", "text": "as said"}]


async def check_all_fields_survive(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    odd = "\0 \ud83d 长 😀 \u2028 ' \" \\ \x1f\n"
    metadata = {"float": 0.1, "big": 2**60, "nan": math.nan, "inf": -math.inf, "odd": [odd, None]}
    msg = Msg("Ann", [{"type": "text", "text": odd}], "assistant", metadata, invocation_id="call")
    first = Record(
        msg.id,
        msg,
        text="what search sees",
        marks=frozenset({"x"}),
        created_at=1_700_000_000.123,
        expires_at=4_000_000_000.5,
        importance=0.875,
        pinned=True,
        origin=Origin("deriver", ("a", "b")),
    )
    second = Record("note", {"fact": [1, {"deep": "value"}]}, kind="note")
    third = Record("text", "a summary", text="a summary", kind="summary")
    await store.append(scope, [first, second, third])
    found = await store.select(scope)
    for stored, given in zip(found, [first, second, third], strict=True):
        for name in ("id", "text", "marks", "kind", "created_at", "expires_at", "importance"):
            assert getattr(stored, name) == getattr(given, name), name
        assert (stored.pinned, stored.origin, stored.session) == (
            given.pinned,
            given.origin,
            scope.session,
        )
    assert found[1].value == second.value
    assert found[2].value == third.value
    message = found[0].value
    assert isinstance(message, Msg)
    assert repr(message) == repr(msg)  # nan does not equal itself, but its repr does


async def check_an_expired_record_is_gone_for_every_verb(make: StoreMaker) -> None:
    clock = ManualClock()
    store, scope = make(clock=clock), fresh_scope()
    lasting = record("lasting")
    passing = Record("passing", Msg("Ann", "soon gone", "user"), expires_at=clock.now + 10)
    await store.append(scope, [lasting, passing])
    assert await store.count(scope) == 2
    clock.advance(10)
    everything = Scope(scope.user)
    assert ids(await store.select(scope)) == ids(await store.select(everything)) == [lasting.id]
    assert await store.count(scope) == await store.count(everything) == 1
    assert await store.mark(scope, Where(), add={"x"}) == 1
    assert await store.delete(scope, Where(ids=frozenset({"passing"}))) == []
    assert await store.append(scope, [record("anew", id="passing")]) == ["passing"]
    clock.advance(1000)
    assert [each.text for each in await store.select(scope)] == ["lasting", "anew"]


async def check_seq_grows_over_all_sessions_of_a_user(make: StoreMaker) -> None:
    store, one = make(), fresh_scope()
    two = Scope(one.user, "another session")
    await store.append(one, records(2))
    await store.append(two, records(2))
    await store.append(one, records(1))
    ones = [each.seq for each in await store.select(one)]
    twos = [each.seq for each in await store.select(two)]
    assert ones[0] < ones[1] < twos[0] < twos[1] < ones[2]
    await store.delete(one, Where(limit=1, newest=True))
    await store.append(one, records(1))
    assert (await store.select(one))[-1].seq > ones[2]


async def check_thousands_of_ids_in_one_call(make: StoreMaker) -> None:
    store, scope, many = make(), fresh_scope(), records(12_000)
    assert await store.append(scope, many) == ids(many)
    most = Where(ids=frozenset(ids(many[:11_500])))
    assert await store.count(scope, most) == 11_500
    assert ids(await store.select(scope, most)) == ids(many[:11_500])
    assert await store.mark(scope, most, add={"x"}) == 11_500
    assert len(await store.delete(scope, most)) == 11_500
    assert ids(await store.select(scope)) == ids(many[11_500:])


async def check_concurrent_appends_are_all_kept_once(make: StoreMaker) -> None:
    scope, many = fresh_scope(), records(200)
    stores = [make() for _ in range(4)]
    calls = [stores[n % 4].append(scope, [each]) for n, each in enumerate(many)]
    added = await asyncio.gather(*calls)
    assert added == [[each.id] for each in many]
    found = await stores[0].select(scope)
    assert sorted(ids(found)) == sorted(ids(many))
    assert [each.seq for each in found] == sorted({each.seq for each in found})


async def check_one_record_appended_by_many_is_kept_once(make: StoreMaker) -> None:
    store, scope, one = make(), fresh_scope(), record()
    added = await asyncio.gather(*(store.append(scope, [one]) for _ in range(20)))
    assert sorted(added, reverse=True) == [[one.id], *[[]] * 19]
    assert await store.count(scope) == 1


async def check_concurrent_marks_are_all_kept(make: StoreMaker) -> None:
    store, scope = make(), fresh_scope()
    await store.append(scope, records(10))
    marks = [f"mark-{number}" for number in range(20)]
    changed = await asyncio.gather(*(store.mark(scope, Where(), add={mark}) for mark in marks))
    assert changed == [10] * 20
    assert all(each.marks == set(marks) for each in await store.select(scope))


STORE_CONTRACT: list[StoreCheck] = [
    *(check for name, check in list(globals().items()) if name.startswith("check_")),
    *FOLLOWING,
    *USERS,
]
