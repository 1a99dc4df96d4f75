"""An index that was saved is found again as it was, or refused with the reason."""

from __future__ import annotations

import json
import os
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.errors import CorruptData
from memoryspace.retrieval import SparseIndex
from memoryspace.retrieval.persistence import OutdatedIndex, load_arrays, save_arrays

TEXTS = [
    "the cats of Ann's house",
    "a house of cards",
    "getUserName returns the user",
    "我的猫在家",
    "memories of 2023-05-07",
    "",
]


def filled(count: int = 60) -> SparseIndex:
    index = SparseIndex(seal_at=300, segment_size=16)
    for key in range(count):
        index.add(7 * key, f"{TEXTS[key % len(TEXTS)]} number{key} number{key % 3}")
    for key in range(0, count, 5):
        index.remove(7 * key)
    return index


def answers(index: SparseIndex) -> list[list[tuple[int, float]]]:
    queries = ["house cats", "user name", "猫", "number1", "memory 2023-05-07", "the of", "nothing"]
    return [index.search(query, 100, exact=True) for query in queries]


def test_a_saved_index_answers_as_before(tmp_path: Path) -> None:
    index = filled()
    index.save(tmp_path / "new" / "folder")
    loaded = SparseIndex.load(tmp_path / "new" / "folder")
    loaded.check()
    assert len(loaded) == len(index) == 48
    assert answers(loaded) == answers(index)
    assert all((key in loaded) == (key in index) for key in range(500))
    assert -1 not in loaded
    assert 2**64 - 1 not in loaded


def test_an_empty_index_may_be_saved(tmp_path: Path) -> None:
    SparseIndex().save(tmp_path)
    loaded = SparseIndex.load(tmp_path)
    assert (len(loaded), loaded.search("a"), 0 in loaded) == (0, [], False)
    loaded.add(0, "a first text")
    loaded.check()
    assert [key for key, _ in loaded.search("first")] == [0]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["add", "remove", "save"]), st.integers(0, 30)), max_size=60)
)
def test_a_loaded_index_lives_on_like_one_that_never_left(steps: list[tuple[str, int]]) -> None:
    kept = SparseIndex(seal_at=100, segment_size=4)
    moved = SparseIndex(seal_at=100, segment_size=4)
    for number, (what, key) in enumerate(steps):
        if what == "remove":
            assert kept.remove(key) == moved.remove(key)
        elif what == "add":
            for index in (kept, moved):
                index.update(key, f"{TEXTS[number % len(TEXTS)]} word{number % 4}")
        else:
            moved = reloaded(moved)
        moved.check()
        assert len(kept) == len(moved)
    assert answers(moved) == answers(kept)
    keys = np.arange(-3, 35)
    assert moved.scores("house word1", keys).tolist() == kept.scores("house word1", keys).tolist()


def reloaded(index: SparseIndex) -> SparseIndex:
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder))
        return SparseIndex.load(Path(folder))


def test_a_key_in_use_is_known_after_loading(tmp_path: Path) -> None:
    filled().save(tmp_path)
    loaded = SparseIndex.load(tmp_path)
    with pytest.raises(ValueError, match="key 7 is already indexed"):
        loaded.add(7, "again")
    assert loaded.remove(7)
    assert not loaded.remove(7)
    loaded.add(7, "quite another text")
    assert [key for key, _ in loaded.search("quite another")] == [7]
    assert loaded.remove(7)
    assert 7 not in loaded
    loaded.check()


def test_a_second_save_takes_the_place_of_the_first(tmp_path: Path) -> None:
    index = filled()
    index.save(tmp_path)
    loaded = SparseIndex.load(tmp_path)
    loaded.add(1, "zebra")
    loaded.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2  # no data of the first is left
    assert [key for key, _ in SparseIndex.load(tmp_path).search("zebra")] == [1]
    assert answers(loaded) == answers(SparseIndex.load(tmp_path))  # what it reads from is there


def test_a_save_that_fails_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled()
    index.save(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    index.add(1, "zebra")

    def full(_: int) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            index.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert SparseIndex.load(tmp_path).search("zebra") == []
    index.save(tmp_path)
    assert len(SparseIndex.load(tmp_path).search("zebra")) == 1


def test_nothing_saved_is_told_from_something_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SparseIndex.load(tmp_path)


@pytest.mark.parametrize("seed", range(12))
def test_any_changed_byte_is_noticed(tmp_path: Path, seed: int) -> None:
    filled().save(tmp_path)
    draw = random.Random(seed)
    [data] = tmp_path.glob("*.data")
    [manifest] = tmp_path.glob("*.json")
    places = json.loads(manifest.read_text())["body"]["arrays"].values()
    sizes = [(each["offset"], each["count"] * np.dtype(each["dtype"]).itemsize) for each in places]
    offset, size = draw.choice([each for each in sizes if each[1]])
    content = bytearray(data.read_bytes())
    content[offset + draw.randrange(size)] ^= 1 << draw.randrange(8)
    data.write_bytes(content)
    with pytest.raises(CorruptData, match=r"checksum differs.*rebuild"):
        SparseIndex.load(tmp_path)


def test_a_shortened_or_missing_data_file_is_noticed_even_unverified(tmp_path: Path) -> None:
    filled().save(tmp_path)
    [data] = tmp_path.glob("*.data")
    data.write_bytes(data.read_bytes()[:-40])
    with pytest.raises(CorruptData, match="too short"):
        SparseIndex.load(tmp_path, verify=False)
    data.unlink()
    with pytest.raises(CorruptData, match="rebuild"):
        SparseIndex.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged"),
        (b"\xff\xfe", "damaged"),
        (b"[1, 2]", "not a memoryspace index"),
        (b'{"format": "something else"}', "not a memoryspace index"),
        (b'{"format": "memoryspace arrays", "version": 1, "crc": 1, "body": {}}', "checksum"),
    ],
)
def test_a_foreign_or_damaged_manifest_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    filled().save(tmp_path)
    (tmp_path / "sparse.json").write_bytes(content)
    with pytest.raises(CorruptData, match=reason):
        SparseIndex.load(tmp_path)


def test_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    filled().save(tmp_path)
    manifest = tmp_path / "sparse.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(OutdatedIndex, match="upgrade memoryspace or rebuild"):
        SparseIndex.load(tmp_path)


@pytest.mark.parametrize("language", ["german", None])
def test_another_stemmer_than_it_was_made_with_is_refused(
    tmp_path: Path, language: str | None
) -> None:
    filled().save(tmp_path)
    with pytest.raises(OutdatedIndex, match=r"english.*was asked for; rebuild"):
        SparseIndex.load(tmp_path, language=language)


def test_arrays_of_another_kind_of_index_are_refused(tmp_path: Path) -> None:
    filled().save(tmp_path)
    about = load_arrays(tmp_path, "sparse").about
    save_arrays(tmp_path, "sparse", {"keys": np.zeros(3, np.uint64)}, about)
    with pytest.raises(CorruptData, match="incomplete"):
        SparseIndex.load(tmp_path)


def test_counts_of_any_width_are_kept(tmp_path: Path) -> None:
    index = SparseIndex(segment_size=64)
    for key, times in enumerate((1, 300, 70_000)):
        index.add(key, "cat " * times)
        index.search("cat")
    index.save(tmp_path)
    loaded = SparseIndex.load(tmp_path)
    assert loaded.search("cat") == index.search("cat")
    loaded.check()
