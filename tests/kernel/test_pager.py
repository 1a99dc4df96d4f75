"""The page table keeps its books: residents, pages, what the cold tier is owed, and counts."""

from __future__ import annotations

from dataclasses import asdict
from math import ceil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from memoryspace.errors import InvalidInput
from memoryspace.kernel.tiers.pager import PagerStats, PageTable
from memoryspace.kernel.tiers.replacement import POLICIES

PAGE = 10
MAX_PAGES = 12
KEYS = st.integers(0, 9)
SIZES = st.integers(0, 55)
NOTHING = asdict(PagerStats())


class Bookkeeping(RuleBasedStateMachine):
    """A dict of sizes, a list of debts and five counters; the victims are the table's to choose."""

    @initialize(strategy=st.sampled_from([*POLICIES]))
    def open(self, strategy: str) -> None:
        self.table = PageTable(PAGE, strategy, MAX_PAGES)
        self.sizes: dict[int, int] = {}
        self.dirty: list[int] = []
        self.counts = dict(NOTHING)

    @rule(key=KEYS, size=SIZES, dirty=st.booleans())
    def add(self, key: int, size: int, dirty: bool) -> None:
        if key in self.sizes:
            with pytest.raises(InvalidInput, match="already resident"):
                self.table.add(key, size, dirty=dirty)
            return
        self.table.add(key, size, dirty=dirty)
        self.sizes[key] = size
        if dirty and key not in self.dirty:
            self.dirty.append(key)

    @rule(key=KEYS, size=SIZES, fault=st.booleans())
    def page_in(self, key: int, size: int, fault: bool) -> None:
        if key not in self.sizes:
            self.table.page_in(key, size, fault=fault)
            self.sizes[key] = size
            self.counts["loads"] += 1
            self.counts["page_faults"] += fault

    @rule(key=KEYS, size=SIZES)
    def ensure_resident(self, key: int, size: int) -> None:
        self.counts["hits"] += key in self.sizes
        self.counts["loads"] += key not in self.sizes
        self.counts["page_faults"] += key not in self.sizes
        victims = self.table.ensure_resident(key, size)
        assert key not in victims
        self.sizes[key] = size
        self._gone(victims)
        assert self.table.over() == 0

    @rule(size=SIZES, skip=st.frozensets(KEYS))
    def make_room(self, size: int, skip: frozenset[int]) -> None:
        victims = self.table.make_room(size, skip)
        assert not skip & {*victims}
        if victims:  # the last one was needed: with it back, the object would not fit
            last = pages_of(self.sizes[victims[-1]])
            assert self.table.pages + last + pages_of(size) > MAX_PAGES
        self._gone(victims)
        assert self._pages() + pages_of(size) <= MAX_PAGES or self.sizes.keys() <= skip

    @rule(skip=st.frozensets(KEYS))
    def evict(self, skip: frozenset[int]) -> None:
        victim = self.table.evict(skip)
        assert (victim is None) == (self.sizes.keys() <= skip)
        if victim is not None:
            assert victim not in skip
            self._gone([victim])

    @rule()
    def put_a_victim_back(self) -> None:
        victim = self.table.evict()
        if victim is not None:
            assert not self.table.is_resident(victim)
            self.table.put_back(victim, self.sizes[victim])

    @rule(key=KEYS, size=SIZES)
    def resize(self, key: int, size: int) -> None:
        self._if_resident(key, lambda: self.table.resize(key, size))
        if key in self.sizes:
            self.sizes[key] = size

    @rule(key=KEYS)
    def touch(self, key: int) -> None:
        self._if_resident(key, lambda: self.table.touch(key))
        self.counts["hits"] += key in self.sizes

    @rule(key=KEYS)
    def mark_dirty(self, key: int) -> None:
        self._if_resident(key, lambda: self.table.mark_dirty(key))
        if key in self.sizes and key not in self.dirty:
            self.dirty.append(key)

    @rule(key=KEYS)
    def clear_dirty(self, key: int) -> None:
        if key not in self.dirty:
            with pytest.raises(KeyError):
                self.table.clear_dirty(key)
            return
        self.table.clear_dirty(key)
        self.dirty.remove(key)
        self.counts["writes"] += 1

    @rule(key=KEYS)
    def remove(self, key: int) -> None:
        if key not in self.sizes and key not in self.dirty:
            with pytest.raises(KeyError):
                self.table.remove(key)
            return
        self.table.remove(key)
        self.sizes.pop(key, None)
        self.dirty = [each for each in self.dirty if each != key]

    @invariant()
    def agree(self) -> None:
        self.table.check()
        assert self.table.pages == self._pages()
        assert self.table.over() == max(0, self._pages() - MAX_PAGES)
        assert {key for key in range(10) if self.table.is_resident(key)} == self.sizes.keys()
        assert len(self.table) == len(self.sizes)
        assert self.table.dirty_keys(100) == self.dirty
        assert self.table.dirty_keys(2) == self.dirty[:2]
        assert self.table.dirty_count == len(self.dirty)
        assert {key for key in range(10) if self.table.is_dirty(key)} == {*self.dirty}
        assert asdict(self.table.stats) == self.counts

    def _pages(self) -> int:
        return sum(pages_of(size) for size in self.sizes.values())

    def _gone(self, victims: list[int]) -> None:
        for victim in victims:
            del self.sizes[victim]
        self.counts["evictions"] += len(victims)

    def _if_resident(self, key, act) -> None:
        if key in self.sizes:
            act()
        else:
            with pytest.raises(KeyError):
                act()


def pages_of(size: int) -> int:
    return max(1, ceil(size / PAGE))


def test_random_steps_keep_the_books() -> None:
    steps = settings(max_examples=150, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(Bookkeeping, settings=steps)


def test_the_defaults_are_small_pages_arc_and_no_limit() -> None:
    table = PageTable()
    assert (table.page_size, table.strategy, table.max_pages) == (256, "arc", None)


def test_the_least_recently_used_go_for_a_newcomer() -> None:
    table = PageTable(PAGE, "lru", max_pages=4)
    for key in (1, 2, 3):
        assert table.ensure_resident(key, PAGE) == []
    table.touch(1)
    assert table.ensure_resident(4, 3 * PAGE) == [2, 3]
    assert asdict(table.stats) == NOTHING | {
        "page_faults": 4, "loads": 4, "hits": 1, "evictions": 2
    }  # fmt: skip


def test_a_resident_that_grew_pushes_others_out_and_stays() -> None:
    table = PageTable(PAGE, "lru", max_pages=3)
    for key in (1, 2, 3):
        table.ensure_resident(key, PAGE)
    assert table.ensure_resident(1, 3 * PAGE) == [2, 3]
    assert (table.pages, table.stats.hits) == (3, 1)


@pytest.mark.parametrize("resident", [True, False])
def test_an_object_larger_than_everything_is_refused_and_nothing_changes(resident: bool) -> None:
    table = PageTable(PAGE, max_pages=2)
    table.add(1 if resident else 2, PAGE)
    before = asdict(table.stats)
    assert table.fits(2 * PAGE)
    assert not table.fits(2 * PAGE + 1)
    for refused in (lambda: table.ensure_resident(1, 21), lambda: table.make_room(21)):
        with pytest.raises(InvalidInput, match="21 bytes takes 3 pages of 10, but max_pages is 2"):
            refused()
    assert (len(table), table.pages, asdict(table.stats)) == (1, 1, before)


def test_without_a_limit_nobody_has_to_go() -> None:
    table = PageTable(PAGE)
    assert [table.ensure_resident(key, 1000 * PAGE) for key in range(50)] == [[]] * 50
    assert table.make_room(10**9) == []
    assert table.ensure_resident(3, 2000 * PAGE) == []
    assert (table.pages, table.over(), table.fits(10**12)) == (51_000, 0, True)


def test_an_evicted_dirty_key_stays_owed_until_written() -> None:
    table = PageTable(PAGE, "lru", max_pages=1)
    table.add(1, PAGE)
    assert table.ensure_resident(2, PAGE) == [1]
    assert (table.is_resident(1), table.is_dirty(1), table.is_dirty(2)) == (False, True, False)
    table.clear_dirty(1)
    assert (table.dirty_count, table.stats.writes) == (0, 1)


@pytest.mark.parametrize("strategy", POLICIES)
def test_a_skipped_key_is_not_chosen_and_keeps_its_place_among_residents(strategy: str) -> None:
    table = PageTable(PAGE, strategy)
    for key in range(6):
        table.add(key, PAGE)
    skip = {0, 2}
    assert sorted(table.evict(skip) for _ in range(4)) == [1, 3, 4, 5]
    assert table.evict(skip) is None
    table.check()
    assert sorted((table.evict(), table.evict())) == [0, 2]
    assert table.evict() is None
    assert table.stats.evictions == 6


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PageTable(0), "page_size must be 1 or more, got 0"),
        (lambda: PageTable(max_pages=0), "max_pages must be 1 or more, got 0"),
        (lambda: PageTable(strategy="fifo"), "'fifo'; use one of"),
        (lambda: PageTable().add(1, -1), "size must be 0 or more bytes, got -1"),
    ],
)
def test_bad_values_are_refused_with_what_to_do(build, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build()


def test_a_size_that_is_no_int_is_a_type_error_and_leaves_nothing_behind() -> None:
    table = PageTable()
    with pytest.raises(TypeError, match=r"a size must be an int, got float"):
        table.add(1, 1.5)
    table.check()
    assert len(table) == 0
