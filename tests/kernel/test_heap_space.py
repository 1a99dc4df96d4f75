"""The heap of bytes: every allocator against a model that keeps what it was given in a dict."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memoryspace.errors import InvalidInput, OutOfSpace
from memoryspace.kernel.heap.allocators import (
    NOWHERE,
    Allocator,
    BestFitAllocator,
    FirstFitAllocator,
    SegregatedFitAllocator,
    bin_of,
)
from memoryspace.kernel.heap.space import GRANULE, HEADER, MemorySpace, Segment

CAPACITY = 1 << 15
ALLOCATORS = [SegregatedFitAllocator, BestFitAllocator, FirstFitAllocator]
EXACT = [BestFitAllocator, FirstFitAllocator]

# Most are small and of few sizes, so that blocks are reused; some never wait to be merged (4 KiB).
SIZES = (
    st.sampled_from([0, 8, 9, 24, 100, 500, 520]) | st.integers(0, 700) | st.integers(3900, 9000)
)

each_allocator = pytest.mark.parametrize("allocator", ALLOCATORS)
each_exact_allocator = pytest.mark.parametrize("allocator", EXACT)


def blocks_of(space: MemorySpace) -> list[Segment]:
    return space.snapshot().allocated


def state_of(space: MemorySpace) -> tuple[Any, ...]:
    """Everything an outsider can see."""
    return (*space.snapshot(), space.allocated(), space.available(), space.largest_free())


def expected_place(
    allocator: type[Allocator], free: list[Segment], high_water: int, need: int
) -> int | None:
    """Where the allocator's promise says the next block of ``need`` bytes goes.

    The stretch above the high-water mark is used when no hole fits.
    """
    holes = [(start, size) for start, size in free if start < high_water and size >= need]
    if allocator is FirstFitAllocator and holes:
        return min(holes)[0]
    if allocator is BestFitAllocator and holes:
        return min((size, start) for start, size in holes)[1]
    return high_water if high_water + need <= CAPACITY else None


class HeapMachine(RuleBasedStateMachine):
    """A space, and a dict of what each of its blocks must hold."""

    allocator: type[Allocator]

    def __init__(self) -> None:
        super().__init__()
        self.space = MemorySpace(CAPACITY, self.allocator())
        self.content: dict[int, bytes] = {}
        self.owner: dict[int, int] = {}
        self.freed: set[int] = set()
        self.stored = 0

    def teardown(self) -> None:
        self.space.close()

    def fill(self, address: int, size: int) -> None:
        self.stored += 1
        end = address + self.space.room(address)
        self.freed = {old for old in self.freed if not address <= old < end}  # bytes of this one
        self.content[address] = (b"%d." % self.stored * (size // 2 + 1))[:size]
        self.space.write(address, self.content[address])

    @rule(size=SIZES)
    def allocate(self, size: int) -> None:
        need = MemorySpace.block_size(size)
        place = expected_place(
            self.allocator, self.space.free_segments(), self.space.high_water(), need
        )
        owner = self.stored + 1
        try:
            address = self.space.allocate(size, owner)
        except OutOfSpace:
            assert self.space.largest_free() < need, "a merged block was big enough"
            assert all(free < need for _, free in self.space.free_segments())
            return
        if self.allocator in EXACT:
            assert address == (place or 0) + HEADER
        assert address not in self.content
        self.owner[address] = owner
        self.fill(address, size)

    @precondition(lambda self: self.content)
    @rule(data=st.data())
    def deallocate(self, data: st.DataObject) -> None:
        address = data.draw(st.sampled_from(sorted(self.content)))
        self.space.deallocate(address)
        del self.content[address], self.owner[address]
        self.freed.add(address)

    @precondition(lambda self: self.content)
    @rule(data=st.data(), size=SIZES)
    def resize(self, data: st.DataObject, size: int) -> None:
        address = data.draw(st.sampled_from(sorted(self.content)))
        old, room = self.content[address], self.space.room(address)
        if self.space.resize(address, size):
            assert self.space.room(address) == MemorySpace.block_size(size) - HEADER
            kept = old[:size]
            assert self.space.read(address, len(kept)) == kept
            self.fill(address, size)
        else:
            assert MemorySpace.block_size(size) > room + HEADER, "shrinking never fails"
            assert self.space.room(address) == room

    @precondition(lambda self: self.content)
    @rule(data=st.data(), share=st.floats(0, 1))
    def write_again(self, data: st.DataObject, share: float) -> None:
        address = data.draw(st.sampled_from(sorted(self.content)))
        self.fill(address, int(len(self.content[address]) * share))

    @rule()
    def merge_deferred(self) -> None:
        self.space.merge_deferred()
        free = self.space.free_segments()
        assert self.space.largest_free() == max((size for _, size in free), default=0)

    @rule()
    def compact(self) -> None:
        moves: dict[int, int] = {}
        moved = self.space.compact(moves.__setitem__)
        places = {address: moves.get(owner, address) for address, owner in self.owner.items()}
        assert moved == sum(
            self.space.room(new) + HEADER for old, new in places.items() if old != new
        )
        self.content = {places[old]: data for old, data in self.content.items()}
        self.owner = {places[old]: owner for old, owner in self.owner.items()}
        self.freed.clear()  # an old address may now be in the middle of a block
        assert len(self.space.free_segments()) <= 1
        assert self.space.high_water() == self.space.allocated()
        assert self.space.fragmentation() == 0.0

    @precondition(lambda self: self.freed)
    @rule(data=st.data())
    def free_twice(self, data: st.DataObject) -> None:
        address = data.draw(st.sampled_from(sorted(self.freed)))
        before = state_of(self.space)
        with pytest.raises(InvalidInput, match=str(address)):
            self.space.deallocate(address)
        assert state_of(self.space) == before

    @invariant()
    def nothing_is_disturbed(self) -> None:
        self.space.check()
        for address, data in self.content.items():
            assert self.space.read(address, len(data)) == data
            assert self.space.room(address) >= len(data)

    @invariant()
    def the_figures_agree_with_the_map(self) -> None:
        taken, free = self.space.snapshot()
        assert [start + HEADER for start, _ in taken] == sorted(self.content)
        assert sum(size for _, size in taken) == self.space.allocated()
        assert sum(size for _, size in free) == self.space.available()
        assert self.space.available() + self.space.allocated() == self.space.capacity
        together = sorted([*taken, *free])
        assert [start for start, _ in together] == [
            0,
            *[start + size for start, size in together][:-1],
        ]
        assert all(one[0] + one[1] < two[0] for one, two in itertools.pairwise(free))

    @invariant()
    def fragmentation_is_what_the_largest_block_lacks(self) -> None:
        free = self.space.available()
        largest = self.space.largest_free()
        assert self.space.fragmentation() == (1 - largest / free if free else 0.0)
        assert largest <= max((size for _, size in self.space.free_segments()), default=0)


@each_allocator
def test_random_steps_never_disturb_a_block(allocator: type[Allocator]) -> None:
    HeapMachine.allocator = allocator
    run_state_machine_as_test(
        HeapMachine, settings=settings(max_examples=40, stateful_step_count=50)
    )


# -- whose place is taken --------------------------------------------------------------------------


def with_holes(allocator: Allocator, sizes: list[int]) -> MemorySpace:
    """Return a space without room at the top, with free blocks of just these sizes."""
    space = MemorySpace(sum(sizes) + GRANULE * (len(sizes) + 1), allocator)
    holes = []
    for size in sizes:
        space.allocate(GRANULE - HEADER)
        holes.append(space.allocate(size - HEADER))
    space.allocate(GRANULE - HEADER)
    for hole in holes:
        space.deallocate(hole)
    space.merge_deferred()
    assert [size for _, size in space.free_segments()] == sizes
    return space


HOLES = st.lists(st.integers(1, 60).map(lambda granules: granules * GRANULE), min_size=1)


@each_exact_allocator
@given(sizes=HOLES, wanted=st.integers(1, 60))
def test_an_exact_allocator_takes_the_promised_hole(
    allocator: type[Allocator], sizes: list[int], wanted: int
) -> None:
    space = with_holes(allocator(), sizes)
    need = wanted * GRANULE
    holes = [hole for hole in space.free_segments() if hole.size >= need]
    if not holes:
        with pytest.raises(OutOfSpace):
            space.allocate(need - HEADER)
        return
    first, best = min(holes), min(holes, key=lambda hole: (hole.size, hole.start))
    chosen = first if allocator is FirstFitAllocator else best
    assert space.allocate(need - HEADER) == chosen.start + HEADER
    space.check()


@given(sizes=HOLES, wanted=st.integers(1, 60))
def test_segregated_fit_takes_a_hole_that_is_hardly_too_big(sizes: list[int], wanted: int) -> None:
    space = with_holes(SegregatedFitAllocator(), sizes)
    need = wanted * GRANULE
    fitting = [hole for hole in space.free_segments() if hole.size >= need]
    if not fitting:
        with pytest.raises(OutOfSpace):
            space.allocate(need - HEADER)
        return
    start = space.allocate(need - HEADER) - HEADER
    taken = next(hole.size for hole in fitting if hole.start == start)
    best = min(hole.size for hole in fitting)
    if best < 32 * GRANULE:
        assert taken == best, "small sizes have a bin each"
    elif bin_of(best // GRANULE) > bin_of(wanted):
        assert bin_of(taken // GRANULE) == bin_of(best // GRANULE)
    space.check()


@each_allocator
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [[1, 2, 3, 40, 41, 700], list(range(1, 800))])
def test_an_allocator_finds_what_a_search_through_all_free_blocks_finds(
    allocator: type[Allocator], seed: int, sizes: list[int]
) -> None:
    rng = random.Random(seed)
    words = memoryview(bytearray(GRANULE * 800 * 200)).cast("I")
    index = allocator()
    index.bind(words, 800 * 200)
    free: dict[int, int] = {}
    for step in range(2500):
        grows = step // 250 % 2 == 0  # up and down, so that indexes are thinned out
        start = rng.randrange(200) * 800
        if start in free:
            if not grows or rng.random() < 0.2:
                index.remove(start, free.pop(start))
        elif grows or rng.random() < 0.2:
            free[start] = rng.choice(sizes)
            words[start << 2] = free[start] << 2
            index.add(start, free[start])
        assert index.largest() == max(free.values(), default=0)
        wanted = rng.choice(sizes)
        found = index.find(wanted)
        fitting = [(size, place) for place, size in free.items() if size >= wanted]
        if allocator is BestFitAllocator:
            assert found == min(fitting, default=(0, NOWHERE))[1]
        elif allocator is FirstFitAllocator:
            assert found == min((place for _, place in fitting), default=NOWHERE)
        else:
            assert found == NOWHERE or free[found] >= wanted
            surely = index.search(wanted)
            assert free[surely] >= wanted if fitting else surely == NOWHERE


@each_allocator
def test_a_block_that_fits_is_found_behind_many_that_do_not(allocator: type[Allocator]) -> None:
    assert bin_of(512) == bin_of(513)
    space = with_holes(allocator(), [513 * GRANULE] + [512 * GRANULE] * 20)
    assert space.largest_free() == 513 * GRANULE
    assert space.allocate(513 * GRANULE - HEADER) == GRANULE + HEADER
    space.check()


@each_allocator
def test_waiting_blocks_are_merged_when_nothing_else_fits(allocator: type[Allocator]) -> None:
    space = MemorySpace(1 << 20, allocator())
    big = MemorySpace.block_size((1 << 20) - 64 * GRANULE - HEADER)
    space.allocate(big - HEADER)
    for address in [space.allocate(8) for _ in range(64)]:
        space.deallocate(address)
    assert space.allocate(64 * GRANULE - HEADER) == big + HEADER
    assert space.available() == 0
    space.check()


def test_a_freed_block_waits_for_the_next_of_its_size() -> None:
    space = MemorySpace(CAPACITY)
    first, _ = space.allocate(100), space.allocate(100)
    space.deallocate(first)
    assert space.largest_free() == CAPACITY - space.high_water()
    assert space.free_segments()[0] == Segment(0, 112), "the map shows it as free all the same"
    assert space.allocate(90) == first


def test_waiting_blocks_are_merged_before_they_become_many() -> None:
    space = MemorySpace(1 << 20)
    blocks = [space.allocate(100) for _ in range(9000)]
    for block in blocks[1:]:
        space.deallocate(block)
    space.check()
    waiting = space.high_water() - space.allocated()
    assert waiting <= 9000 * 112 // 16 + 1000, "1/16 of what was allocated may wait"


@given(st.integers(1, 1 << 34))
def test_a_bin_holds_sizes_that_differ_by_a_sixteenth_at_most(size: int) -> None:
    assert bin_of(size) <= bin_of(size + 1) <= bin_of(size) + 1
    assert bin_of(size + size // 16 + 1) > bin_of(size)
    if size < 32:
        assert bin_of(size) == size


@each_allocator
@pytest.mark.parametrize("missing", [1, 299, 300, 301])
def test_a_block_grows_into_the_free_one_behind_it_as_far_as_that_goes(
    allocator: type[Allocator], missing: int
) -> None:
    space = MemorySpace(CAPACITY, allocator())
    block, behind, last = (space.allocate(300 * GRANULE - HEADER) for _ in range(3))
    space.write(block, b"b" * 4000)
    space.write(last, b"l" * 4000)
    space.deallocate(behind)
    assert space.resize(block, (300 + missing) * GRANULE - HEADER) is (missing <= 300)
    space.check()
    assert space.allocated() == (600 + (missing if missing <= 300 else 0)) * GRANULE
    assert space.read(block, 4000) == b"b" * 4000
    space.deallocate(last)
    space.deallocate(block)
    space.check()
    assert space.free_segments() == [Segment(0, CAPACITY)]


@each_allocator
def test_the_last_block_grows_to_the_end_of_the_arena(allocator: type[Allocator]) -> None:
    space = MemorySpace(CAPACITY, allocator())
    first, last = space.allocate(100), space.allocate(100)
    room = CAPACITY - MemorySpace.block_size(100) - HEADER
    assert not space.resize(last, room + 1)
    assert space.resize(last, room)
    assert space.available() == 0
    assert not space.resize(first, 200)
    assert space.resize(last, 0)
    assert space.allocated() == 2 * MemorySpace.block_size(100) - 96
    space.check()


# -- figures ---------------------------------------------------------------------------------------


@each_allocator
def test_fragmentation_counts_what_is_outside_the_largest_free_block(
    allocator: type[Allocator],
) -> None:
    space = MemorySpace(100 * GRANULE, allocator())
    assert space.fragmentation() == 0.0
    blocks = [space.allocate(10 * GRANULE - HEADER) for _ in range(10)]
    assert (space.available(), space.fragmentation()) == (0, 0.0), "nothing is free"
    for hole in (blocks[1], blocks[4], blocks[5], blocks[8]):
        space.deallocate(hole)
    space.merge_deferred()
    assert space.largest_free() == 20 * GRANULE
    assert space.fragmentation() == 0.5
    assert space.free_segments() == [
        Segment(10 * GRANULE, 10 * GRANULE),
        Segment(40 * GRANULE, 20 * GRANULE),
        Segment(80 * GRANULE, 10 * GRANULE),
    ]


def test_a_block_takes_its_header_and_is_rounded_up() -> None:
    space = MemorySpace(CAPACITY)
    for size, block in [(0, 16), (8, 16), (9, 32), (24, 32), (25, 48)]:
        assert MemorySpace.block_size(size) == block
        before = space.allocated()
        address = space.allocate(size)
        assert space.allocated() - before == block
        assert space.room(address) == block - HEADER
    assert space.allocated() == space.high_water()


def test_the_capacity_is_rounded_down_to_whole_granules() -> None:
    space = MemorySpace(100)
    assert space.capacity == space.available() == 96
    space.allocate(96 - HEADER)
    with pytest.raises(OutOfSpace):
        space.allocate(0)


# -- moving ----------------------------------------------------------------------------------------


@each_allocator
def test_compaction_tells_whose_blocks_moved_and_where_to(allocator: type[Allocator]) -> None:
    space = MemorySpace(CAPACITY, allocator())
    blocks = [space.allocate(40, owner) for owner in range(6)]
    for owner, block in enumerate(blocks):
        space.write(block, b"%d" % owner * 40)
    space.deallocate(blocks[1])
    space.deallocate(blocks[4])
    space.fill(blocks[5], b"5" * 40, 77)
    moves: list[tuple[int, int]] = []
    assert space.compact(lambda *move: moves.append(move)) == 3 * 48
    assert moves == [(2, blocks[1]), (3, blocks[2]), (77, blocks[3])]
    assert space.read(blocks[3], 40) == b"5" * 40
    assert space.allocate(40) == blocks[4]
    space.check()


def test_adopted_blocks_are_as_they_were_and_holes_are_free() -> None:
    old = MemorySpace(CAPACITY)
    blocks = [old.allocate(50, owner) for owner in range(5)]
    for owner, block in enumerate(blocks):
        old.write(block, b"%d" % owner * 50)
    image = old.read(0, old.high_water())
    new = MemorySpace(CAPACITY)
    new.adopt([memoryview(image)[:100], memoryview(image)[100:]], len(image) // GRANULE, blocks[:1])
    new.check()
    assert [start + HEADER for start, _ in blocks_of(new)] == blocks[1:]
    assert new.read(blocks[3], 50) == b"3" * 50
    assert new.allocate(50) == blocks[0]


# -- bad input -------------------------------------------------------------------------------------


def filled(allocator: type[Allocator]) -> tuple[MemorySpace, list[int]]:
    space = MemorySpace(CAPACITY, allocator())
    blocks = [space.allocate(size) for size in (100, 5000, 20, 5000, 300)]
    space.deallocate(blocks[1])
    return space, blocks


@each_allocator
@pytest.mark.parametrize("size", [CAPACITY, CAPACITY + 1, 1 << 20, 1 << 36, 1 << 100])
def test_a_size_beyond_the_capacity_is_refused(allocator: type[Allocator], size: int) -> None:
    space, blocks = filled(allocator)
    before = state_of(space)
    with pytest.raises(OutOfSpace, match=f"no free block of {size} bytes.*{space.available()} of"):
        space.allocate(size)
    assert not space.resize(blocks[0], size)
    assert state_of(space) == before
    space.check()


@pytest.mark.parametrize("owner", [-1, 0xFFFFFFFF])
def test_an_owner_that_no_block_can_have_is_refused_with_nothing_taken(owner: int) -> None:
    space = MemorySpace(1000)
    with pytest.raises(InvalidInput, match="owner"):
        space.allocate(10, owner)
    assert space.allocated() == 0
    space.check()


@each_allocator
@pytest.mark.parametrize("size", [-1, -8, -23, -24, -(1 << 40)])
def test_a_negative_size_is_refused(allocator: type[Allocator], size: int) -> None:
    space, blocks = filled(allocator)
    before = state_of(space)
    with pytest.raises(InvalidInput, match=str(size)):
        space.allocate(size)
    with pytest.raises(InvalidInput, match=str(size)):
        space.resize(blocks[0], size)
    assert state_of(space) == before
    space.check()


@each_allocator
@pytest.mark.parametrize("which", range(5))
def test_a_block_is_freed_once(allocator: type[Allocator], which: int) -> None:
    """Also if it was merged with the block before it, and the one behind it."""
    space = MemorySpace(CAPACITY, allocator())
    blocks = [space.allocate(size) for size in (100, 5000, 20, 5000, 300, 10)]
    for block in blocks[:-1]:
        space.deallocate(block)
    before = state_of(space)
    for use in (space.deallocate, space.room, lambda address: space.resize(address, 1)):
        with pytest.raises(InvalidInput, match=f"at address {blocks[which]};"):
            use(blocks[which])
    assert state_of(space) == before
    space.check()
    space.merge_deferred()
    with pytest.raises(InvalidInput):
        space.deallocate(blocks[which])
    space.check()


@each_allocator
@pytest.mark.parametrize("address", [-8, -1, 0, 1, 16, CAPACITY - 8, CAPACITY + 8, 1 << 70])
def test_a_foreign_address_is_refused(allocator: type[Allocator], address: int) -> None:
    space, _ = filled(allocator)
    before = state_of(space)
    uses: list[Callable[[int], object]] = [
        space.deallocate,
        space.room,
        lambda address: space.resize(address, 10),
    ]
    for use in uses:
        with pytest.raises(InvalidInput, match=str(address)):
            use(address)
    assert state_of(space) == before
    space.check()


@each_allocator
@pytest.mark.parametrize("size", [None, "10", 1.5, b"10"])
def test_a_size_of_the_wrong_type_changes_nothing(allocator: type[Allocator], size: Any) -> None:
    space, blocks = filled(allocator)
    before = state_of(space)
    for use in (space.allocate, lambda size: space.resize(blocks[0], size)):
        with pytest.raises(TypeError):
            use(size)
    with pytest.raises(TypeError):
        space.deallocate(size)
    assert state_of(space) == before
    space.check()


@pytest.mark.parametrize("capacity", [-1, 0, 15, (1 << 36) + 1])
def test_a_capacity_out_of_range_is_refused(capacity: int) -> None:
    with pytest.raises(InvalidInput, match=str(capacity)):
        MemorySpace(capacity)


@pytest.mark.parametrize("capacity", [None, "100", 100.0, True])
def test_a_capacity_of_the_wrong_type_is_refused(capacity: Any) -> None:
    with pytest.raises(TypeError, match=type(capacity).__name__):
        MemorySpace(capacity)
