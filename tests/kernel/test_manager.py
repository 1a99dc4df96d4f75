"""``MemoryManager``: objects in and out, who may have how much, and what is refused."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from memoryspace.errors import InvalidInput, NotSerializable, OutOfSpace, UnknownObject
from memoryspace.kernel import (
    GarbageCollector,
    MarkAndSweepCollector,
    MemoryManager,
    MemoryObject,
    NewObject,
    Quotas,
    Runtime,
    TimeToLiveCollector,
)
from memoryspace.kernel.heap.object import MAX_DEPTH, importance_score
from memoryspace.kernel.heap.ops import FreeOp
from memoryspace.testing import ManualClock, capture

CAPACITY = 1 << 16


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def manager(clock: ManualClock) -> Iterator[MemoryManager]:
    with MemoryManager(CAPACITY, runtime=Runtime(clock=clock)) as manager:
        yield manager
        manager.check()


def state_of(manager: MemoryManager) -> dict[str, Any]:
    """Everything that counts; free blocks may wait, and cycles be run, in vain."""
    seen = [
        (obj.id, obj.payload, obj.tags, obj.importance, obj.expires_at, obj.tenant, obj.size)
        for obj in manager.objects()
    ]
    shown = manager.debug_snapshot()
    del shown["fragmentation"], shown["gc_cycles"]
    return {**shown, "objects": seen}


def nested(depth: int) -> dict[str, Any]:
    payload: dict[str, Any] = {}
    for _ in range(depth):
        payload = {"in": payload}
    return payload


class Colour(StrEnum):
    RED = "red"


# -- in and out ------------------------------------------------------------------------------------


def test_what_is_stored_is_what_is_loaded(manager: MemoryManager, clock: ManualClock) -> None:
    payload = {"text": "tea", "n": [1, -(2**63), 2**64 - 1, 1.5, None, True], "raw": b"\0\xff"}
    made = manager.store(
        payload, tags=["b", "a"], importance=0.9, ttl=60, embedding=(1, 2.5), tenant="ann"
    )
    found = manager.load(made.id)
    assert found.payload == payload
    assert found.embedding == [1.0, 2.5]
    assert (found.tags, found.importance, found.tenant) == ({"a", "b"}, 0.9, "ann")
    assert (found.created_at, found.expires_at, found.ttl) == (clock(), clock() + 60, 60)
    assert found.size == manager.usage("ann") > 0
    assert found.id == made.id
    assert found.id in manager
    assert manager.ids() == [found.id]
    assert len(manager) == 1


def test_a_name_of_ones_own_is_the_id(manager: MemoryManager) -> None:
    assert manager.store({"a": 1}, id="note 长").id == "note 长"
    assert manager.load("note 长").payload == {"a": 1}
    with pytest.raises(InvalidInput, match="'note 长' exists"):
        manager.store({}, id="note 长")
    manager.free_object("note 长")
    assert "note 长" not in manager
    assert manager.store({"a": 2}, id="note 长").payload == {"a": 2}


@pytest.mark.parametrize("name", ["", "#1", "#100000000", "a\0", "\ud800", "x" * 10_000])
def test_a_name_that_cannot_be_is_refused(manager: MemoryManager, name: str) -> None:
    before = state_of(manager)
    with pytest.raises(InvalidInput):
        manager.store({}, id=name)
    assert state_of(manager) == before


def test_an_object_in_hand_is_a_copy(manager: MemoryManager) -> None:
    payload = {"list": [1]}
    made = manager.store(payload, tags=["t"])
    payload["list"].append(2)
    made.payload["list"].append(3)
    made.importance = 99.0
    manager.load(made.id).payload["list"].append(4)
    found = manager.peek(made.id)
    assert found.payload == {"list": [1]}
    assert found.importance == 0.5
    manager.update(made.id, payload={"list": []})
    assert found.payload == {"list": [1]}, "as it was when it was looked at"


def test_a_load_counts_as_a_use_and_a_peek_does_not(
    manager: MemoryManager, clock: ManualClock
) -> None:
    made = manager.store({})
    clock.advance(5)
    manager.peek(made.id)
    assert next(iter(manager.objects())).access_count == 0
    assert manager.peek(made.id).last_accessed_at == clock() - 5
    assert manager.load(made.id).access_count == 1
    assert manager.peek(made.id).last_accessed_at == clock()


def test_importance_fades_and_references_add_to_it(
    manager: MemoryManager, clock: ManualClock
) -> None:
    target, source = manager.store({}, importance=0.5), manager.store({})
    assert target.importance_score(clock()) == pytest.approx(0.35 + 0.3)
    assert target.importance_score(clock() + 3600) == pytest.approx(0.35 + 0.15)
    manager.add_reference(source.id, target.id)
    assert manager.peek(target.id).importance_score(clock()) == pytest.approx(0.35 + 0.3 + 0.1)
    assert importance_score(1.0, -5, 0) == 1.0, "a clock that was set back counts for nothing"


def test_an_object_of_another_space_is_taken_over(clock: ManualClock) -> None:
    with (
        MemoryManager(CAPACITY, runtime=Runtime(clock=clock)) as old,
        MemoryManager(CAPACITY, runtime=Runtime(clock=clock)) as new,
    ):
        made = old.store({"a": 1}, id="x", tags=["t"], ttl=50, importance=0.8, tenant="ann")
        clock.advance(20)
        there = new.store_existing(made)
        assert (there.id, there.payload, there.tags) == ("x", {"a": 1}, {"t"})
        assert (there.importance, there.tenant, there.size) == (0.8, "ann", made.size)
        assert there.expires_at == made.expires_at
        clock.advance(30)
        assert "x" not in new
        nameless = new.store_existing(old.store({}))
        assert nameless.id in new


# -- changing --------------------------------------------------------------------------------------


def test_an_update_changes_what_is_given_and_nothing_else(
    manager: MemoryManager, clock: ManualClock
) -> None:
    made = manager.store({"a": 1}, tags=["t"], ttl=50, embedding=[1.0], tenant="ann", id="x")
    other = manager.store({})
    manager.add_reference(other.id, "x")
    clock.advance(10)
    manager.update("x", payload={"a": "longer " * 50})
    found = manager.peek("x")
    assert found.payload == {"a": "longer " * 50}
    assert (found.tags, found.importance, found.embedding) == ({"t"}, 0.5, [1.0])
    assert found.expires_at == made.expires_at
    assert found.reference_count == 1
    assert manager.usage("ann") == found.size > made.size
    manager.update("x", tags=["u", "v"], importance=0.1, ttl=5)
    found = manager.peek("x")
    assert (found.tags, found.importance, found.expires_at) == ({"u", "v"}, 0.1, clock() + 5)
    assert found.payload == {"a": "longer " * 50}
    manager.update("x", tags=[])
    assert manager.peek("x").tags == frozenset()
    assert manager.references(other.id) == ["x"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"payload": {"a": {1, 2}}}, NotSerializable),
        ({"payload": {"a": 1}, "importance": float("nan")}, InvalidInput),
        ({"payload": {"a": 1}, "ttl": "soon"}, InvalidInput),
        ({"payload": {"a": 1}, "tags": [1]}, TypeError),
        ({"payload": {"a": "x" * CAPACITY}}, OutOfSpace),
    ],
)
def test_a_bad_update_changes_nothing(
    manager: MemoryManager, change: dict[str, Any], error: type[Exception]
) -> None:
    manager.store({"a": 0}, id="x", tags=["t"], root=True)
    before = state_of(manager)
    with pytest.raises(error):
        manager.update("x", **change)
    assert state_of(manager) == before


def test_freed_objects_are_gone_with_their_references(manager: MemoryManager) -> None:
    ids = [manager.store({}).id for _ in range(4)]
    manager.add_reference(ids[0], ids[1])
    manager.add_reference(ids[1], ids[2])
    manager.free_object(ids[1])
    assert manager.references(ids[0]) == []
    assert manager.peek(ids[2]).reference_count == 0
    assert manager.free_many([ids[0], ids[0], ids[1], "nobody", ids[3]]) == 2
    assert manager.ids() == [ids[2]]
    assert manager.free_many([]) == 0


def test_unknown_ids_are_told(manager: MemoryManager) -> None:
    known = manager.store({}).id
    before = state_of(manager)
    for unknown in ("nobody", "#1", "#", "#zz", "#-100000000", "#f00000000", ""):
        assert unknown not in manager
        for use in (
            manager.load,
            manager.peek,
            manager.free_object,
            manager.update,
            manager.pin,
            manager.unpin,
            manager.is_pinned,
            manager.is_root,
            manager.add_root,
            manager.references,
            lambda each: manager.add_reference(known, each),
            lambda each: manager.remove_reference(each, known),
        ):
            with pytest.raises(UnknownObject, match=f"'{unknown}'"):
                use(unknown)
    assert 5 not in manager
    assert state_of(manager) == before


def test_a_slot_used_again_does_not_answer_to_its_old_id(manager: MemoryManager) -> None:
    old = [manager.store({"old": number}).id for number in range(5)]
    manager.free_many(old)
    new = [manager.store({"new": number}).id for number in range(5)]
    slots = [{int(each[1:], 16) & 0xFFFFFFFF for each in ids} for ids in (old, new)]
    assert slots[0] == slots[1]
    assert not set(old) & set(new)
    for each in old:
        assert each not in manager
        with pytest.raises(UnknownObject):
            manager.free_object(each)
    assert manager.free_many(old) == 0
    assert manager.ids()
    assert sorted(manager.ids()) == sorted(new)


# -- several at once -------------------------------------------------------------------------------


def test_several_objects_are_stored_in_order(manager: MemoryManager) -> None:
    gap = manager.store({}).id
    manager.store({})
    manager.free_object(gap)
    made = manager.store_many(
        [NewObject({"n": number}, tags=("t",), tenant="ann") for number in range(1500)]
    )
    assert [each.payload["n"] for each in made] == list(range(1500))
    assert [manager.peek(each.id).payload for each in made] == [each.payload for each in made]
    assert len(manager) == 1501
    assert manager.store_many([]) == []


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (NewObject({"a": object()}), NotSerializable),
        (NewObject({}, tags=[1]), TypeError),
        (NewObject({}, tags=["a", ""]), InvalidInput),
        (NewObject({}, tags=([],)), TypeError),
        (NewObject({}, id="first"), InvalidInput),
        (NewObject({}, id="there"), InvalidInput),
        (NewObject({"a": "x" * CAPACITY}), OutOfSpace),
        (NewObject({"a": "x" * 10 * CAPACITY}), OutOfSpace),
        (NewObject({"a": "x" * 600}, tenant="ann"), OutOfSpace),
        (NewObject({}, size=5000), OutOfSpace),
        (NewObject({}, created_at="then"), InvalidInput),  # type: ignore[arg-type]  # on purpose
        (NewObject({}, expires_at=float("nan")), InvalidInput),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_one_bad_object_and_none_is_stored(
    clock: ManualClock, bad: NewObject, error: type[Exception], alone: bool
) -> None:
    with MemoryManager(
        CAPACITY, runtime=Runtime(clock=clock), quotas=Quotas(by_tenant={"ann": 500}, budget=4000)
    ) as manager:
        manager.store({"a": 1}, id="there", root=True)
        manager.store({"a": 1}, id="first", root=True)
        before = state_of(manager)
        others = [] if alone else [NewObject({"n": 1}), NewObject({"n": 2}, tags=("t",))]
        with pytest.raises(error):
            manager.store_many([*others, bad])
        assert state_of(manager) == before
        manager.check()


def test_two_of_one_name_are_refused(manager: MemoryManager) -> None:
    with pytest.raises(InvalidInput, match="same id"):
        manager.store_many([NewObject({}, id="x"), NewObject({}, id="x")])
    assert manager.ids() == []


# -- what can be stored ----------------------------------------------------------------------------

HOSTILE: dict[str, Any] = {
    "a set": {"a": {1, 2}},
    "a date": {"a": datetime(2025, 1, 1, tzinfo=UTC)},
    "a key that is no text": {1: "a"},
    "such a key further in": {"a": [{"b": {None: 1}}]},
    "an int beyond 64 bits": {"a": 2**64},
    "an int below 64 bits": {"a": [-(2**63) - 1]},
    "a lone surrogate": {"a": "\ud800"},
    "a lone surrogate in a key": {"\udfff": 1},
    "deep nesting": nested(MAX_DEPTH + 5),
    "very deep nesting": nested(100_000),
    "an object": {"a": object()},
    "a class": {"a": int},
    "a complex number": {"a": 1j},
    "an enum member": {"a": Colour.RED},
    "a bytearray": {"a": bytearray(b"x")},
    "a generator": {"a": (number for number in range(3))},
}


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=list(HOSTILE))
def test_what_would_not_come_back_the_same_is_refused(
    manager: MemoryManager, payload: dict[str, Any]
) -> None:
    manager.store({"a": 1}, id="x")
    before = state_of(manager)
    with pytest.raises(NotSerializable, match="use plain data"):
        manager.store(payload)
    with pytest.raises(NotSerializable):
        manager.update("x", payload=payload)
    assert state_of(manager) == before


def test_a_payload_that_holds_itself_is_refused(manager: MemoryManager) -> None:
    payload: dict[str, Any] = {}
    payload["self"] = [payload]
    with pytest.raises(NotSerializable, match="deeper"):
        manager.store(payload)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"": ""},
        nested(MAX_DEPTH - 1),
        {"a": [float("inf"), 1e-300, -0.0]},
        {"a\0b": "\U0001f375 长 \x7f\n"},
        {"a": [[], {}, [[{}]]]},
    ],
)
def test_plain_data_comes_back_the_same(manager: MemoryManager, payload: dict[str, Any]) -> None:
    assert manager.load(manager.store(payload).id).payload == payload


def test_any_mapping_and_tuples_come_back_as_plain_data(manager: MemoryManager) -> None:
    payload: Mapping[str, Any] = MappingProxyType({"a": (1, (2, 3))})
    assert manager.load(manager.store(payload).id).payload == {"a": [1, [2, 3]]}


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("payload", None, TypeError),
        ("payload", [("a", 1)], TypeError),
        ("payload", "text", TypeError),
        ("importance", "high", InvalidInput),
        ("importance", None, InvalidInput),
        ("importance", True, InvalidInput),
        ("importance", float("nan"), InvalidInput),
        ("importance", float("inf"), InvalidInput),
        ("importance", 10**400, InvalidInput),
        ("ttl", "soon", InvalidInput),
        ("ttl", float("nan"), InvalidInput),
        ("ttl", float("inf"), InvalidInput),
        ("size", -1, InvalidInput),
        ("size", 2**32, InvalidInput),
        ("size", 1.5, InvalidInput),
        ("size", "1", InvalidInput),
        ("tags", [1], TypeError),
        ("tags", 5, TypeError),
        ("tags", [""], InvalidInput),
        ("tenant", None, TypeError),
        ("tenant", 0, TypeError),
        ("tenant", 5, TypeError),
        ("tenant", "a\0", InvalidInput),
        ("id", 5, TypeError),
        ("embedding", ["a"], NotSerializable),
        ("embedding", [[1.0]], NotSerializable),
    ],
)
def test_a_bad_option_is_refused_and_nothing_is_stored(
    tmp_path: Path, clock: ManualClock, option: str, value: Any, error: type[Exception]
) -> None:
    with MemoryManager(CAPACITY, folder=tmp_path, runtime=Runtime(clock=clock)) as manager:
        manager.store({"a": 1}, id="x")
        before = state_of(manager)
        with pytest.raises(error):
            manager.store(**{"payload": {}, option: value})
        assert state_of(manager) == before
        manager.check()
        manager.store({"a": 2})
    with MemoryManager(CAPACITY, folder=tmp_path, runtime=Runtime(clock=clock)) as manager:
        assert len(manager) == 2, "and the journal holds nothing of it"


def test_a_single_tag_may_be_given_as_text(manager: MemoryManager) -> None:
    made = manager.store({}, tags="todo")
    assert made.tags == {"todo"}
    assert manager.update(made.id, tags="done").tags == {"done"}


def test_a_closed_space_says_so(clock: ManualClock) -> None:
    manager = MemoryManager(CAPACITY, runtime=Runtime(clock=clock))
    manager.store({}, id="x")
    manager.close()
    manager.close()
    with pytest.raises(InvalidInput, match="closed"):
        manager.store({})


# -- time ------------------------------------------------------------------------------------------


def test_an_expired_object_is_invisible_at_once(clock: ManualClock) -> None:
    with MemoryManager(CAPACITY, runtime=Runtime(clock=clock)) as manager:
        manager.store({"text": "green tea"}, id="x", ttl=10, root=True)
        other = manager.store({"text": "other tea"}, root=True)
        manager.add_reference(other.id, "x")
        manager.add_reference("x", other.id)
        clock.advance(9.99)
        assert "x" in manager
        clock.advance(0.01)
        assert "x" not in manager
        assert manager.ids() == [other.id]
        assert [each.id for each in manager.objects()] == [other.id]
        assert [hit.object.id for hit in manager.retrieve("tea")] == [other.id]
        assert manager.references(other.id) == []
        assert manager.debug_snapshot()["root_ids"] == [other.id]
        assert list(manager.debug_snapshot()["references"]) == [other.id]
        for use in (manager.load, manager.update, manager.free_object, manager.pin):
            with pytest.raises(UnknownObject, match="expired"):
                use("x")
        manager.check()


def test_the_name_of_an_expired_object_is_free_again(
    manager: MemoryManager, clock: ManualClock
) -> None:
    manager.store({"n": 1}, id="x", ttl=10)
    clock.advance(10)
    manager.store({"n": 2}, id="x")
    assert manager.load("x").payload == {"n": 2}
    manager.run_gc()
    assert "x" not in manager, "nobody holds it"


def test_a_ttl_of_none_is_forever(manager: MemoryManager, clock: ManualClock) -> None:
    made = manager.store({}, root=True)
    assert made.ttl is None
    clock.advance(1e12)
    manager.run_gc()
    assert made.id in manager
    assert not made.expired(clock())


# -- roots, pins, references -----------------------------------------------------------------------


def test_roots_and_pins_are_counted_once(manager: MemoryManager) -> None:
    ids = [manager.store({"n": 1}).id for _ in range(3)]
    for _ in range(2):
        manager.add_root(ids[0])
        manager.pin(ids[0])
        manager.pin(ids[1])
    assert (manager.stats()["roots"], manager.stats()["pinned"]) == (1, 2)
    assert [manager.is_root(each) for each in ids] == [True, False, False]
    assert [manager.is_pinned(each) for each in ids] == [True, True, False]
    lsn = manager.last_lsn
    manager.add_root(ids[0])
    manager.unpin(ids[2])
    assert manager.last_lsn == lsn, "what is so already is no change"
    for _ in range(2):
        manager.remove_root(ids[0])
        manager.unpin(ids[0])
    assert (manager.stats()["roots"], manager.stats()["pinned"]) == (0, 1)


def test_references_are_kept_once_and_are_no_uses(manager: MemoryManager) -> None:
    one, two, three = (manager.store({}).id for _ in range(3))
    for target in (two, three, two):
        manager.add_reference(one, target)
    assert manager.references(one) == [two, three]
    assert manager.peek(two).reference_count == 1
    assert manager.peek(two).access_count == 0
    manager.remove_reference(one, two)
    manager.remove_reference(one, two)
    assert manager.references(one) == [three]
    assert manager.peek(two).reference_count == 0
    assert manager.reachable_ids() == set()


# -- limits ----------------------------------------------------------------------------------------


def limited(clock: ManualClock, quotas: Quotas | None = None) -> MemoryManager:
    return MemoryManager(CAPACITY, runtime=Runtime(clock=clock), retriever=None, quotas=quotas)


@pytest.mark.parametrize(
    "limits", [{"by_tenant": {"ann": -1}}, {"default": -1}, {"budget": 0.5}], ids=str
)
def test_a_limit_that_is_no_number_of_bytes_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="whole number of 0 or more"):
        Quotas(**limits)


def test_quotas_do_not_follow_the_dict_they_were_made_from() -> None:
    given = {"ann": 1}
    quotas = Quotas(given, default=5)
    given["ann"] = 2
    assert (quotas.of("ann"), quotas.of("bob"), Quotas().of("ann")) == (1, 5, None)


def test_a_quota_bounds_the_bytes_of_one_tenant(clock: ManualClock) -> None:
    with limited(clock, Quotas({"ann": 250}, default=100)) as manager:
        manager.store({"a": "x" * 200}, tenant="ann", root=True)
        used = manager.usage("ann")
        with pytest.raises(OutOfSpace, match=f"tenant 'ann' uses {used} of 250 bytes; "):
            manager.store({"a": "x" * 50}, tenant="ann")
        with pytest.raises(OutOfSpace, match="tenant 'bob' uses 0 of 100"):
            manager.store({"a": "x" * 100}, tenant="bob")
        manager.store({"a": "x" * 50}, tenant="bob")
        manager.store({"a": "x" * 50}, tenant="", root=True)
        manager.check()


def test_a_quota_holds_for_updates_and_for_several_at_once(clock: ManualClock) -> None:
    with limited(clock, Quotas({"ann": 100})) as manager:
        made = manager.store({"a": "x"}, tenant="ann", root=True)
        with pytest.raises(OutOfSpace, match="ann"):
            manager.update(made.id, payload={"a": "x" * 100})
        with pytest.raises(OutOfSpace, match="ann"):
            manager.store_many([NewObject({"a": "x" * 40}, tenant="ann")] * 2)
        assert len(manager) == 1
        manager.update(made.id, payload={"a": "x" * 80})
        manager.update(made.id, payload={})
        manager.store({"a": "x" * 80}, tenant="ann")
        manager.check()


def test_garbage_does_not_count_against_a_quota(clock: ManualClock) -> None:
    with limited(clock, Quotas({"ann": 100})) as manager:
        expired = manager.store({"a": "x" * 60}, tenant="ann", ttl=5, root=True)
        clock.advance(5)
        garbage = manager.store({"a": "x" * 60}, tenant="ann")
        assert expired.id not in manager
        manager.store({"a": "x" * 60}, tenant="ann", root=True)
        assert garbage.id not in manager
        assert manager.usage("ann") <= 100
        manager.check()


def test_a_budget_bounds_the_declared_sizes(clock: ManualClock) -> None:
    with limited(clock, Quotas(budget=100)) as manager:
        manager.store({"a": "x" * 500}, size=60, root=True)
        with pytest.raises(OutOfSpace, match="budget is 100, 60 of it used; 41 more"):
            manager.store({}, size=41)
        manager.store({}, size=40)
        assert manager.stats()["weight"] == 100
        manager.store({}, size=40)  # takes the place of the last one, which nobody holds
        assert (manager.stats()["weight"], len(manager)) == (100, 2)
        manager.check()


def test_a_budget_holds_for_updates_too(clock: ManualClock) -> None:
    with limited(clock, Quotas(budget=100)) as manager:
        declared = manager.store({}, size=60, root=True)
        assert manager.update(declared.id, payload={"a": "x" * 500}).size == 60
        plain = manager.store({"a": "x" * 20}, root=True)
        with pytest.raises(OutOfSpace, match=f"budget is 100, {60 + plain.size} of it used; "):
            manager.update(plain.id, payload={"a": "x" * 50})
        assert manager.peek(plain.id).payload == {"a": "x" * 20}
        manager.update(plain.id, payload={})
        assert manager.stats()["weight"] == 60 + manager.peek(plain.id).size < 60 + plain.size
        manager.check()


def test_usage_follows_what_comes_and_goes(clock: ManualClock) -> None:
    with limited(clock) as manager:
        assert manager.usage("ann") == 0
        first = manager.store({"a": "x" * 30}, tenant="ann")
        second = manager.store({"a": "x" * 70}, tenant="ann")
        assert manager.usage("ann") == first.size + second.size
        manager.free_object(first.id)
        assert manager.usage("ann") == second.size
        manager.free_object(second.id)
        assert manager.usage("ann") == 0
        manager.store({}, tenant="bob")  # may have the number that ann's had
        assert manager.usage("ann") == 0


# -- pressure --------------------------------------------------------------------------------------


class Noting(GarbageCollector):
    """Does what another collector does, and notes when it was asked to begin."""

    def __init__(self, inner: GarbageCollector, notes: list[str]) -> None:
        self.inner, self.notes, self.name = inner, notes, inner.name

    def condemn(self, heap: Any, now: float) -> Any:
        self.notes.append(self.name)
        return self.inner.condemn(heap, now)

    def should_trigger(self, heap: Any, now: float) -> bool:
        return self.inner.should_trigger(heap, now)


def pressed(clock: ManualClock) -> tuple[MemoryManager, list[str]]:
    notes: list[str] = []
    chosen = [Noting(each(), notes) for each in (TimeToLiveCollector, MarkAndSweepCollector)]
    return MemoryManager(
        4096, runtime=Runtime(clock=clock), retriever=None, collectors=chosen
    ), notes


def kilobyte(manager: MemoryManager, **options: Any) -> str:
    return manager.store({"a": "x" * 1000}, **options).id  # a block of 1,024 bytes


def test_expired_objects_make_room_before_anything_is_collected(clock: ManualClock) -> None:
    manager, notes = pressed(clock)
    expired, garbage = kilobyte(manager, ttl=5, root=True), kilobyte(manager)
    kept = [kilobyte(manager, root=True) for _ in range(2)]
    clock.advance(5)
    fresh = kilobyte(manager, root=True)
    assert notes == ["ttl"]
    assert expired not in manager
    assert sorted(manager.ids()) == sorted([garbage, *kept, fresh])
    manager.check()


def test_garbage_makes_room_when_nothing_has_expired(clock: ManualClock) -> None:
    manager, notes = pressed(clock)
    garbage = kilobyte(manager, ttl=100)
    kept = [kilobyte(manager, root=True) for _ in range(3)]
    moved = [manager.peek(each).address for each in kept]
    fresh = kilobyte(manager, root=True)
    assert notes == ["ttl", "mark_sweep"]
    assert garbage not in manager
    assert manager.ids() == [fresh, *kept]
    assert [manager.peek(each).address for each in kept] == moved, "no need to tidy up"
    assert manager.gc_events[-1].trigger == "pressure"
    manager.check()


def test_scattered_bytes_are_slid_together_without_any_collection(clock: ManualClock) -> None:
    manager, notes = pressed(clock)
    ids = [kilobyte(manager) for _ in range(4)]
    manager.free_many([ids[0], ids[2]])
    payloads = {each: manager.peek(each).payload for each in (ids[1], ids[3])}
    big = manager.store({"a": "x" * 2000}).id
    assert notes == [], "there was enough, only not in one place"
    assert sorted(manager.ids()) == sorted([ids[1], ids[3], big])
    assert {each: manager.peek(each).payload for each in payloads} == payloads
    manager.check()


def test_collecting_and_tidying_up_may_both_be_needed(clock: ManualClock) -> None:
    manager, _ = pressed(clock)
    ids = [kilobyte(manager, root=number % 2 == 1) for number in range(4)]
    big = manager.store({"a": "x" * 2000}, root=True).id
    assert sorted(manager.ids()) == sorted([ids[1], ids[3], big])
    manager.check()


def test_a_refusal_names_who_holds_the_space(clock: ManualClock) -> None:
    manager, _ = pressed(clock)
    kilobyte(manager, tenant="ann", root=True)
    kilobyte(manager, tenant="ann", pin=True)
    kilobyte(manager, tenant="bob", root=True)
    before = state_of(manager)
    held = manager.engine.heap.held_bytes
    assert held == manager.usage("ann") + manager.usage("bob")
    with pytest.raises(OutOfSpace) as refused:
        manager.store({"a": "x" * 2000}, tenant="eve")
    message = str(refused.value)
    assert "no space for 2032 bytes: 1024 of 4096 are free" in message
    assert f"3 objects hold the rest, {held} bytes of them are roots or pinned" in message
    assert f"ann: {manager.usage('ann')}, bob: {manager.usage('bob')}" in message
    assert "eve" not in message
    assert state_of(manager) == before
    manager.check()


def test_what_could_never_fit_disturbs_nobody(clock: ManualClock) -> None:
    manager, notes = pressed(clock)
    garbage, expired = kilobyte(manager), kilobyte(manager, ttl=1)
    for size in (4096, 10_000, 1_000_000):
        with pytest.raises(OutOfSpace, match="no space"):
            manager.store({"a": "x" * size})
    assert notes == []
    assert manager.ids() == [garbage, expired]
    manager.check()


def test_an_object_may_be_collected_to_make_room_for_its_own_new_body(clock: ManualClock) -> None:
    """Nobody holds it, so it is free to go; the update says so and leaves no block behind."""
    manager, _ = pressed(clock)
    garbage = kilobyte(manager)
    for _ in range(3):
        kilobyte(manager, root=True)
    with pytest.raises(UnknownObject, match="was freed"):
        manager.update(garbage, payload={"a": "x" * 1001})
    assert garbage not in manager
    manager.check()


def test_changes_made_with_a_new_object_happen_with_it_or_not_at_all(clock: ManualClock) -> None:
    """Making room for it may collect what the changes are about."""
    manager, _ = pressed(clock)
    garbage = kilobyte(manager)
    for _ in range(3):
        kilobyte(manager, root=True)
    gone = FreeOp([int(garbage[1:], 16)], "replaced")
    for several in ([NewObject({"a": "x" * 900})], [NewObject({"a": "x" * 400})] * 2):
        with pytest.raises(UnknownObject, match="was freed"):
            manager.engine.insert(several, [gone])
        assert len(manager) == 3
        manager.check()


# -- searching -------------------------------------------------------------------------------------


def test_the_best_matches_come_first_and_count_as_used(manager: MemoryManager) -> None:
    best = manager.store({"text": "green tea from Uji, green and fresh"})
    second = manager.store({"text": "a cup of tea with a friend on a long rainy afternoon"})
    manager.store({"text": "a walk in the rain"})
    hits = manager.retrieve("green tea")
    assert [hit.object.id for hit in hits] == [best.id, second.id]
    assert hits[0].score > hits[1].score > 0
    assert manager.peek(best.id).access_count == 1
    assert len(manager.retrieve("tea", top_k=1)) == 1
    assert manager.retrieve("") == manager.retrieve("zebra") == []


def test_a_search_keeps_to_one_tenant_and_to_the_filter(manager: MemoryManager) -> None:
    ids = {
        tenant: manager.store({"text": "tea", "who": tenant}, tenant=tenant).id
        for tenant in ("", "ann", "bob")
    }

    def found(**options: Any) -> set[str]:
        return {hit.object.id for hit in manager.retrieve("tea", **options)}

    assert found() == set(ids.values())
    assert found(tenant="ann") == {ids["ann"]}
    assert found(tenant="") == {ids[""]}
    assert found(tenant="nobody") == set()

    def not_ann(obj: MemoryObject) -> bool:
        return bool(obj.payload["who"] != "ann")

    assert found(filter_fn=not_ann) == {ids[""], ids["bob"]}
    assert found(tenant="ann", filter_fn=not_ann) == set()
    assert found(top_k=1, filter_fn=lambda obj: obj.tenant == "bob") == {ids["bob"]}


def test_a_search_sees_changes_at_once(manager: MemoryManager) -> None:
    made = manager.store({"text": "tea"})
    manager.update(made.id, payload={"text": "coffee"})
    assert manager.retrieve("tea") == []
    assert [hit.object.id for hit in manager.retrieve("coffee")] == [made.id]
    manager.free_object(made.id)
    assert manager.retrieve("coffee") == []


def test_a_filter_that_fails_is_heard(manager: MemoryManager) -> None:
    manager.store({"text": "tea"})
    with pytest.raises(KeyError, match="missing"):
        manager.retrieve("tea", filter_fn=lambda obj: bool(obj.payload["missing"]))


def test_without_a_retriever_there_is_nothing_to_search(clock: ManualClock) -> None:
    with MemoryManager(CAPACITY, retriever=None, runtime=Runtime(clock=clock)) as manager:
        manager.store({"text": "tea"})
        with pytest.raises(InvalidInput, match="no retriever"):
            manager.retrieve("tea")
        manager.check()


# -- what others see -------------------------------------------------------------------------------


def test_events_tell_what_happens(clock: ManualClock) -> None:
    with (
        MemoryManager(4096, runtime=Runtime(clock=clock)) as manager,
        capture(manager.events) as events,
    ):
        first = manager.store({"text": "tea"}, root=True)
        manager.load(first.id)
        manager.retrieve("tea")
        garbage = manager.store({"a": "x" * 3000})
        second = manager.store({"a": "x" * 3000})
        manager.free_object(second.id)
    told = [(event.name, event.data) for event in events]
    names = [name for name, _ in told]
    assert names[:5] == ["allocation", "load", "retrieve_hit", "retrieve_complete", "allocation"]
    assert names[-2:] == ["allocation_post_gc", "free"]
    assert told[0][1] == {"id": first.id, "size": first.size, "heap_used": 32}
    assert told[3][1] == {"query_length": 3, "hits": 1}
    freed = [data for name, data in told if name == "free"]
    assert freed == [
        {"id": garbage.id, "size": garbage.size, "reason": "unreachable"},
        {"id": second.id, "size": second.size, "reason": "freed"},
    ]


def test_a_finished_cycle_is_told_with_its_figures(manager: MemoryManager) -> None:
    made = manager.store({"n": 1})
    with capture(manager.events) as events:
        report = manager.run_gc("test")
    (told,) = [event.data for event in events if event.name == "gc_cycle"]
    assert told["trigger"] == report.trigger == "test"
    assert told["freed"] == report.freed == 1
    assert told["freed_bytes"] == report.freed_bytes == made.size
    assert told["collected"] == {"mark_sweep": 1}
    assert told["heap_used"] == 0
    assert told["duration"] >= told["pause_duration"] > 0


def test_stats_are_those_of_the_moment(manager: MemoryManager) -> None:
    one, two = manager.store({}, root=True, size=5), manager.store({}, pin=True, size=7)
    stats = manager.stats()
    assert stats["objects"] == len(manager) == manager.live_objects == 2
    assert (stats["roots"], stats["pinned"], stats["weight"]) == (1, 1, 12)
    assert stats["heap_capacity"] == manager.capacity == CAPACITY
    assert stats["heap_used"] == 32
    assert stats["heap_used"] + stats["heap_free"] == CAPACITY
    assert stats["fragmentation"] == manager.fragmentation() == 0.0
    assert (stats["gc_cycles"], stats["gc_running"], stats["last_lsn"]) == (0, False, 2)
    manager.free_many([one.id, two.id])
    manager.run_gc()
    stats = manager.stats()
    assert (stats["objects"], stats["heap_used"], stats["weight"], stats["gc_cycles"]) == (
        0,
        0,
        0,
        1,
    )


def test_the_debug_snapshot_shows_who_holds_whom(manager: MemoryManager) -> None:
    one, two, three = (manager.store({}).id for _ in range(3))
    manager.add_root(one)
    manager.pin(two)
    manager.add_reference(one, two)
    manager.add_reference(one, three)
    shown = manager.debug_snapshot()
    assert (shown["root_ids"], shown["pinned_ids"]) == ([one], [two])
    assert shown["references"] == {one: [two, three]}
    assert len(shown["heap_map"].allocated) == 3
    assert shown["objects"] == 3


def test_an_empty_manager_is_a_manager(manager: MemoryManager) -> None:
    assert len(manager) == 0
    assert bool(manager)


def test_compaction_moves_bytes_and_nothing_else(manager: MemoryManager) -> None:
    ids = [manager.store({"n": number, "pad": "x" * (number * 40)}).id for number in range(30)]
    manager.free_many(ids[::3])
    before = {obj.id: (obj.payload, obj.size) for obj in manager.objects()}
    assert manager.compact() > 0
    assert {obj.id: (obj.payload, obj.size) for obj in manager.objects()} == before
    assert manager.fragmentation() == 0.0
    assert manager.compact() == 0


@pytest.mark.parametrize("pause", [0, -1, float("nan")])
def test_a_pause_must_be_a_time(pause: float) -> None:
    with pytest.raises(InvalidInput, match="pause"):
        MemoryManager(CAPACITY, runtime=Runtime(pause=pause))


@pytest.mark.parametrize("retriever", ["sparse", None])
def test_objects_are_nothing_that_pythons_own_collector_has_to_walk(retriever: Any) -> None:
    with MemoryManager(1 << 24, retriever=retriever) as manager:
        manager.store_many([NewObject({"text": f"the first note {n}"}) for n in range(100)])
        gc.collect()
        before = len(gc.get_objects())
        for start in range(0, 5000, 100):
            manager.store_many(
                [NewObject({"text": f"note {n}"}) for n in range(start, start + 100)]
            )
        gc.collect()
        assert len(gc.get_objects()) - before < 500
        assert len(manager) == 5100
