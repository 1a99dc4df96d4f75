"""References between objects: each is a row of two arrays, in a chain that starts at its source.

A reference to an object that was freed is *stale*: it is ignored, and dropped when its chain is
next rebuilt. A source with many references gets a dict beside its chain, so that adding and
removing one stays cheap. While a collector walks the chains, removed rows are not reused, so its
position in a chain stays valid.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from .table import LINKED, SLOT_MASK, ObjectTable

END = -1
_HUB = 16  # a chain this long gets a dict

_GONE = 0  # the target of a removed reference


class References:
    """The directed graph between living objects, with at most one edge per ordered pair."""

    def __init__(self, table: ObjectTable) -> None:
        self._table = table
        self.target = array("Q")
        self.next = array("i")
        self._free = array("i")
        self._resting: array[int] = array("i")  # rows removed during a walk; free after it
        self._hubs: dict[int, _Hub] = {}
        self._walkers = 0

    def add(self, source: int, target: int) -> bool:
        """Add a reference from a slot to a handle; return whether it is new."""
        table = self._table
        hub = self._hubs.get(source)
        if hub is None:
            length = 0
            for row in self._chain(source):
                if self.target[row] == target:
                    return False
                length += 1
            if length >= _HUB:
                hub = self._make_hub(source)
        elif target in hub.rows:
            return False
        row = self._new_row(target, table.edges[source])
        table.edges[source] = row
        table.flags[source] |= LINKED
        table.references[target & SLOT_MASK] += 1
        if hub is not None:
            hub.rows[target] = row
            hub.length += 1
            if hub.length > 2 * hub.length_when_made + _HUB:
                self._make_hub(source)
        return True

    def remove(self, source: int, target: int) -> bool:
        """Remove a reference; return whether there was one."""
        row = self._find(source, target)
        if row == END:
            return False
        hub = self._hubs.get(source)
        if hub is not None:
            del hub.rows[target]
        self.target[row] = _GONE
        self._lose(target)
        if hub is None:
            self._rebuild(source)
        return True

    def has(self, source: int, target: int) -> bool:
        """Return whether the object in slot ``source`` refers to a handle."""
        return self._find(source, target) != END

    def targets(self, source: int) -> list[int]:
        """Return the handles of the living objects that a slot refers to, oldest first."""
        handle = self._table.handle
        found = [self.target[row] for row in self._chain(source)]
        return [each for each in reversed(found) if each and handle[each & SLOT_MASK] == each]

    def drop(self, source: int) -> None:
        """Remove all references of an object that is being freed."""
        table, targets, following = self._table, self.target, self.next
        recycle = (self._resting if self._walkers else self._free).append
        row = table.edges[source]
        while row != END:
            target = targets[row]
            slot = target & SLOT_MASK
            if target != _GONE and table.handle[slot] == target:
                table.references[slot] -= 1
            recycle(row)
            row = following[row]
        table.edges[source] = END
        self._hubs.pop(source, None)

    def rows(self) -> tuple[array[int], array[int]]:
        """Return a copy of all rows: their targets and what follows each in its chain."""
        return self.target[:], self.next[:]

    def load(self, target: array[int], following: array[int]) -> None:
        """Take over what ``rows`` returned, for the same table."""
        self.target, self.next = target, following
        table, used = self._table, bytearray(len(target))
        table.references = array("I", bytes(4 * len(table.references)))
        if not len(target):
            self._free = array("i")
            return
        for slot in [slot for slot, row in enumerate(table.edges) if row != END]:
            for row in self._chain(slot):
                used[row] = 1
                target_slot = target[row] & SLOT_MASK
                if target[row] and table.handle[target_slot] == target[row]:
                    table.references[target_slot] += 1
        self._free = array("i", (row for row in range(len(target)) if not used[row]))

    def walk_begins(self) -> None:
        """Note that a collector starts to walk chains: no removed row is reused until it ends."""
        self._walkers += 1

    def walk_ends(self) -> None:
        """Note that a collector has finished; removed rows are reused once all have."""
        self._walkers -= 1
        if not self._walkers:
            self._free.extend(self._resting)
            del self._resting[:]

    def check(self) -> None:
        """Verify that counts, chains and hubs agree."""
        table = self._table
        incoming = [0] * table.rows
        used = 0
        for slot in table.living():
            targets = self.targets(slot)
            assert len(set(targets)) == len(targets), f"slot {slot} refers twice to one object"
            for target in targets:
                incoming[target & SLOT_MASK] += 1
            used += sum(1 for _ in self._chain(slot))
            hub = self._hubs.get(slot)
            if hub is not None:
                assert hub.length == sum(1 for _ in self._chain(slot))
                assert set(targets) <= set(hub.rows)
        for slot in table.living():
            assert incoming[slot] == table.references[slot], f"slot {slot}: reference count"
        assert used + len(self._free) + len(self._resting) == len(self.target), "rows were lost"

    def _chain(self, source: int) -> Iterator[int]:
        row = self._table.edges[source]
        while row != END:
            yield row
            row = self.next[row]

    def _find(self, source: int, target: int) -> int:
        hub = self._hubs.get(source)
        if hub is not None:
            return hub.rows.get(target, END)
        return next((row for row in self._chain(source) if self.target[row] == target), END)

    def _lose(self, target: int) -> None:
        slot = target & SLOT_MASK
        if self._table.handle[slot] == target:
            self._table.references[slot] -= 1

    def _new_row(self, target: int, following: int) -> int:
        if self._free:
            row = self._free.pop()
            self.target[row] = target
            self.next[row] = following
            return row
        self.target.append(target)
        self.next.append(following)
        return len(self.target) - 1

    def _recycle(self, row: int) -> None:
        (self._resting if self._walkers else self._free).append(row)

    def _rebuild(self, source: int) -> list[int]:
        """Drop removed and stale references; return the rows that are left.

        A walker on a dropped row can go on from it: the rows that are kept stay linked in the same
        order, so it misses none.
        """
        table = self._table
        kept: list[int] = []
        gone: list[int] = []
        for row in self._chain(source):
            target = self.target[row]
            alive = target != _GONE and table.handle[target & SLOT_MASK] == target
            (kept if alive else gone).append(row)
        following = END
        for row in reversed(kept):
            self.next[row] = following
            following = row
        table.edges[source] = following
        for row in gone:
            self._recycle(row)
        return kept

    def _make_hub(self, source: int) -> _Hub | None:
        kept = self._rebuild(source)
        if len(kept) < _HUB:
            self._hubs.pop(source, None)
            return None
        hub = self._hubs[source] = _Hub({self.target[row]: row for row in kept})
        return hub


class _Hub:
    """The row of each reference of one source, and how long its chain has become."""

    def __init__(self, rows: dict[int, int]) -> None:
        self.rows = rows
        self.length = self.length_when_made = len(rows)
