"""The dense index against a brute-force model: what it finds, what it refuses, what it saves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray

from memoryspace.errors import CorruptData, InvalidInput
from memoryspace.retrieval.dense.index import DenseIndex
from memoryspace.retrieval.dense.rows import CHUNK, MAX_KEY
from memoryspace.retrieval.dense.scan import pack

SMALL = 5  # dimensions


def some_vectors(count: int, dimensions: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32)


def clustered(count: int, dimensions: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors around a few hundred centres: near neighbours exist, as they do for texts."""
    centres = some_vectors(300, dimensions, seed)
    which = np.random.default_rng(seed + 1).integers(0, len(centres), count)
    return centres[which] + 0.7 * some_vectors(count, dimensions, seed + 2)


def filled(vectors: NDArray[np.float32], *, exact_up_to: int = 10_000) -> DenseIndex:
    index = DenseIndex(vectors.shape[1], exact_up_to=exact_up_to)
    index.add_many(range(len(vectors)), vectors)
    return index


def keys_of(hits: list[tuple[int, float]]) -> list[int]:
    return [key for key, _ in hits]


Model = dict[int, tuple[int, ...]]  # later entries are newer


def cosines(model: Model, query: list[int]) -> dict[int, float]:
    """Of what may be found: a vector without a direction is near to nothing."""
    asked = np.array(query, np.float64)
    return {
        key: float(asked @ vector) / float(np.linalg.norm(asked) * np.linalg.norm(vector))
        for key, vector in model.items()
        if any(vector) and any(query)
    }


def assert_best(found: list[tuple[int, float]], model: Model, query: list[int], top_k: int) -> None:
    true = cosines(model, query)
    best = sorted(true.values(), reverse=True)[:top_k]
    assert [cosine for _, cosine in found] == pytest.approx(best, abs=1e-6)
    assert [true[key] for key in keys_of(found)] == pytest.approx(best, abs=1e-6)
    assert len(set(keys_of(found))) == len(found)
    for vector in {model[key] for key in keys_of(found)}:
        newest_first = [key for key in reversed(model) if model[key] == vector]
        equal = [key for key in keys_of(found) if model[key] == vector]
        assert equal == newest_first[: len(equal)]


few_numbers = st.lists(st.integers(-3, 3), min_size=SMALL, max_size=SMALL)
few_keys = st.integers(0, 40)


class AgainstBruteForce(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model: Model = {}

    @initialize(exact_up_to=st.sampled_from([0, 3, 10_000]))
    def begin(self, exact_up_to: int) -> None:
        # More candidates than vectors: a scan of bits must then lose nothing.
        self.index = DenseIndex(SMALL, exact_up_to=exact_up_to, candidates=100)

    @rule(key=few_keys, vector=few_numbers)
    def add(self, key: int, vector: list[int]) -> None:
        if key in self.model:
            with pytest.raises(InvalidInput, match="already indexed"):
                self.index.add(key, vector)
        else:
            self.index.add(key, vector)
            self.model[key] = tuple(vector)

    @rule(new=st.dictionaries(few_keys, few_numbers, max_size=8))
    def add_many(self, new: dict[int, list[int]]) -> None:
        new = {key: vector for key, vector in new.items() if key not in self.model}
        self.index.add_many(list(new), np.array(list(new.values())).reshape(-1, SMALL))
        self.model.update((key, tuple(vector)) for key, vector in new.items())

    @rule(key=few_keys)
    def remove(self, key: int) -> None:
        assert self.index.remove(key) == (self.model.pop(key, None) is not None)

    @rule(query=few_numbers, top_k=st.integers(1, 12), exact=st.booleans())
    def search(self, query: list[int], top_k: int, exact: bool) -> None:
        assert_best(self.index.search(query, top_k, exact=exact), self.model, query, top_k)

    @rule(query=few_numbers, top_k=st.integers(1, 12), allowed=st.sets(few_keys))
    def search_filtered(self, query: list[int], top_k: int, allowed: set[int]) -> None:
        left = {key: vector for key, vector in self.model.items() if key in allowed}
        mask = np.isin(np.arange(max(allowed, default=0) + 1), list(allowed))
        assert_best(self.index.search(query, top_k, allow=mask), left, query, top_k)
        assert_best(self.index.search(query, top_k, among=sorted(allowed)), left, query, top_k)

    @rule(query=few_numbers)
    def scores(self, query: list[int]) -> None:
        true = cosines(self.model, query)
        expected = [true.get(key, 0.0) for key in range(41)]
        assert self.index.scores(query, range(41)).tolist() == pytest.approx(expected, abs=1e-6)

    @invariant()
    def is_sound(self) -> None:
        self.index.check()
        assert len(self.index) == len(self.model)
        assert self.index.keys().tolist() == list(self.model)
        assert [key in self.index for key in range(41)] == self.index.has(range(41)).tolist()


TestAgainstBruteForce = AgainstBruteForce.TestCase
TestAgainstBruteForce.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("dimensions", [100, 192, 256, 384, 500, 900])
def test_a_scan_of_bits_finds_the_neighbours_that_an_exact_scan_finds(dimensions: int) -> None:
    index = filled(clustered(6000, dimensions), exact_up_to=100)
    queries = clustered(30, dimensions, seed=0)
    kept = [
        len(
            set(keys_of(index.search(query, 10)))
            & set(keys_of(index.search(query, 10, exact=True)))
        )
        for query in queries
    ]
    assert sum(kept) / (10 * len(queries)) >= 0.95


def test_what_a_scan_of_bits_finds_has_exact_cosines() -> None:
    index = filled(clustered(3000, 64), exact_up_to=0)
    query = clustered(1, 64, seed=5)[0]
    for key, cosine in index.search(query, 20):
        assert cosine == pytest.approx(float(index.scores(query, [key])[0]), abs=1e-12)


def test_equal_vectors_tie_wherever_they_stand_and_the_newest_comes_first() -> None:
    vectors = some_vectors(3000, 384)
    same = [7, 1024, 1999, 2998]
    vectors[same] = vectors[7]
    for exact_up_to in (0, 10_000):
        index = filled(vectors, exact_up_to=exact_up_to)
        hits = index.search(vectors[7], 4)
        assert keys_of(hits) == same[::-1]
        assert keys_of(index.search(vectors[7], 2)) == [2998, 1999]
        assert len({cosine for _, cosine in hits}) == 1


def test_a_vector_is_the_same_whether_it_came_alone_or_with_others() -> None:
    vectors = some_vectors(200, 70)
    together = filled(np.asfortranarray(vectors))
    alone = DenseIndex(70)
    for key, vector in enumerate(vectors):
        alone.add(key, vector)
    assert (alone.vectors(range(200)) == together.vectors(range(200))).all()


def test_a_flood_of_equal_vectors_does_not_hide_a_nearer_one() -> None:
    vectors = np.tile(some_vectors(1, 64), (5000, 1))
    vectors[1234] = some_vectors(1, 64, seed=9)
    index = filled(vectors, exact_up_to=0)
    assert keys_of(index.search(vectors[1234], 1)) == [1234]
    flood = index.search(vectors[0], 10)
    assert len(flood) == 10
    assert all(cosine == pytest.approx(1) for _, cosine in flood)


def test_a_scan_of_bits_does_not_find_what_was_removed() -> None:
    vectors = some_vectors(1500, 100)
    vectors[::7] = 0
    index = filled(vectors, exact_up_to=0)
    for key in range(0, 1500, 3):
        index.remove(key)
    for key in (3, 6, 7, 14, 999):
        found = keys_of(index.search(vectors[key] + 0.01, 20))
        assert len(found) == 20
        assert not [each for each in found if each % 3 == 0 or each % 7 == 0]


def test_vectors_that_agree_in_their_first_bits_are_told_apart_by_the_rest() -> None:
    vectors = some_vectors(30, 384)
    vectors[:, :192] = vectors[0, :192]
    index = DenseIndex(384, exact_up_to=0, candidates=1)
    index.add_many(range(30), vectors)
    assert [keys_of(index.search(vector, 1)) for vector in vectors] == [[key] for key in range(30)]


@pytest.mark.parametrize("exact", [False, True])
def test_a_filtered_search_is_exact_however_many_others_are_nearer(exact: bool) -> None:
    vectors = clustered(5000, 128)
    index = filled(vectors, exact_up_to=1000)
    own = np.random.default_rng(3).choice(5000, 800, replace=False)
    units = vectors[own] / np.linalg.norm(vectors[own], axis=1, keepdims=True)
    for query in clustered(10, 128, seed=4):
        expected = own[np.argsort(-(units @ query), kind="stable")[:10]]
        assert keys_of(index.search(query, 10, among=own, exact=exact)) == expected.tolist()


def test_a_filter_that_leaves_many_is_respected_by_the_scan_of_bits() -> None:
    vectors = clustered(5000, 128)
    index = filled(vectors, exact_up_to=100)
    allow = np.arange(5000) % 2 == 0
    kept = 0
    for query in clustered(20, 128):
        found = keys_of(index.search(query, 10, allow=allow))
        best = keys_of(index.search(query, 10, allow=allow, exact=True))
        assert len(found) == 10
        assert all(key % 2 == 0 for key in found)
        kept += len(set(found) & set(best))
    assert kept >= 0.9 * 200


def test_slots_are_used_again_and_growing_moves_no_vector() -> None:
    index = filled(some_vectors(CHUNK + 10, 8))
    grown = index.nbytes
    first = index.vectors([3])
    for key in range(5000):
        index.remove(key + 100)
    index.add_many(range(CHUNK + 10, CHUNK + 5010), some_vectors(5000, 8, seed=1))
    assert index.nbytes == grown
    assert (index.vectors([3]) == first).all()
    index.check()


def test_keys_may_lie_far_apart() -> None:
    index = DenseIndex(4)
    index.add(5_000_000, [1, 0, 0, 0])
    index.add(2, [0, 1, 0, 0])
    assert keys_of(index.search([1, 0.1, 0, 0], 5)) == [5_000_000, 2]
    assert index.scores([1, 0, 0, 0], [5_000_000, 5_000_001, 2]).tolist() == [1, 0, 0]


def test_a_vector_of_zeros_is_kept_but_never_found() -> None:
    index = DenseIndex(3)
    index.add(0, [0, 0, 0])
    index.add(1, [-1, 0, 0])
    assert 0 in index
    assert index.search([1, 0, 0], 5) == [(1, -1.0)]
    assert index.search([0, 0, 0], 5) == []
    assert index.scores([1, 0, 0], [0]).tolist() == [0]
    assert index.remove(0)
    index.check()


@given(scale=st.sampled_from([1e-38, 1e-20, 1.0, 1e20, 3e38]))
def test_the_length_of_a_vector_does_not_matter(scale: float) -> None:
    index = DenseIndex(2)
    index.add(1, np.array([scale, 0], np.float32))
    index.add_many([2], np.array([[scale, 0]], np.float32))
    assert index.vectors([1, 2]).tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_cannot_be_compared_are_refused(bad: float) -> None:
    index = DenseIndex(2)
    with pytest.raises(InvalidInput, match="key 7 holds NaN or infinite"):
        index.add(7, [bad, 1.0])
    with pytest.raises(InvalidInput, match="key 8 holds NaN or infinite"):
        index.add_many([7, 8], [[1.0, 0.0], [bad, 1.0]])
    with pytest.raises(InvalidInput, match="query vector holds NaN"):
        index.search([bad, 1.0])
    assert len(index) == 0
    index.check()


def test_a_vector_of_another_length_is_refused_with_both_lengths() -> None:
    index = DenseIndex(3)
    with pytest.raises(InvalidInput, match=r"key 1 has the shape \(2,\).* 3 dimensions"):
        index.add(1, [1.0, 2.0])
    with pytest.raises(InvalidInput, match="query vector has the shape"):
        index.search([1.0, 2.0])
    with pytest.raises(InvalidInput, match=r"shape \(1, 3\), got \(1, 2\)"):
        index.add_many([1], [[1.0, 2.0]])


def test_unusable_arguments_are_refused() -> None:
    index = DenseIndex(2)
    with pytest.raises(TypeError, match="must be an int, got str"):
        index.add("1", [1, 0])  # type: ignore[arg-type]
    for key in (-1, MAX_KEY + 1):
        with pytest.raises(InvalidInput, match="out of range"):
            index.add(key, [1, 0])
    with pytest.raises(InvalidInput, match="occurs twice"):
        index.add_many([1, 1], [[1, 0], [0, 1]])
    with pytest.raises(InvalidInput, match="top_k must be 1"):
        index.search([1, 0], 0)
    with pytest.raises(InvalidInput, match="either allow or among"):
        index.search([1, 0], allow=np.ones(1, bool), among=[1])
    with pytest.raises(InvalidInput, match="array of bool"):
        index.search([1, 0], allow=np.array([1, 2]))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="flat sequence of ints"):
        index.search([1, 0], among=["a"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="dimensions must be 1"):
        DenseIndex(0)
    assert len(index) == 0


def test_an_empty_index_finds_nothing() -> None:
    index = DenseIndex(2, exact_up_to=0)
    assert index.search([1, 0]) == []
    assert index.search([1, 0], among=[1, 2]) == []
    assert index.search([1, 0], allow=np.zeros(0, bool)) == []
    assert index.remove(3) is False
    index.add_many([], np.empty((0, 2)))
    index.check()


@pytest.mark.parametrize("dimensions", [1, 63, 64, 65, 192, 200])
def test_the_bits_are_the_signs(dimensions: int) -> None:
    vectors = some_vectors(4, dimensions)
    bits = np.unpackbits(pack(vectors).view(np.uint8), axis=1)
    assert (bits[:, :dimensions] == (vectors > 0)).all()
    assert not bits[:, dimensions:].any()


# Saving


def saved(folder: Path) -> DenseIndex:
    index = filled(some_vectors(500, 70))
    for key in range(0, 500, 3):
        index.remove(key)
    index.add(9000, np.zeros(70))
    index.add(0, some_vectors(1, 70, seed=8)[0])
    index.save(folder)
    return index


def data_file(folder: Path) -> Path:
    (path,) = folder.glob("*.bin")
    return path


@pytest.mark.parametrize("exact_up_to", [0, 10_000])
def test_what_was_saved_is_loaded(tmp_path: Path, exact_up_to: int) -> None:
    index = saved(tmp_path)
    loaded = DenseIndex.load(tmp_path, exact_up_to=exact_up_to)
    loaded.check()
    assert loaded.keys().tolist() == index.keys().tolist()
    assert (loaded.vectors(index.keys()) == index.vectors(index.keys())).all()
    query = some_vectors(1, 70, seed=6)[0]
    assert loaded.search(query, 10) == index.search(query, 10)


def test_more_than_one_chunk_is_saved_and_loaded(tmp_path: Path) -> None:
    index = filled(some_vectors(CHUNK + 100, 4))
    index.remove(5)
    index.save(tmp_path)
    loaded = DenseIndex.load(tmp_path)
    loaded.check()
    assert loaded.keys().tolist() == index.keys().tolist()


def test_a_loaded_index_changes_in_memory_until_it_is_saved(tmp_path: Path) -> None:
    saved(tmp_path)
    before = data_file(tmp_path).read_bytes()
    loaded = DenseIndex.load(tmp_path)
    loaded.remove(1)
    loaded.add(1, some_vectors(1, 70, seed=7)[0])
    loaded.add(10_000, some_vectors(1, 70, seed=8)[0])
    loaded.check()
    assert data_file(tmp_path).read_bytes() == before
    assert 10_000 not in DenseIndex.load(tmp_path)
    loaded.save(tmp_path)
    again = DenseIndex.load(tmp_path)
    assert again.keys().tolist() == loaded.keys().tolist()
    loaded.check()  # it still stands on the file that was replaced


def test_an_empty_index_is_saved_and_loaded(tmp_path: Path) -> None:
    DenseIndex(12).save(tmp_path / "deep" / "folder")
    loaded = DenseIndex.load(tmp_path / "deep" / "folder")
    assert (len(loaded), loaded.dimensions) == (0, 12)
    loaded.add(1, np.ones(12))
    loaded.check()


def test_a_save_that_fails_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = saved(tmp_path)
    old = index.keys().tolist()
    index.add(600, np.ones(70))

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        index.save(tmp_path)
    monkeypatch.undo()
    assert DenseIndex.load(tmp_path).keys().tolist() == old
    assert len(list(tmp_path.iterdir())) == 2


def test_a_missing_index_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no dense index in"):
        DenseIndex.load(tmp_path)


@settings(max_examples=60, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_in_what_is_used_is_reported(
    tmp_path_factory: pytest.TempPathFactory, where: float, bit: int
) -> None:
    folder = tmp_path_factory.mktemp("dense")
    filled(some_vectors(20, 3)).save(folder)
    path = data_file(folder)
    data = bytearray(path.read_bytes())
    used = [*range(20 * 3 * 4), *range(len(data) - 100, len(data))]  # vectors, keys and flags
    data[used[int(where * len(used))]] ^= 1 << bit
    path.write_bytes(data)
    with pytest.raises(CorruptData, match="is damaged in its"):
        DenseIndex.load(folder)


def test_a_cut_or_missing_data_file_is_reported(tmp_path: Path) -> None:
    saved(tmp_path)
    path = data_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptData, match=r"has \d+ bytes, \d+ were written"):
        DenseIndex.load(tmp_path, verify=False)
    path.unlink()
    with pytest.raises(CorruptData, match="has 0 bytes"):
        DenseIndex.load(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"checksum": 1}', '{"checksum": 1, "header": 2}'])
def test_a_header_that_is_none_is_reported(tmp_path: Path, text: str) -> None:
    saved(tmp_path)
    (tmp_path / "dense.json").write_text(text)
    with pytest.raises(CorruptData, match="is not a header"):
        DenseIndex.load(tmp_path)


def test_a_header_that_was_changed_is_reported(tmp_path: Path) -> None:
    saved(tmp_path)
    path = tmp_path / "dense.json"
    outer = json.loads(path.read_text())
    outer["header"] = outer["header"].replace('"dimensions":70', '"dimensions":71')
    path.write_text(json.dumps(outer))
    with pytest.raises(CorruptData, match="does not match its checksum"):
        DenseIndex.load(tmp_path)
