"""Objects by handle: one step of the journal, living objects, and what leaves the space."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryspace.errors import OutOfSpace, UnknownObject
from memoryspace.kernel import (
    Durability,
    MemoryManager,
    NewObject,
    ObjectHandles,
    Runtime,
    restore,
)
from memoryspace.testing import ManualClock


def test_storing_freeing_and_retagging_are_one_step(tmp_path: Path) -> None:
    with MemoryManager(1 << 16, folder=tmp_path, durability=Durability(sync="os")) as space:
        objects = ObjectHandles(space)
        with objects.lock:
            old, kept = objects.insert([NewObject({"n": 1}), NewObject({"n": 2}, tags=("a",))])
            before = objects.last_lsn
            (new,) = objects.insert(
                [NewObject({"n": 3})], free=[old.handle], tags={kept.handle: {"b", "c"}}
            )
            assert objects.last_lsn == before + 1
            assert new.stamp > kept.stamp > old.stamp
            found = {each.handle: each.tags for each in objects.living()}
            assert found == {kept.handle: {"b", "c"}, new.handle: set()}
        space.check()


def test_a_step_about_an_object_that_is_gone_changes_nothing() -> None:
    with MemoryManager(1 << 16) as space:
        objects = ObjectHandles(space)
        with objects.lock:
            one, two = objects.insert([NewObject({"n": 1}), NewObject({"n": 2})])
            objects.free([one.handle], "done")
            with pytest.raises(UnknownObject):
                objects.insert([NewObject({"n": 3})], free=[one.handle])
            assert [each.handle for each in objects.living()] == [two.handle]
            assert objects.insert([]) == []
        space.check()


def test_what_the_table_knows_is_read_without_the_body() -> None:
    clock = ManualClock()
    with MemoryManager(1 << 16, runtime=Runtime(clock=clock)) as space:
        objects = ObjectHandles(space)
        stored = space.store({"n": 1}, id="x", tenant="ann", importance=0.9, pin=True, ttl=60)
        with objects.lock:
            (found,) = objects.living()
            assert (found.tenant, found.expires_at) == ("ann", clock.now + 60)
            assert objects.id(found.handle) == "x"
            assert objects.retention(found.handle) == (0.9, True)
            assert objects.size(found.handle) == stored.size == len(objects.body(found.handle))
            assert space.peek("x").access_count == 0, "a body is read without counting a use"
            assert objects.bodies([found.handle]) == [objects.body(found.handle)]
            assert space.peek("x").access_count == 1
        assert not objects.has_files


def test_whatever_frees_an_object_is_reported_also_after_a_restore(tmp_path: Path) -> None:
    freed: list[int] = []
    reloads: list[int] = []
    clock = ManualClock()
    with MemoryManager(1 << 16, folder=tmp_path, runtime=Runtime(clock=clock)) as space:
        objects = ObjectHandles(space)
        objects.follow(freed.append, lambda: reloads.append(objects.last_lsn))
        with objects.lock:
            brief, garbage, kept = objects.insert(
                [NewObject({}, ttl=1), NewObject({}), NewObject({}, root=True)]
            )
        before = space.last_lsn
        clock.advance(2)
        space.run_gc()
        assert sorted(freed) == sorted([brief.handle, garbage.handle])
        restore(space, lsn=before)
        assert reloads == [space.last_lsn]
        space.free_object(space.ids()[-1])
        assert freed[2:] == [kept.handle]
        assert objects.has_files


def test_what_fits_is_told_without_collecting_anything() -> None:
    with MemoryManager(4096) as space:
        objects = ObjectHandles(space)
        big = [NewObject({"a": "x" * 3000}, root=True)]
        with objects.lock:
            assert objects.fits(big)
            objects.insert(big)
            assert not objects.fits(big)
            with pytest.raises(OutOfSpace):
                objects.insert(big)
            assert len(space) == 1
