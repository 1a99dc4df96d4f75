"""Conversion of an index to a few long arrays and back. Counts are grouped by their width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptData
from .documents import Documents
from .postings import Postings
from .runs import Run, Segment

_WIDTHS = (1, 2, 4, 8)  # bytes of a count


def pack(postings: Postings) -> dict[str, NDArray[Any]]:
    """Return documents and runs as arrays; no merge may be under way."""
    return {**postings.documents.export(), **_pack_runs(postings.runs.values())}


def unpack(arrays: Mapping[str, NDArray[Any]], segment_size: int) -> Postings:
    """Return the index that was packed; its postings are views of the arrays."""
    try:
        postings = Postings(Documents.restore(arrays), segment_size)
        postings.runs = _unpack_runs(arrays, segment_size)
    except (KeyError, ValueError, IndexError) as error:
        raise CorruptData(f"the saved index is incomplete ({error!r}); rebuild it") from error
    return postings


def _pack_runs(runs: Iterable[Run]) -> dict[str, NDArray[Any]]:
    runs = list(runs)
    segments = [segment for run in runs for segment in run.segments]
    shapes = [(len(each.terms), each.size, each.counts.itemsize) for each in segments]
    table = [(run.label, run.removed, run.documents, len(run.segments)) for run in runs]
    return {
        "runs": np.array(table, np.int64).reshape(-1),
        "segments": np.array(shapes, np.int64).reshape(-1),
        "members": _joined([part for run in runs for part in run.members], np.uint32),
        "terms": _joined([each.terms for each in segments], np.uint64),
        "starts": _joined([each.starts for each in segments], np.uint32),
        "slots": _joined([each.slots for each in segments], np.uint32),
        **{
            f"counts{width}": _joined(
                [each.counts for each in segments if each.counts.itemsize == width],
                np.dtype(f"u{width}"),
            )
            for width in _WIDTHS
        },
    }


def _unpack_runs(arrays: Mapping[str, NDArray[Any]], segment_size: int) -> dict[int, Run]:
    cursor = _Cursor(arrays)
    shapes = iter(arrays["segments"].reshape(-1, 3).tolist())
    runs: dict[int, Run] = {}
    for label, removed, documents, count in arrays["runs"].reshape(-1, 4).tolist():
        run = runs[label] = Run(label, segment_size)
        run.removed = removed
        run.admit(cursor.take("members", documents))
        for _ in range(count):
            terms, size, width = next(shapes)
            run.keep(
                Segment(
                    cursor.take("terms", terms),
                    cursor.take("starts", terms + 1),
                    cursor.take("slots", size),
                    cursor.take(f"counts{width}", size),
                )
            )
    return runs


class _Cursor:
    """Reads arrays piece by piece, from the left."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._taken: dict[str, int] = {}

    def take(self, name: str, count: int) -> NDArray[Any]:
        begin = self._taken.get(name, 0)
        self._taken[name] = begin + count
        return self._arrays[name][begin : begin + count]


def _joined(parts: list[Any], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts])
