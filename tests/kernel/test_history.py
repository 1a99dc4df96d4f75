"""Point in time: looking back, going back, going on beside; and how far back it goes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryspace.errors import InvalidInput, OutOfSpace, UnknownObject
from memoryspace.kernel import (
    Difference,
    Durability,
    FolderInUse,
    MemoryManager,
    Runtime,
    TieredMemoryManager,
    Tiering,
    at,
    diff,
    fork,
    restore,
)
from memoryspace.testing import ManualClock

from spaces import Contents, contents

HOW = Durability(sync="os", segment_bytes=2000, keep=5)
Opener = Callable[..., MemoryManager]


def flat(folder: Path | None, clock: ManualClock, how: Durability = HOW) -> MemoryManager:
    return MemoryManager(
        20_000, folder=folder, durability=how, runtime=Runtime(clock=clock), retriever=None
    )


def tiered(folder: Path | None, clock: ManualClock, how: Durability = HOW) -> TieredMemoryManager:
    return TieredMemoryManager(
        800,
        folder=folder,
        durability=how,
        runtime=Runtime(clock=clock),
        retriever=None,
        tiering=Tiering(flush_interval=None),
    )


both = pytest.mark.parametrize("opener", [flat, tiered])


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


class Story:
    """Random changes to a space, a second apart, and what there was after each."""

    def __init__(self, space: MemoryManager, clock: ManualClock, seed: int = 1) -> None:
        self.space, self._clock, self._rng = space, clock, random.Random(seed)
        self.after: dict[int, Contents] = {space.last_lsn: contents(space)}
        self.times: dict[int, float] = {}
        self._rewrites: list[tuple[int, str]] = []

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self._clock.advance(1)
            before = self.space.last_lsn
            self._step()
            assert self.space.last_lsn <= before + 1, "one step is one change"
            self.after[self.space.last_lsn] = contents(self.space)
            self.times.setdefault(self.space.last_lsn, self._clock.now)

    def rewritten(self, object_id: str, before: int, later: int) -> bool:
        """Tell whether an object's body was written between two moments."""
        return any(before < lsn <= later for lsn, each in self._rewrites if each == object_id)

    def _rewrite(self, object_id: str) -> None:
        text = "y" * self._rng.randrange(150)
        self.space.update(object_id, payload={"text": text}, tags=["b"])
        self._rewrites.append((self.space.last_lsn, object_id))

    def _step(self) -> None:
        rng, space = self._rng, self.space
        ids = space.ids()
        if len(ids) < 4 or rng.random() < 0.3:
            space.store({"text": "x" * rng.randrange(150)}, tags=["a"], root=rng.random() < 0.5)
            return
        one, other = rng.choice(ids), rng.choice(ids)
        steps: list[Callable[[], Any]] = [
            lambda: self._rewrite(one),
            lambda: space.update(one, importance=rng.random(), ttl=1e6),
            lambda: space.free_object(one),
            lambda: space.add_reference(one, other),
            lambda: [space.remove_reference(one, each) for each in space.references(one)[:1]],
            lambda: space.unpin(one) if space.is_pinned(one) else space.pin(one),
        ]
        rng.choice(steps)()


# -- looking back ----------------------------------------------------------------------------------


@both
def test_every_moment_that_is_kept_can_be_seen_as_it_was(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path, clock) as space:
        story = Story(space, clock)
        for _ in range(3):
            story.go_on(25)
            space.checkpoint()
        story.go_on(10)
        for lsn, expected in story.after.items():
            with at(space, lsn=lsn) as past:
                assert contents(past) == expected, f"after change {lsn}"
                assert past.last_lsn == past.lsn == lsn
        assert contents(space) == story.after[space.last_lsn]


@both
def test_a_time_names_the_last_change_before_it(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path, clock) as space:
        story = Story(space, clock)
        story.go_on(20)
        space.checkpoint()
        story.go_on(20)
        for lsn, when in story.times.items():
            with at(space, time=when) as past, at(space, time=when + 0.9) as later:
                assert past.lsn == later.lsn == lsn
                assert contents(past) == story.after[lsn]
        with at(space, time=999.0) as past:
            assert (past.lsn, len(past)) == (0, 0)


def test_a_time_after_a_restart_is_found_through_the_checkpoint(
    tmp_path: Path, clock: ManualClock
) -> None:
    with flat(tmp_path, clock, Durability(sync="os", segment_bytes=200, keep=1)) as space:
        for n in range(10):
            clock.advance(1)
            space.store({"n": n}, root=True)
        space.checkpoint()
        assert space.wal is not None
        assert space.wal.first_lsn > 1
    clock.advance(100)
    with flat(tmp_path, clock) as space:
        space.store({"n": 10}, root=True)
        with at(space, time=1050.0) as past:
            assert len(past) == 10


def test_the_past_shows_what_has_expired_since(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path, clock) as space:
        mortal = space.store({"text": "for a minute"}, ttl=60, root=True)
        clock.advance(30)
        space.store({"text": "later"}, root=True)
        clock.advance(100)
        space.run_gc()
        assert mortal.id not in space
        with at(space, lsn=2) as past:
            assert past.peek(mortal.id).payload == {"text": "for a minute"}
            assert len(contents(past)) == 2
        with at(space, time=1030.0) as past:
            assert mortal.id in past
        with at(space, time=1061.0) as past:  # nobody had collected it yet
            assert mortal.id not in past


@both
def test_the_past_cannot_be_changed(opener: Opener, tmp_path: Path, clock: ManualClock) -> None:
    with opener(tmp_path, clock) as space:
        a, b = space.store({"text": "a"}, root=True), space.store({"text": "b"})
        space.store({"text": "later"})
        before = contents(space)
        with at(space, lsn=2) as past:
            changes: list[Callable[[], Any]] = [
                lambda: past.store({"text": "new"}),
                lambda: past.update(a.id, payload={"text": "other"}),
                lambda: past.update(a.id, importance=0.9),
                lambda: past.free_object(a.id),
                lambda: past.free_many([a.id]),
                lambda: past.pin(b.id),
                lambda: past.remove_root(a.id),
                lambda: past.add_reference(a.id, b.id),
                lambda: past.checkpoint(),
                lambda: restore(past, lsn=1),
            ]
            for change in changes:
                with pytest.raises(InvalidInput):
                    change()
                assert set(contents(past)) == {a.id, b.id}
            past.run_gc()
            past.tick()
            assert set(contents(past)) == {a.id, b.id}
        assert contents(space) == before
        space.store({"text": "and on"})
        space.check()


@both
def test_the_past_can_be_searched(opener: Opener, tmp_path: Path, clock: ManualClock) -> None:
    with opener(tmp_path, clock) as space:
        tea = space.store({"text": "she drinks green tea"}, root=True)
        space.update(tea.id, payload={"text": "she drinks coffee"})
        for n in range(20):
            space.store({"text": f"filler {n} " * 8})
        with at(space, lsn=1) as past:
            assert [hit.object.id for hit in past.retrieve("tea")] == [tea.id]
            assert past.retrieve("coffee") == []
        with at(space, lsn=space.last_lsn) as past:
            assert past.retrieve("tea") == []


def test_the_past_has_space_for_for_objects_that_were_never_hot(
    tmp_path: Path, clock: ManualClock
) -> None:
    how = Durability(sync="os", segment_bytes=1 << 20)
    with tiered(tmp_path, clock, how) as space:
        for n in range(50):
            space.free_object(space.store({"n": n}).id)
        space.checkpoint()
        big = space.store({"text": "b" * 200_000})
        with at(space, lsn=space.last_lsn) as past:
            assert past.peek(big.id).payload == {"text": "b" * 200_000}
            past.check()


def test_too_far_back_is_a_clear_error(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path, clock, Durability(sync="os", segment_bytes=300, keep=2)) as space:
        story = Story(space, clock)
        for _ in range(4):
            story.go_on(20)
            space.checkpoint()
        story.go_on(5)
        assert space.checkpoint_manager is not None
        oldest = space.checkpoint_manager.lsns()[0]
        assert oldest > 20
        for lsn in (-1, 0, oldest - 1, space.last_lsn + 1):
            with pytest.raises(InvalidInput, match=f"from {oldest} to {space.last_lsn}; keep more"):
                at(space, lsn=lsn)
        with pytest.raises(InvalidInput, match=f"from {oldest} to"):
            at(space, time=1001.0)
        with pytest.raises(InvalidInput):
            restore(space, lsn=oldest - 1)
        for lsn in range(oldest, space.last_lsn + 1):
            with at(space, lsn=lsn) as past:
                assert contents(past) == story.after[lsn]


def test_a_moment_is_named_in_one_way(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path, clock) as space:
        for options in ({}, {"lsn": 1, "time": 5.0}):
            with pytest.raises(InvalidInput, match="either an lsn or a time"):
                at(space, **options)


def test_a_space_without_a_folder_has_no_past(tmp_path: Path, clock: ManualClock) -> None:
    with flat(None, clock) as space:
        space.store({})
        looks: list[Callable[[], Any]] = [
            lambda: at(space, lsn=1),
            lambda: restore(space, lsn=1),
            lambda: diff(space, 0),
            lambda: fork(space, tmp_path / "f", lsn=1),
        ]
        for look in looks:
            with pytest.raises(InvalidInput, match="keeps no past"):
                look()


@both
def test_a_difference_names_what_came_went_and_changed(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path, clock) as space:
        story = Story(space, clock, seed=2)
        story.go_on(30)
        space.checkpoint()
        story.go_on(30)
        rng = random.Random(3)
        for _ in range(15):
            before, later = sorted(rng.sample(sorted(story.after), 2))
            was, is_now = story.after[before], story.after[later]
            found = diff(space, before, later)
            assert found.added == is_now.keys() - was.keys()
            assert found.removed == was.keys() - is_now.keys()
            same = {each for each in was.keys() & is_now.keys() if was[each] == is_now[each]}
            common = was.keys() & is_now.keys()
            really = {each for each in common if was[each] != is_now[each]}
            assert really <= found.changed <= common
            # a body that was written again may be the same, nothing else may be reported
            assert all(story.rewritten(each, before, later) for each in found.changed & same)
        now = diff(space, space.last_lsn)
        assert now == Difference(frozenset(), frozenset(), frozenset())


# -- going back ------------------------------------------------------------------------------------


@both
def test_a_restored_space_is_as_it_was_and_goes_on(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path, clock) as space:
        story = Story(space, clock)
        story.go_on(30)
        space.checkpoint()
        story.go_on(30)
        last = space.last_lsn
        assert restore(space, lsn=17) == space.last_lsn == last + 1
        assert contents(space) == story.after[17]
        story.after[last + 1] = story.after[17]
        story.go_on(20)
        expected, newest = contents(space), space.last_lsn
    with opener(tmp_path, clock) as space:
        assert contents(space) == expected
        assert space.last_lsn == newest
        for lsn in (10, 17, 40, last, last + 1, last + 2, newest):
            with at(space, lsn=lsn) as past:
                assert contents(past) == story.after[lsn], f"after change {lsn}"


@both
def test_a_restore_can_be_taken_back(opener: Opener, tmp_path: Path, clock: ManualClock) -> None:
    with opener(tmp_path, clock) as space:
        story = Story(space, clock, seed=5)
        story.go_on(40)
        last = space.last_lsn
        first = restore(space, lsn=12)
        story.go_on(5)
        between = contents(space)
        restore(space, lsn=last)
        assert contents(space) == story.after[last]
        restore(space, lsn=first)
        assert contents(space) == story.after[12]
        restore(space, lsn=first + 5)
        assert contents(space) == between
        newest = space.last_lsn
    with opener(tmp_path, clock) as space:
        assert (contents(space), space.last_lsn) == (between, newest)


@both
def test_an_id_is_never_given_again_not_even_after_a_restore(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path, clock) as space:
        space.store({"text": "kept"}, root=True)
        moment = space.last_lsn
        given = [space.store({"n": n}).id for n in range(30)]
        space.free_many(given[:15])
        given += [space.store({"n": n}).id for n in range(30, 60)]
        restore(space, lsn=moment)
        given += [space.store({"n": n}).id for n in range(40)]
        restore(space, lsn=moment)
    with opener(tmp_path, clock) as space:
        given += [space.store({"n": n}).id for n in range(70)]
        space.check()
    assert len(set(given)) == len(given)


def test_a_time_after_a_restore_shows_what_was_restored(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path, clock) as space:
        a = space.store({"text": "a"}, root=True)
        clock.advance(10)
        b = space.store({"text": "b"}, root=True)
        clock.advance(10)
        restored = restore(space, lsn=1)
        clock.advance(10)
        with at(space, time=clock.now) as past:
            assert (past.lsn, set(contents(past))) == (restored, {a.id})
        with at(space, time=1015.0) as past:
            assert set(contents(past)) == {a.id, b.id}


def test_what_was_restored_keeps_its_cold_bodies(tmp_path: Path, clock: ManualClock) -> None:
    """Freed, then restored: the old tombstone must not take the body along when its time comes."""
    with tiered(tmp_path, clock, Durability(sync="os", segment_bytes=500, keep=1)) as space:
        ids = [space.store({"text": f"{n} " * 40}).id for n in range(20)]
        space.flush_dirty()
        space.checkpoint()
        moment, expected = space.last_lsn, contents(space)
        space.free_many(ids[:10])
        restore(space, lsn=moment)
        for n in range(5):
            space.store({"text": f"later {n}"})
            space.checkpoint()
        assert {key: seen for key, seen in contents(space).items() if key in ids} == expected
    with tiered(tmp_path, clock) as space:
        assert {key: seen for key, seen in contents(space).items() if key in ids} == expected


def test_what_a_restore_dropped_is_deleted_from_the_cold_tier_in_the_end(
    tmp_path: Path, clock: ManualClock
) -> None:
    with tiered(tmp_path, clock, Durability(sync="os", segment_bytes=500, keep=1)) as space:
        space.store({"text": "kept"})
        space.checkpoint()
        moment = space.last_lsn
        for n in range(20):
            space.store({"text": f"{n} " * 40})
        space.flush_dirty()
        assert len(space.cold) == 21
        restore(space, lsn=moment)
        space.store({"text": "later"})
        space.checkpoint()
        space.flush_dirty()
        assert len(space.cold) == len(space) == 2
        space.check()


def test_a_past_too_big_for_the_space_is_refused_and_nothing_changes(
    tmp_path: Path, clock: ManualClock
) -> None:
    with flat(tmp_path, clock) as space:
        ids = [space.store({"text": "x" * 500}, root=True).id for _ in range(20)]
        space.free_many(ids[1:])
        space.checkpoint()
    small = MemoryManager(
        2000, folder=tmp_path, durability=HOW, runtime=Runtime(clock=clock), retriever=None
    )
    with small as space:
        before = contents(space)
        with pytest.raises(OutOfSpace, match="bigger capacity"):
            restore(space, lsn=20)
        assert contents(space) == before
        space.store({"text": "goes on"})
        after = contents(space)
    with flat(tmp_path, clock) as space:
        assert contents(space) == after


def test_a_tiered_space_restores_what_its_heap_cannot_hold(
    tmp_path: Path, clock: ManualClock
) -> None:
    with tiered(tmp_path, clock) as space:
        ids = [space.store({"text": "x" * 500}).id for _ in range(20)]
        full = contents(space)
        space.free_many(ids)
        restore(space, lsn=20)
        assert contents(space) == full
        space.store({"text": "y" * 300})
        expected = contents(space)
    with tiered(tmp_path, clock) as space:
        assert contents(space) == expected


def test_an_index_follows_a_restore(tmp_path: Path, clock: ManualClock) -> None:
    with MemoryManager(
        20_000, folder=tmp_path, durability=HOW, runtime=Runtime(clock=clock)
    ) as space:
        tea = space.store({"text": "green tea"}, root=True)
        coffee = space.store({"text": "black coffee"}, root=True)
        space.free_object(tea.id)
        restore(space, lsn=1)
        assert [hit.object.id for hit in space.retrieve("tea")] == [tea.id]
        assert space.retrieve("coffee") == []
        assert coffee.id not in space
        space.check()


# -- going on beside -------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("opened_as", [flat, tiered])
def test_a_fork_and_its_origin_go_their_own_ways(
    opener: Opener, opened_as: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    home, branch = tmp_path / "home", tmp_path / "branch"
    with opener(home, clock) as space:
        story = Story(space, clock, seed=7)
        story.go_on(50)
        before = contents(space)
        assert fork(space, branch) == branch
        with opened_as(branch, clock) as other:
            assert contents(other) == before
            Story(other, clock, seed=8).go_on(30)
            changed = contents(other)
            assert contents(space) == before
            story.go_on(30)
            assert contents(other) == changed
            after = contents(space)
    with opener(home, clock) as space, opened_as(branch, clock) as other:
        assert contents(space) == after
        assert contents(other) == changed


@both
def test_a_fork_of_the_past_begins_there(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path / "home", clock) as space:
        story = Story(space, clock, seed=9)
        story.go_on(40)
        for lsn in (0, 11, 25):
            branch = fork(space, tmp_path / f"branch {lsn}", lsn=lsn)
            with opener(branch, clock) as other:
                assert contents(other) == story.after[lsn]
                other.store({"text": "on a branch"})
                other.checkpoint()
                expected = contents(other)
            with opener(branch, clock) as other:
                assert contents(other) == expected
        with_time = fork(space, tmp_path / "timed", time=story.times[20])
        with opener(with_time, clock) as other:
            assert contents(other) == story.after[20]


def test_a_fork_goes_into_an_empty_folder_only(tmp_path: Path, clock: ManualClock) -> None:
    with flat(tmp_path / "home", clock) as space:
        space.store({"text": "a"})
        taken = tmp_path / "taken"
        taken.mkdir()
        (taken / "file").write_text("mine")
        with pytest.raises(InvalidInput, match="not empty"):
            fork(space, taken)
        assert [each.name for each in taken.iterdir()] == ["file"]


def test_a_fork_without_a_journal_can_be_made_too(tmp_path: Path, clock: ManualClock) -> None:
    with tiered(None, clock) as space:
        Story(space, clock).go_on(40)
        expected = contents(space)
        with flat(fork(space, tmp_path / "copy"), clock) as copy:
            assert contents(copy) == expected


# -- cold bodies -----------------------------------------------------------------------------------


def test_freed_cold_bodies_are_read_in_the_past_and_deleted_when_nobody_needs_them(
    tmp_path: Path, clock: ManualClock
) -> None:
    how = Durability(sync="os", segment_bytes=500, keep=2)
    with tiered(tmp_path, clock, how) as space:
        ids = [space.store({"text": f"{n} " * 60}).id for n in range(10)]
        space.demote_objects(ids)
        space.checkpoint()
        moment, expected = space.last_lsn, contents(space)
        space.free_many(ids[:4])
        space.update(ids[5], payload={"text": "rewritten"})
        space.flush_dirty()
        assert len(space.cold) == 11
        with at(space, lsn=moment) as past:
            assert contents(past) == expected
        space.checkpoint()
        assert len(space.cold) == 11, "the older checkpoint needs them"
        with at(space, lsn=moment) as past:
            assert contents(past) == expected
    with tiered(tmp_path, clock, how) as space:
        with at(space, lsn=moment) as past:
            assert contents(past) == expected
        space.store({"text": "one more"})
        space.flush_dirty()
        space.checkpoint()
        assert len(space.cold) == 7
        space.store({"text": "and another"})
        space.flush_dirty()
        space.checkpoint()
        assert len(space.cold) == len(space) == 8
        space.check()
        with pytest.raises(InvalidInput):
            at(space, lsn=moment)


@pytest.mark.parametrize("flushed", [False, True])
def test_bodies_that_were_freed_before_a_crash_are_deleted_after_it(
    flushed: bool, tmp_path: Path, clock: ManualClock
) -> None:
    how = Durability(sync="os", segment_bytes=500, keep=1)
    with tiered(tmp_path / "home", clock, how) as space:
        ids = [space.store({"text": f"{n} " * 60}).id for n in range(10)]
        if flushed:
            space.flush_dirty()
            space.checkpoint()
        space.demote_objects(ids)
        space.free_many(ids[:6])
        space.flush()
    with tiered(tmp_path / "home", clock, how) as space:
        assert len(space.cold) == 10
        space.checkpoint()
        space.store({"text": "a"})
        space.checkpoint()
        space.flush_dirty()
        assert len(space.cold) == len(space) == 5
        space.check()


def test_bodies_that_a_restart_forgot_are_deleted_when_they_are_freed_or_rewritten(
    tmp_path: Path, clock: ManualClock
) -> None:
    """What was written cold after the last checkpoint is there, though no file says so."""
    how = Durability(sync="os", segment_bytes=500, keep=1)
    with tiered(tmp_path, clock, how) as space:
        ids = [space.store({"text": f"{n} " * 10}).id for n in range(10)]
        space.flush_dirty()
    with TieredMemoryManager(
        10_000,
        folder=tmp_path,
        durability=how,
        runtime=Runtime(clock=clock),
        retriever=None,
        tiering=Tiering(flush_interval=None),
    ) as space:
        assert len(space.cold) == 10
        space.free_many(ids[:4])
        space.update(ids[5], payload={"text": "another"})
        space.checkpoint()
        space.flush_dirty()
        assert len(space.cold) == len(space) == 6
        space.check()


# -- one owner -------------------------------------------------------------------------------------


@both
def test_a_second_opener_is_told_who_has_the_folder(
    opener: Opener, tmp_path: Path, clock: ManualClock
) -> None:
    with opener(tmp_path, clock) as space:
        found = space.store({"text": "mine"}, root=True)
        for second in (flat, tiered):
            with pytest.raises(FolderInUse, match="in use by") as refusal:
                second(tmp_path, clock)
            assert refusal.value.owner is not None
        space.store({"text": "goes on"})
    with opener(tmp_path, clock) as space:
        assert space.peek(found.id).payload == {"text": "mine"}
        assert len(space) == 2


@both
def test_a_closed_space_says_so(opener: Opener, tmp_path: Path, clock: ManualClock) -> None:
    space = opener(tmp_path, clock)
    found = space.store({"text": "a"}, root=True)
    space.close()
    space.close()
    with pytest.raises(InvalidInput, match="closed"):
        space.store({"text": "b"})
    with opener(tmp_path, clock) as again:
        assert list(contents(again)) == [found.id]
        with pytest.raises(UnknownObject):
            again.peek("#nobody")
