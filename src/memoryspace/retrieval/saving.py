"""Recalls in files: saved atomically, and ready to search milliseconds after they are opened.

A folder holds the words (``sparse.*``), the vectors (``dense.*``) and everything else
(``entries.*``, written last: without it the save does not count). Columns are arrays. An entry is
decoded when a search first looks at it, by its type, never as an object that the file names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..embedding import Embedder
from ..errors import CorruptData
from ..version import VERSION
from .catalogue import NO_ROW, Catalogue, StoredEntries
from .dense.index import DenseIndex
from .facets import Facets
from .persistence import load_arrays, save_arrays
from .personal import PersonalReader
from .ranking.profiles import Profiles
from .ranking.traits import INSTRUCTS
from .recall import Recall
from .sparse.index import SparseIndex
from .vector_arm import VectorArm

FORM = 2  # increment it when what is saved changes its meaning

_FILE = "entries"
_BY_ROW = ("before", "after", "sessions", "times", "importances", "ages")
_BETWEEN = "\x1f"  # no id can hold a control character

_encode = msgspec.msgpack.Encoder().encode

Arrays = dict[str, NDArray[Any]]


def save_recall(
    recall: Recall, folder: Path, more: Mapping[str, NDArray[Any]], about: Mapping[str, Any]
) -> None:
    """Write a recall into an empty folder, with more arrays and plain data beside it.

    Raises:
        ValueError: If it is not complete: vectors are missing or being replaced.
        TypeError: If an entry holds something that files cannot.
    """
    arm = recall.vectors
    if arm.waiting or arm.is_changing:
        raise ValueError("some entries wait for their vectors")
    _fresh_words(recall).save(folder)
    if arm.index is not None:
        arm.index.save(folder)
    arrays, plain = _exported(recall)
    embedder = None if arm.embedder is None else arm.embedder.name
    whole = {
        "form": [FORM, VERSION],
        "embedder": embedder,
        "recall": plain,
        "more": dict(about),
    }
    save_arrays(folder, _FILE, {**arrays, **{f"more {n}": a for n, a in more.items()}}, whole)


def load_recall(
    folder: Path,
    *,
    embedder: Embedder | None,
    zone: tzinfo,
    personal: bool,
    make: Callable[..., Recall],
) -> tuple[Recall, Arrays, dict[str, Any]]:
    """Open a saved recall; return it with the arrays and the plain data saved beside it.

    ``make`` is ``Recall.over`` with its options.

    Raises:
        FileNotFoundError: If none was saved, or the save was not finished.
        CorruptData: If it is damaged, or was made by another version or embedder.
    """
    about, arrays = load_arrays(folder, _FILE)
    name = None if embedder is None else embedder.name
    if about.get("form") != [FORM, VERSION] or about.get("embedder") != name:
        raise CorruptData(f"the index in {folder} was made by another version or embedder")
    try:
        plain = about["recall"]
        if plain["personal"] != personal or plain["zone"] != str(zone):
            raise CorruptData(f"the index in {folder} was made with other settings")
        indexes = _Restored(arrays, plain, folder, embedder, zone, personal=personal)
        more = {n.removeprefix("more "): a for n, a in arrays.items() if n.startswith("more ")}
        return make(indexes), more, about["more"]
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise CorruptData(f"the index in {folder} does not fit together: {error!r}") from error


def joined(texts: Sequence[str]) -> NDArray[np.uint8]:
    """Return ids as one array."""
    return np.frombuffer(_BETWEEN.join(texts).encode(), np.uint8)


def parted(array: NDArray[np.uint8], count: int) -> list[str]:
    """Return the ids in an array; raise ``ValueError`` if there are more or fewer."""
    found = array.tobytes().decode().split(_BETWEEN) if count else []
    if len(found) != count:
        raise ValueError(f"{len(found)} ids for {count} entries")
    return found


def _fresh_words(recall: Recall) -> SparseIndex:
    """Return the words to save, without a trace of entries that were removed."""
    if not recall.sparse.holds_removed:
        return recall.sparse
    made, is_used = SparseIndex(), recall.catalogue.used_rows()
    for row in np.argsort(recall.catalogue.ages[: len(recall.catalogue.entries)], kind="stable"):
        if is_used[row]:
            made.add(int(row), recall.indexed_text(int(row)))
    return made


def _exported(recall: Recall) -> tuple[Arrays, dict[str, Any]]:
    catalogue, profiles = recall.catalogue, recall.profiles
    count = len(catalogue.entries)
    encoded = [catalogue.encoded(row) for row in range(count)]
    named, facet_rows = catalogue.export_facets()
    said = profiles.said
    arrays: Arrays = {
        "bodies": np.frombuffer(b"".join(encoded), np.uint8),
        "sizes": np.array([len(each) for each in encoded], np.int64),
        "facets": np.frombuffer(_encode(named), np.uint8),
        "facet rows": facet_rows,
        "traits": profiles.traits[:count],
        "fullness": profiles.fullness[:count],
        "said": np.array([[row, len(each)] for row, each in said.items()], np.int64).reshape(-1),
        "spans": np.array([each for some in said.values() for each in some], np.float64).reshape(
            -1
        ),
        "titled": np.array(list(profiles.titled), np.int64),
        **{name: getattr(catalogue, name)[:count] for name in _BY_ROW},
    }
    plain = catalogue.export_rest() | {"count": count, "zone": str(profiles.zone)}
    plain["personal"] = recall.reader is not None
    if recall.reader is not None:
        records, derived = recall.reader.facts.export(count)
        arrays["records"], arrays["derived"] = joined(records), np.array(derived, np.int64)
        read = recall.reader.messages.export()
        arrays["read"] = np.array(list(read), np.int64)
        arrays["readings"] = np.frombuffer(b"".join(read.values()), np.uint8)
        arrays["reading sizes"] = np.array([len(each) for each in read.values()], np.int64)
    return arrays, plain


class _Restored:
    """The indexes of a recall that was saved, as ``Recall.over`` takes them."""

    def __init__(
        self,
        arrays: Arrays,
        plain: Mapping[str, Any],
        folder: Path,
        embedder: Embedder | None,
        zone: tzinfo,
        *,
        personal: bool,
    ) -> None:
        count = plain["count"]
        stored = StoredEntries(arrays["bodies"].tobytes(), _column(arrays["sizes"], count))
        self.catalogue = catalogue = Catalogue()
        named = msgspec.msgpack.decode(arrays["facets"].tobytes(), type=list[tuple[str, list[Any]]])
        facets = Facets.restore(named, _rows(arrays["facet rows"], count))
        columns = {name: _column(arrays[name], count) for name in _BY_ROW}
        for name in ("before", "after"):
            _rows(columns[name], count, least=NO_ROW)
        catalogue.restore(stored, facets, columns, plain)
        self.profiles = _profiles(arrays, catalogue, zone, count)
        self.sparse = SparseIndex.load(folder)
        self.vectors = VectorArm(embedder)
        if embedder is not None:
            index = DenseIndex.load(folder)
            if index.dimensions != embedder.dimensions:
                raise ValueError(f"vectors of {index.dimensions} dimensions")
            _rows(index.keys(), count)
            self.vectors.restore(index)
        if len(self.sparse) != int(catalogue.used_rows().sum()):
            raise ValueError("the words are of other entries")
        _rows(self.sparse.keys(), count)
        self.reader = _reader(arrays, catalogue, count) if personal else None


def _profiles(arrays: Arrays, catalogue: Catalogue, zone: tzinfo, count: int) -> Profiles:
    made = Profiles(zone)
    made.traits = np.array(_column(arrays["traits"], count), np.uint8)
    made.fullness = np.array(_column(arrays["fullness"], count), np.float64)
    used = catalogue.used_rows()
    standing: list[int] = np.flatnonzero((made.traits & INSTRUCTS > 0) & used).tolist()
    by_age = sorted(standing, key=lambda row: int(catalogue.ages[row]))
    made.instructions = dict.fromkeys(by_age)
    spans = [(begin, end) for begin, end in arrays["spans"].reshape(-1, 2).tolist()]
    begin = 0
    for row, number in arrays["said"].reshape(-1, 2).tolist():
        made.said[row] = tuple(spans[begin : begin + number])
        begin += number
    for row in _rows(arrays["titled"], count).tolist():
        made.names.add(row, catalogue.at(row).title)
        made.titled[row] = None
    return made


def _reader(arrays: Arrays, catalogue: Catalogue, count: int) -> PersonalReader:
    made = PersonalReader()
    derived = _rows(arrays["derived"], count).tolist()
    made.facts.restore(
        parted(arrays["records"], count), {row: catalogue.at(row) for row in derived}
    )
    read = _rows(arrays["read"], count).tolist()
    readings = StoredEntries(arrays["readings"].tobytes(), arrays["reading sizes"])
    made.messages.restore({row: readings.at(at) for at, row in enumerate(read)})
    return made


def _column(array: NDArray[Any], count: int) -> NDArray[Any]:
    if array.shape != (count,):
        raise ValueError(f"a column of {array.shape} for {count} entries")
    return np.array(array)  # one that can be written to


def _rows(array: NDArray[Any], count: int, *, least: int = 0) -> NDArray[np.int64]:
    if len(array) and not (least <= int(array.min()) and int(array.max()) < count):
        raise ValueError("a row that does not exist")
    return array.astype(np.int64, copy=False)


__all__ = ["FORM", "joined", "load_recall", "parted", "save_recall"]
