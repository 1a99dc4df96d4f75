"""References: rows in arrays against a dict of sets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memoryspace.kernel.heap.references import END, References
from memoryspace.kernel.heap.table import LIVE, SLOT_MASK, ObjectTable

HUB = 16  # more references than this, and a source gets a dict


class Graph:
    """A table without bodies: just enough for objects to come, refer to each other and go."""

    def __init__(self) -> None:
        self.table = ObjectTable()
        self.references = References(self.table)

    def born(self) -> int:
        table = self.table
        slot = table.next_slot()
        table.claim(slot)
        handle = table.next_handle(slot)
        table.handle[slot] = handle
        table.generations[slot] += 1
        table.flags[slot] = LIVE
        table.live += 1
        return handle

    def dies(self, handle: int) -> None:
        table, slot = self.table, handle & SLOT_MASK
        self.references.drop(slot)
        table.handle[slot] = table.flags[slot] = table.references[slot] = 0
        table.free_slots.append(slot)
        table.live -= 1

    def add(self, source: int, target: int) -> bool:
        return self.references.add(source & SLOT_MASK, target)

    def remove(self, source: int, target: int) -> bool:
        return self.references.remove(source & SLOT_MASK, target)

    def targets(self, source: int) -> list[int]:
        return self.references.targets(source & SLOT_MASK)

    def count(self, target: int) -> int:
        return self.table.references[target & SLOT_MASK]

    def check(self) -> None:
        self.table.check()
        self.references.check()


@pytest.fixture
def graph() -> Graph:
    return Graph()


def family(graph: Graph, size: int) -> tuple[int, list[int]]:
    """Return an object and so many others that it refers to."""
    source, others = graph.born(), [graph.born() for _ in range(size)]
    for other in others:
        assert graph.add(source, other)
    return source, others


def walk(graph: Graph, source: int) -> Iterator[int]:
    """Yield what a collector would see that stops at every row."""
    references = graph.references
    row = graph.table.edges[source & SLOT_MASK]
    while row != END:
        yield references.target[row]
        row = references.next[row]


SMALL_AND_HUB = [1, HUB - 1, HUB, HUB + 1, 3 * HUB, 100]
any_size = pytest.mark.parametrize("size", SMALL_AND_HUB)


class ReferencesMachine(RuleBasedStateMachine):
    """Objects and references come and go; sometimes a collector is on its way."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = Graph()
        self.model: dict[int, dict[int, None]] = {}  # a dict keeps the order
        self.dead: list[int] = []
        self.walkers = 0

    def one(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.model)))

    @rule(count=st.integers(1, 8))
    def births(self, count: int) -> None:
        for _ in range(count):
            handle = self.graph.born()
            assert handle not in self.model
            assert handle not in self.dead
            self.model[handle] = {}

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def death(self, data: st.DataObject) -> None:
        handle = self.one(data)
        self.graph.dies(handle)
        del self.model[handle]
        self.dead.append(handle)
        for targets in self.model.values():
            targets.pop(handle, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def refers(self, data: st.DataObject) -> None:
        source, target = self.one(data), self.one(data)
        new = target not in self.model[source]
        assert self.graph.add(source, target) is new
        self.model[source].setdefault(target)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), every=st.integers(1, 3))
    def refers_to_many(self, data: st.DataObject, every: int) -> None:
        source = self.one(data)
        for target in sorted(self.model)[::every]:
            assert self.graph.add(source, target) is (target not in self.model[source])
            self.model[source].setdefault(target)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def refers_no_longer(self, data: st.DataObject) -> None:
        source = self.one(data)
        known = sorted(self.model[source]) or sorted(self.model)
        target = data.draw(st.sampled_from(known))
        assert self.graph.remove(source, target) is (target in self.model[source])
        self.model[source].pop(target, None)

    @precondition(lambda self: self.model and self.dead)
    @rule(data=st.data())
    def the_dead_are_no_targets(self, data: st.DataObject) -> None:
        source, target = self.one(data), data.draw(st.sampled_from(self.dead))
        assert target not in self.graph.targets(source)
        self.graph.remove(source, target)  # a stale row may or may not be there: nothing is lost

    @rule()
    def a_walk_begins(self) -> None:
        self.graph.references.walk_begins()
        self.walkers += 1

    @precondition(lambda self: self.walkers)
    @rule()
    def a_walk_ends(self) -> None:
        self.graph.references.walk_ends()
        self.walkers -= 1

    @rule()
    def rows_are_written_and_read_back(self) -> None:
        if not self.walkers:
            target, following = self.graph.references.rows()
            self.graph.references = References(self.graph.table)
            self.graph.references.load(target, following)

    @invariant()
    def agrees_with_the_model(self) -> None:
        self.graph.check()
        for source, targets in self.model.items():
            assert self.graph.targets(source) == list(targets), "oldest first"
            for other in self.model:
                slot = source & SLOT_MASK
                assert self.graph.references.has(slot, other) is (other in targets)
        for target in self.model:
            incoming = sum(target in targets for targets in self.model.values())
            assert self.graph.count(target) == incoming


def test_random_steps_agree_with_a_dict_of_sets() -> None:
    run_state_machine_as_test(
        ReferencesMachine, settings=settings(max_examples=80, stateful_step_count=50)
    )


@any_size
def test_a_reference_is_there_once_and_can_be_taken_back(graph: Graph, size: int) -> None:
    source, others = family(graph, size)
    assert not any(graph.add(source, other) for other in others)
    assert graph.targets(source) == others
    for number, other in enumerate(others):
        assert graph.remove(source, other)
        assert not graph.remove(source, other)
        assert graph.targets(source) == others[number + 1 :]
        assert graph.count(other) == 0
        graph.check()


def test_an_object_may_refer_to_itself(graph: Graph) -> None:
    source = graph.born()
    assert graph.add(source, source)
    assert graph.targets(source) == [source]
    graph.dies(source)
    graph.check()


@any_size
def test_a_freed_target_counts_for_nothing_nor_does_its_successor(graph: Graph, size: int) -> None:
    source, others = family(graph, size)
    for other in others:
        graph.dies(other)
    assert graph.targets(source) == []
    successors = [graph.born() for _ in others]
    assert {each & SLOT_MASK for each in successors} == {each & SLOT_MASK for each in others}
    assert graph.targets(source) == []
    assert [graph.count(each) for each in successors] == [0] * size
    graph.check()
    for other in others:
        graph.remove(source, other)
    assert [graph.count(each) for each in successors] == [0] * size, "not counted twice"
    for each in successors:
        assert graph.add(source, each)
    assert graph.targets(source) == successors
    graph.check()


@any_size
def test_rows_are_used_again(graph: Graph, size: int) -> None:
    source, others = family(graph, size)
    for _ in range(40):
        for other in others:
            graph.remove(source, other)
        for other in others:
            graph.add(source, other)
        graph.check()
    assert len(graph.references.target) <= 3 * size + 2 * HUB + 1


@any_size
def test_rows_of_the_dead_are_used_again(graph: Graph, size: int) -> None:
    for _ in range(20):
        source, others = family(graph, size)
        graph.check()
        for each in (source, *others):
            graph.dies(each)
        graph.check()
    assert len(graph.references.target) == size


def test_stale_targets_do_not_pile_up_in_a_hub(graph: Graph) -> None:
    source, _ = family(graph, 2 * HUB)
    for _ in range(500):
        target = graph.born()
        graph.add(source, target)
        graph.dies(target)
    assert len(graph.references.target) < 10 * HUB
    graph.check()


def test_a_hub_that_loses_its_targets_is_an_ordinary_source_again(graph: Graph) -> None:
    source, others = family(graph, 3 * HUB)
    for other in others[3:]:
        graph.dies(other)
    for _ in range(5 * HUB):
        fresh = graph.born()
        graph.add(source, fresh)
        graph.remove(source, fresh)
        graph.dies(fresh)
        graph.check()
    assert graph.targets(source) == others[:3]
    assert sum(1 for _ in walk(graph, source)) <= HUB + 1


# -- collectors on their way -----------------------------------------------------------------------


@any_size
@pytest.mark.parametrize("stop_after", [1, 5, 15, 16, 40])
def test_a_walker_misses_nothing_that_stays(graph: Graph, size: int, stop_after: int) -> None:
    """It stops in the middle of a chain; what is removed around it moves nothing that is kept."""
    source, others = family(graph, size)
    graph.references.walk_begins()
    walker = walk(graph, source)
    seen = [target for _, target in zip(range(stop_after), walker, strict=False)]
    removed, kept = others[::2], others[1::2]
    for other in removed:
        graph.remove(source, other)
    elsewhere = graph.born()
    for target in others:
        graph.add(elsewhere, target)  # would reuse the removed rows, if that were allowed
    for fresh in [graph.born() for _ in range(3 * HUB)]:
        graph.add(source, fresh)  # rebuilds a hub
    seen += walker
    assert set(kept) <= set(seen)
    graph.check()
    graph.references.walk_ends()
    graph.check()


@any_size
def test_a_walker_comes_to_the_end_of_a_chain_whose_source_is_gone(graph: Graph, size: int) -> None:
    source, _others = family(graph, size)
    graph.references.walk_begins()
    walker = walk(graph, source)
    next(walker)
    graph.dies(source)
    strangers = family(graph, size)[1]
    seen = set(walker)
    assert not seen & set(strangers), "it never strays into another chain"
    assert len(seen) == size - 1
    graph.references.walk_ends()
    graph.check()


def test_rows_rest_until_the_last_walker_has_finished(graph: Graph) -> None:
    source, others = family(graph, 4)
    graph.references.walk_begins()
    graph.references.walk_begins()
    for other in others:
        graph.remove(source, other)
    graph.references.walk_ends()
    for other in others:
        graph.add(source, other)
    assert len(graph.references.target) == 8, "one is still on its way"
    for other in others:
        graph.remove(source, other)
    graph.references.walk_ends()
    for other in others:
        graph.add(source, other)
    assert len(graph.references.target) == 8
    graph.check()
