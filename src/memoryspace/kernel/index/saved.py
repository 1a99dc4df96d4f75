"""The saved index of a space, so that opening a space need not read every text again.

    index/<lsn>/sparse.*   the index after that change
    index/<lsn>/rows.*     a fingerprint of every row of the table at that moment, written last

It is a hint: nothing durable depends on it. One that cannot be used is removed and rebuilt from the
objects. The fingerprints decide what can be used: a text counts as indexed if its row is still the
same write, whatever has happened since: changes, a crash, a restore. An index must never be ahead
of the journal, since the numbers of lost changes are given again. So it is saved after the journal
is synced, and one that is ahead is removed.
"""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...retrieval import SparseIndex
from ...retrieval.persistence import OutdatedIndex, load_arrays, save_arrays
from ..durable.disk import Disk
from ..heap.table import SLOT_MASK, ObjectTable

logger = logging.getLogger(__name__)

Rows = NDArray[np.uint64]
SlotNumbers = NDArray[np.intp]

_ROWS = "rows"
_NAME = re.compile(r"[0-9]{20}")
_ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplying spreads every bit over the higher ones
_HALF = np.uint64(32)


class CoveredIndex(NamedTuple):
    """An index, and the fingerprints of the rows that it covers."""

    texts: SparseIndex
    rows: Rows


class SavedIndexes:
    """The folder of saved indexes. It is created by the first save."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, lsn: int) -> CoveredIndex:
        """Return the newest usable index at an lsn, or an empty one; remove all others."""
        for each in reversed(self._lsns()):
            found = self._open(each, lsn)
            if found is not None:
                self._remove_all_but(each)
                return found
        self._remove_all_but(None)
        return empty_index()

    def save(self, index: SparseIndex, table: ObjectTable, lsn: int) -> None:
        """Save the index at an lsn, then remove older ones."""
        path = self._path(lsn)
        index.save(path)
        save_arrays(path, _ROWS, {_ROWS: fingerprints(table)}, {})
        self._remove_all_but(lsn)

    def remove(self) -> None:
        """Remove every saved index durably; ``OSError`` if that fails."""
        for lsn in self._lsns():
            shutil.rmtree(self._path(lsn))
        if self._folder.is_dir():
            Disk().sync_folder(self._folder)

    def _open(self, lsn: int, last: int) -> CoveredIndex | None:
        path = self._path(lsn)
        if lsn > last:
            logger.warning("the index in %s is ahead of change %d and is rebuilt", path, last)
            return None
        try:
            index = SparseIndex.load(path, any_word=True)
            return CoveredIndex(index, load_arrays(path, _ROWS).arrays[_ROWS])
        except OutdatedIndex as error:
            logger.info("the index of the space is rebuilt: %s", error)
        except FileNotFoundError:
            logger.info("the index in %s is incomplete and is rebuilt", path)
        except Exception as error:  # the objects are safe without it
            logger.warning("the index in %s cannot be used and is rebuilt: %r", path, error)
        return None

    def _lsns(self) -> list[int]:
        try:
            return sorted(int(each.name) for each in self._folder.iterdir() if _is_ours(each))
        except OSError:
            return []  # nothing was saved, or it cannot be listed

    def _path(self, lsn: int) -> Path:
        return self._folder / f"{lsn:020d}"

    def _remove_all_but(self, kept: int | None) -> None:
        for lsn in self._lsns():
            if lsn != kept:
                shutil.rmtree(self._path(lsn), ignore_errors=True)  # retried with each save


def new_index() -> SparseIndex:
    """Return an empty index. A space returns the best there is, so any matching word counts."""
    return SparseIndex(any_word=True)


def empty_index() -> CoveredIndex:
    """Return a new index, which covers no rows."""
    return CoveredIndex(new_index(), np.zeros(0, np.uint64))


def fingerprints(table: ObjectTable) -> Rows:
    """Return a number for every row that identifies its write, among all spaces."""
    rows = table.rows
    marks = _handles(table)
    for column in (
        np.array(table.stamp[:rows], np.uint64),
        np.array(table.created[:rows], np.float64).view(np.uint64),  # differs between spaces
        np.array(table.size[:rows], np.uint64),
    ):
        marks ^= column
        marks *= _ODD
        marks ^= marks >> _HALF
    return marks


def living_slots(table: ObjectTable) -> SlotNumbers:
    """Return the slots of all objects."""
    return np.flatnonzero(_handles(table))


def reconcile(kept: CoveredIndex, table: ObjectTable) -> tuple[int, SlotNumbers]:
    """Remove stale entries from an index; return how many, and the slots that it lacks."""
    handles, marks, index = _handles(table), fingerprints(table), kept.texts
    common = min(len(marks), len(kept.rows))
    is_same = np.zeros(len(marks), np.bool_)
    is_same[:common] = (marks[:common] == kept.rows[:common]) & (handles[:common] != 0)

    keys = index.keys()
    slots = (keys & np.uint64(SLOT_MASK)).astype(np.intp)
    is_right = slots < len(marks)
    inside = slots[is_right]
    is_right[is_right] = is_same[inside] & (handles[inside] == keys[is_right])
    stale = keys[~is_right]
    index.remove_many(stale)

    lacking = handles != 0
    lacking[slots[is_right]] = False
    return len(stale), np.flatnonzero(lacking)


def _handles(table: ObjectTable) -> Rows:
    return np.array(table.handle[: table.rows], np.uint64)


def _is_ours(path: Path) -> bool:
    return _NAME.fullmatch(path.name) is not None and path.is_dir()
