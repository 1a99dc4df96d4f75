"""The index of a space is kept in its folder: a hint that is believed only where it is right."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryspace.kernel import (
    Durability,
    MemoryManager,
    RamColdStorage,
    Runtime,
    TieredMemoryManager,
    Tiering,
    at,
    fork,
    restore,
)
from memoryspace.retrieval import SparseIndex
from memoryspace.testing import ManualClock

HOW = Durability(sync="os", segment_bytes=4000, keep=50)
WORDS = ("apple", "bread", "cocoa", "dates", "elder", "figs", "grape", "honey")


def flat(folder: Path | None, **options: Any) -> MemoryManager:
    return MemoryManager(200_000, folder=folder, durability=HOW, collectors=(), **options)


def index_of(space: MemoryManager) -> SparseIndex:
    assert space.engine.search is not None
    assert isinstance(space.engine.search.retriever, SparseIndex)
    return space.engine.search.retriever


def is_indexed(space: MemoryManager) -> bool:
    assert space.engine.search is not None
    return not space.engine.search.has_backlog


def found(space: MemoryManager, query: str, tenant: str | None = None) -> dict[str, float]:
    hits = space.retrieve(query, top_k=1000, tenant=tenant)
    return {hit.object.id: round(hit.score, 9) for hit in hits}


def holding(space: MemoryManager, word: str, tenant: str | None = None) -> set[str]:
    return {
        each.id
        for each in space.objects()
        if word in each.payload["text"].split() and tenant in (None, each.tenant)
    }


def check_finds_what_it_holds(space: MemoryManager) -> None:
    for word in WORDS:
        assert set(found(space, word)) == holding(space, word), word
    space.check()
    index_of(space).check()
    assert len(index_of(space)) == len(space)


def crashed(folder: Path, name: str) -> Path:
    """The folder as a crash would leave it now."""
    return Path(shutil.copytree(folder, folder.with_name(name)))


def index_files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "index").rglob("*") if path.is_file())


def filled(folder: Path) -> dict[str, float]:
    """Make a space of forty texts, closed; return what a query finds in it."""
    draw = random.Random(7)
    with flat(folder) as space:
        for number in range(40):
            text = " ".join(draw.choices(WORDS, k=5))
            space.store({"text": text}, id=f"note {number}", tenant="ab"[number % 2])
        return found(space, "apple honey")


# -- opened again ----------------------------------------------------------------------------------


def test_an_opened_space_finds_the_same_without_indexing_again(tmp_path: Path) -> None:
    before = filled(tmp_path / "a")
    with flat(tmp_path / "a") as space:
        assert is_indexed(space)
        assert len(index_of(space)) == 40
        assert found(space, "apple honey") == before
        check_finds_what_it_holds(space)


def test_an_index_that_did_not_change_is_not_saved_again(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    before = [(path, path.stat().st_mtime_ns) for path in index_files(tmp_path / "a")]
    with flat(tmp_path / "a") as space:
        found(space, "apple")
        space.add_root("note 1")  # a change, but of nothing that is indexed
    assert before == [(path, path.stat().st_mtime_ns) for path in index_files(tmp_path / "a")]
    with flat(tmp_path / "a") as space:
        assert is_indexed(space)
        space.free_object("note 1")
    assert before != [(path, path.stat().st_mtime_ns) for path in index_files(tmp_path / "a")]


def test_one_index_is_kept(tmp_path: Path) -> None:
    for number in range(3):
        with flat(tmp_path / "a") as space:
            space.store({"text": f"apple {number}"})
            lsn = space.last_lsn
        assert [path.name for path in (tmp_path / "a/index").iterdir()] == [f"{lsn:020d}"]


def test_after_a_crash_only_what_changed_is_indexed_again(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    with flat(tmp_path / "a") as space:
        space.store({"text": "a kiwi came"}, id="new")
        space.update("note 3", payload={"text": "a kiwi in the place of note three"})
        space.update("note 4", importance=0.9)
        space.free_object("note 5")
        space.store({"text": "a kiwi in the slot of another"}, id="second")
        copy = crashed(tmp_path / "a", "b")
        expected = {word: found(space, word) for word in (*WORDS, "kiwi")}
    with flat(copy) as space:
        assert len(index_of(space)) == 38
        assert not is_indexed(space)
        assert {word: found(space, word) for word in expected} == expected
        assert set(expected["kiwi"]) == {"new", "second", "note 3"}
        check_finds_what_it_holds(space)


def test_a_backlog_that_was_never_indexed_is_still_one_when_the_space_is_opened_again(
    tmp_path: Path,
) -> None:
    filled(tmp_path / "a")
    shutil.rmtree(tmp_path / "a/index")
    with flat(tmp_path / "a") as space:
        space.store({"text": "kiwi"}, id="new")
        assert not is_indexed(space)
    with flat(tmp_path / "a") as space:
        assert "new" in found(space, "kiwi")
        check_finds_what_it_holds(space)


def test_tenants_find_their_own_alone_with_an_index_that_was_kept(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    with flat(tmp_path / "a") as space:
        for word in WORDS:
            for tenant in "ab":
                assert set(found(space, word, tenant)) == holding(space, word, tenant)
            assert found(space, word, "c") == {}


def test_what_has_expired_is_not_found_with_an_index_that_was_kept(tmp_path: Path) -> None:
    clock = ManualClock(100.0)
    with flat(tmp_path / "a", runtime=Runtime(clock=clock)) as space:
        space.store({"text": "apple"}, ttl=10)
    clock.advance(11)
    with flat(tmp_path / "a", runtime=Runtime(clock=clock)) as space:
        assert found(space, "apple") == {}


class Counting(RamColdStorage):
    """Counts what is read."""

    reads = 0

    def _get(self, key: int) -> bytes | None:
        self.reads += 1
        return super()._get(key)

    def _get_many(self, keys: Sequence[int]) -> list[bytes | None]:
        self.reads += len(keys)
        return super()._get_many(keys)


def test_cold_bodies_are_not_read_to_open_and_to_search(tmp_path: Path) -> None:
    cold = Counting()

    def opened() -> TieredMemoryManager:
        return TieredMemoryManager(
            2000,
            folder=tmp_path / "a",
            durability=HOW,
            cold_store=cold,
            tiering=Tiering(flush_interval=None),
        )

    with opened() as space:
        for number in range(60):
            space.store({"text": f"apple number{number} " + "x" * 80})
        space.checkpoint()
    cold.reads = 0
    with opened() as space:
        assert is_indexed(space)
        assert cold.reads == 0
        assert "number7" in space.retrieve("number7", top_k=1)[0].object.payload["text"]
        assert cold.reads <= 1
        assert space.stats()["cold_items"] > 30


# -- an index that cannot be used ------------------------------------------------------------------


def rebuilt(folder: Path, caplog: pytest.LogCaptureFixture, before: dict[str, float]) -> str:
    """Open a space whose index is of no use, and return what was logged."""
    with caplog.at_level(logging.INFO), flat(folder) as space:
        assert len(index_of(space)) == 0
        assert found(space, "apple honey") == before
        check_finds_what_it_holds(space)
    with flat(folder) as space:
        assert is_indexed(space), "and the next time it is there"
    return caplog.text


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied", "missing"])
def test_a_damaged_index_is_built_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: int, damage: str
) -> None:
    before = filled(tmp_path / "a")
    path = index_files(tmp_path / "a")[number]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"flipped": data, "cut": data[: len(data) // 2]}.get(damage, b""))
    if damage == "missing":
        path.unlink()
    assert "is rebuilt" in rebuilt(tmp_path / "a", caplog, before)


def test_an_index_of_words_read_otherwise_is_built_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = filled(tmp_path / "a")
    SparseIndex(language=None).save(index_files(tmp_path / "a")[0].parent)
    assert "is rebuilt" in rebuilt(tmp_path / "a", caplog, before)


def test_a_missing_index_is_built_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = filled(tmp_path / "a")
    shutil.rmtree(tmp_path / "a/index")
    assert "the saved index lacks" in rebuilt(tmp_path / "a", caplog, before)


def test_the_index_of_another_space_finds_nothing_here(tmp_path: Path) -> None:
    with flat(tmp_path / "a", runtime=Runtime(clock=ManualClock(1.0))) as space:
        space.store({"text": "apple"})
    with flat(tmp_path / "b", runtime=Runtime(clock=ManualClock(2.0))) as space:
        space.store({"text": "bread"})
    shutil.rmtree(tmp_path / "a/index")
    shutil.copytree(tmp_path / "b/index", tmp_path / "a/index")
    with flat(tmp_path / "a", runtime=Runtime(clock=ManualClock(3.0))) as space:
        assert found(space, "bread") == {}
        check_finds_what_it_holds(space)


def test_an_older_index_serves_if_the_newest_is_damaged(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    older = crashed(tmp_path / "a", "older")
    with flat(tmp_path / "a") as space:
        space.store({"text": "kiwi"}, id="new")
    index_files(tmp_path / "a")[0].write_bytes(b"")
    shutil.copytree(older / "index", tmp_path / "a/index", dirs_exist_ok=True)
    with flat(tmp_path / "a") as space:
        assert len(index_of(space)) == 40
        assert set(found(space, "kiwi")) == {"new"}
        check_finds_what_it_holds(space)


def test_an_index_ahead_of_the_journal_is_removed_before_its_numbers_come_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock(5.0)  # and sizes alike: nothing tells the two second writes apart
    with flat(tmp_path / "a", runtime=Runtime(clock=clock)) as space:
        space.store({"text": "apple"})
        lost = crashed(tmp_path / "a", "b")
        space.store({"text": "bread"})
    shutil.copytree(tmp_path / "a/index", lost / "index", dirs_exist_ok=True)
    with flat(lost, runtime=Runtime(clock=clock)) as space:
        assert "ahead" in caplog.text
        space.store({"text": "grape"})
        again = crashed(lost, "c")
    with flat(again, runtime=Runtime(clock=clock)) as space:
        assert found(space, "bread") == {}
        check_finds_what_it_holds(space)


def test_a_save_that_fails_is_told_and_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = filled(tmp_path / "a")
    shutil.rmtree(tmp_path / "a/index")
    (tmp_path / "a/index").write_text("a file where a folder should be")
    with flat(tmp_path / "a") as space:
        assert found(space, "apple honey") == before
    assert "was not saved" in caplog.text
    with flat(tmp_path / "a") as space:
        check_finds_what_it_holds(space)


def test_what_is_not_an_index_of_ours_is_left_alone(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    (tmp_path / "a/index/mine").mkdir()
    with flat(tmp_path / "a") as space:
        space.store({"text": "apple"})
    assert (tmp_path / "a/index/mine").is_dir()


def test_a_retriever_that_was_handed_in_is_not_kept(tmp_path: Path) -> None:
    for retriever in (SparseIndex(), None):
        with flat(tmp_path / "a", retriever=retriever) as space:
            space.store({"text": "apple"})
    assert not (tmp_path / "a/index").exists()


class Forgetful(SparseIndex):
    """Fails to add what it does not like."""

    def add(self, key: int, text: str) -> None:
        if text == "bread":
            raise ValueError("no bread")
        super().add(key, text)


def test_a_rewritten_object_is_not_found_by_its_old_words_even_if_the_new_ones_fail() -> None:
    with flat(None, retriever=Forgetful()) as space:
        space.store({"text": "apple"}, id="a")
        space.update("a", payload={"text": "bread"})
        assert found(space, "apple") == found(space, "bread") == {}
        space.update("a", payload={"text": "grape"})
        assert set(found(space, "grape")) == {"a"}


# -- the past --------------------------------------------------------------------------------------


def test_a_restored_space_finds_what_it_holds_again_and_nothing_else(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    with flat(tmp_path / "a") as space:
        before = space.last_lsn
        expected = {word: found(space, word) for word in WORDS}
        space.update("note 1", payload={"text": "kiwi"})
        space.free_object("note 2")
        space.store({"text": "kiwi"}, id="new")
    with flat(tmp_path / "a") as space:  # the index in the folder knows of all that
        restore(space, lsn=before)
        crash = crashed(tmp_path / "a", "b")
        assert {word: found(space, word) for word in WORDS} == expected
        assert found(space, "kiwi") == {}
        check_finds_what_it_holds(space)
    for folder in (tmp_path / "a", crash):
        with flat(folder) as space:
            assert {word: found(space, word) for word in WORDS} == expected
            assert found(space, "kiwi") == {}
            check_finds_what_it_holds(space)


def test_a_restore_indexes_only_what_differs(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    with flat(tmp_path / "a") as space:
        before = space.last_lsn
        space.free_object("note 2")
        restore(space, lsn=before)
        assert len(index_of(space)) == 39
        check_finds_what_it_holds(space)


def test_a_fork_and_the_past_find_what_they_hold(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    with flat(tmp_path / "a") as space:
        before = space.last_lsn
        space.update("note 1", payload={"text": "kiwi"})
        with at(space, lsn=before) as past:
            assert found(past, "kiwi") == {}
            assert set(found(past, "apple")) == holding(past, "apple")
        fork(space, tmp_path / "now")
        fork(space, tmp_path / "then", lsn=before)
    for name, expected in (("now", {"note 1"}), ("then", set[str]())):
        with flat(tmp_path / name) as space:
            assert set(found(space, "kiwi")) == expected
            check_finds_what_it_holds(space)


@pytest.mark.parametrize("tiers", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_a_space_finds_what_it_holds(
    tmp_path: Path, seed: int, tiers: int
) -> None:
    draw, clock, cold = random.Random(seed), ManualClock(1.0), RamColdStorage()
    folder, lsns = tmp_path / "0", [0]

    def opened() -> MemoryManager:
        if tiers == 1:
            return flat(folder, runtime=Runtime(clock=clock))
        return TieredMemoryManager(
            1500,
            folder=folder,
            durability=HOW,
            cold_store=cold,
            tiering=Tiering(flush_interval=None),
            runtime=Runtime(clock=clock),
        )

    def change() -> None:
        ids = space.ids()
        text = " ".join(draw.choices(WORDS, k=3))
        kind = draw.randrange(4)
        if kind < 2 or not ids:
            space.store({"text": text}, tenant=draw.choice("ab"))
        elif kind == 2:
            space.update(draw.choice(ids), payload={"text": text})
        else:
            space.free_object(draw.choice(ids))
        lsns.append(space.last_lsn)

    space = opened()
    for round_ in range(1, 25):
        for _ in range(draw.randrange(12)):
            change()
        kind = draw.choice(("close", "close", "crash", "restore", "checkpoint", "search"))
        if kind == "close":
            space.close()
            space = opened()
        elif kind == "crash":
            copy = crashed(folder, str(round_))
            space.close()  # writes to the folder that nobody opens again
            folder, space = copy, None  # type: ignore[assignment]
            space = opened()
        elif kind == "restore":
            restore(space, lsn=draw.choice(lsns))
        elif kind == "checkpoint":
            space.checkpoint()
        if draw.random() < 0.7:
            check_finds_what_it_holds(space)
    check_finds_what_it_holds(space)
    space.close()


# -- removals --------------------------------------------------------------------------------------


def test_the_keys_of_an_index_are_those_it_knows(tmp_path: Path) -> None:
    index = SparseIndex(seal_at=200, segment_size=8)
    assert index.keys().tolist() == []
    last = (1 << 64) - 1
    for key in (*range(50), last):
        index.add(key, f"apple {key}")
    index.remove(7)
    assert sorted(index.keys().tolist()) == [*range(7), *range(8, 50), last]
    index.save(tmp_path)
    index = SparseIndex.load(tmp_path)
    index.add(7, "apple")
    index.remove(last)
    assert sorted(index.keys().tolist()) == list(range(50))


@pytest.mark.parametrize("is_loaded", [False, True])
def test_many_are_removed_at_once_wherever_they_are(tmp_path: Path, is_loaded: bool) -> None:
    index = SparseIndex(seal_at=400, segment_size=8)
    for key in range(100):
        index.add(key, f"apple {key}")
    if is_loaded:
        index.save(tmp_path)
        index = SparseIndex.load(tmp_path)
    for key in range(100, 125):
        index.add(key, f"apple {key}")
    index.remove(3)
    gone = np.array([0, 3, 5, 99, 101, 124, 500], np.uint64)
    assert index.remove_many(gone) == 5
    assert index.remove_many(gone) == 0
    index.check()
    assert len(index) == 119
    assert not {key for key, _ in index.search("apple", 1000)} & set(gone.tolist())
    index.check()


def many(index: SparseIndex, count: int) -> None:
    draw = random.Random(1)
    for key in range(count):
        index.add(key, " ".join(f"w{draw.randrange(500)}" for _ in range(10)))
    index.search("w1")
    while index.step(1000):
        pass


def give_back_by_adding(index: SparseIndex) -> None:
    for key in range(10_000, 40_000):
        index.add(key, "x")


def give_back_by_searching(index: SparseIndex) -> None:
    for _ in range(20):
        index.search("w1")


def give_back_by_steps(index: SparseIndex) -> None:
    while index.step(0.001):
        pass


@pytest.mark.parametrize("later", [give_back_by_adding, give_back_by_searching, give_back_by_steps])
def test_removing_merges_nothing_and_what_comes_later_gives_the_memory_back(
    later: Callable[[SparseIndex], None],
) -> None:
    index = SparseIndex()
    many(index, 5000)
    runs = {label: run.postings for label, run in index._postings.runs.items()}
    for key in range(4900):
        index.remove(key)
    assert {label: run.postings for label, run in index._postings.runs.items()} == runs
    assert not index._postings.merges
    later(index)
    index.check()
    assert sum(run.postings for run in index._postings.runs.values()) < sum(runs.values())
    assert len(index) - (30_000 if later is give_back_by_adding else 0) == 100


def test_a_space_that_only_frees_gives_the_memory_of_its_index_back() -> None:
    with MemoryManager(10_000_000, collectors=(), runtime=Runtime(pause=1.0)) as space:
        ids = [space.store({"text": f"apple w{n % 300} w{n % 7}"}).id for n in range(3000)]
        space.retrieve("apple")
        space.free_many(ids[:2900])
        before = index_of(space)._postings.nbytes
        space.tick()
        assert index_of(space)._postings.nbytes < before / 2
        check_finds_what_it_holds(space)


class Tidy(SparseIndex):
    """Notes when it was asked to tidy up, and may fail at it."""

    fails = False
    steps = 0

    def step(self, seconds: float) -> bool:
        self.steps += 1
        if self.fails:
            raise ValueError("not today")
        return super().step(seconds)


def test_a_retriever_tidies_up_in_idle_moments_when_something_was_removed() -> None:
    tidy = Tidy()
    with flat(None, retriever=tidy) as space:
        space.store({"text": "apple"}, id="a")
        space.tick()
        assert tidy.steps == 0
        space.free_object("a")
        for _ in range(3):
            space.tick()
        assert tidy.steps == 1, "and then there was nothing left to do"


def test_a_retriever_that_fails_to_tidy_up_fails_nothing_else() -> None:
    tidy = Tidy()
    tidy.fails = True
    with flat(None, retriever=tidy) as space:
        space.store({"text": "apple"}, id="a")
        space.free_object("a")
        space.tick()
        assert tidy.steps == 1
