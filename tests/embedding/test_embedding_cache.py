"""The cache in files: what it keeps, what it forgets, and what it does with damaged files."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryspace.embedding import (
    CachedEmbedder,
    CallableEmbedder,
    Embedder,
    FileEmbeddingCache,
    VectorFiles,
)
from memoryspace.errors import InvalidInput

ONE = [[0.1, 0.2], [0.3, 0.4]]
TWO = [[0.5, 0.6], [0.7, 0.8]]


def npy_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npy"))


@pytest.fixture
def cache(tmp_path: Path) -> FileEmbeddingCache:
    return FileEmbeddingCache(str(tmp_path / "cache"))


async def fill(cache: FileEmbeddingCache, names: Sequence[str]) -> None:
    """Store under each name, each file older than the next by its time stamp."""
    for age, name in enumerate(names):
        await cache.store(ONE, name)
        path = cache.files.path(name)
        if path.exists():
            os.utime(path, ns=(10**18 + age, 10**18 + age))


def test_vectors_come_back_as_they_were_stored(cache: FileEmbeddingCache) -> None:
    async def scene() -> None:
        assert await cache.retrieve({"text": "a"}) is None
        await cache.store(ONE, {"text": "a"})
        assert await cache.retrieve({"text": "a"}) == ONE
        assert await cache.retrieve({"text": "b"}) is None

    asyncio.run(scene())


def test_what_is_there_stays_unless_overwritten(cache: FileEmbeddingCache) -> None:
    async def scene() -> None:
        await cache.store(ONE, "a")
        await cache.store(TWO, "a")
        assert await cache.retrieve("a") == ONE
        await cache.store(TWO, "a", overwrite=True)
        assert await cache.retrieve("a") == TWO

    asyncio.run(scene())


def test_the_order_of_keys_does_not_matter(cache: FileEmbeddingCache) -> None:
    async def scene() -> None:
        await cache.store(ONE, {"model": "m", "input": ["x"], "more": {"a": 1, "b": 2}})
        again = await cache.retrieve({"more": {"b": 2, "a": 1}, "input": ["x"], "model": "m"})
        assert again == ONE

    asyncio.run(scene())


@pytest.mark.parametrize("damage", ["empty", "cut", "header", "noise", "pickle"])
def test_a_damaged_file_is_a_miss_and_is_written_anew(
    cache: FileEmbeddingCache, damage: str
) -> None:
    async def scene() -> None:
        await cache.store(ONE, "a")
        (path,) = npy_files(Path(cache.cache_dir))
        whole = path.read_bytes()
        if damage == "pickle":
            np.save(path, np.array([{"run": "me"}], dtype=object), allow_pickle=True)
        else:
            damaged = {"empty": b"", "cut": whole[:-5], "header": whole[:20], "noise": b"x" * 99}
            path.write_bytes(damaged[damage])
        assert await cache.retrieve("a") is None
        await cache.store(TWO, "a")
        assert await cache.retrieve("a") == TWO

    asyncio.run(scene())


def test_remove_forgets_one_and_says_if_there_is_none(cache: FileEmbeddingCache) -> None:
    async def scene() -> None:
        await cache.store(ONE, "a")
        await cache.store(ONE, "b")
        await cache.remove("a")
        assert await cache.retrieve("a") is None
        assert await cache.retrieve("b") == ONE
        with pytest.raises(FileNotFoundError, match="does not exist"):
            await cache.remove("a")

    asyncio.run(scene())


def test_clear_leaves_what_others_put_there(cache: FileEmbeddingCache) -> None:
    asyncio.run(fill(cache, "abc"))
    folder = Path(cache.cache_dir)
    (folder / "notes.txt").write_text("mine")
    asyncio.run(cache.clear())
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_over_the_number_of_files_the_oldest_go_first(tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path), max_file_number=3)

    async def scene() -> None:
        await fill(cache, "abcde")
        found = [await cache.retrieve(name) is not None for name in "abcde"]
        assert found == [False, False, True, True, True]

    asyncio.run(scene())


def test_over_the_size_the_oldest_go_first(tmp_path: Path) -> None:
    size = 128 + 4 * 8  # a header, and four numbers
    cache = FileEmbeddingCache(str(tmp_path), max_cache_size=2.5 * size / 2**20)

    async def scene() -> None:
        await fill(cache, "abcd")
        found = [await cache.retrieve(name) is not None for name in "abcd"]
        assert found == [False, False, True, True]

    asyncio.run(scene())


def test_what_alone_is_over_the_size_is_not_kept(tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path), max_cache_size=100 / 2**20)
    asyncio.run(cache.store(ONE, "a"))
    assert npy_files(tmp_path) == []


def test_a_limit_of_no_files_means_no_limit(tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path), max_file_number=0)
    asyncio.run(fill(cache, "abc"))
    assert len(npy_files(tmp_path)) == 3


def test_the_folder_is_absolute_and_made_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cache = FileEmbeddingCache()
    monkeypatch.chdir("/")
    assert not (tmp_path / ".cache").exists()
    assert cache.cache_dir == str(tmp_path / ".cache" / "embeddings")
    assert Path(cache.cache_dir).is_dir()


def test_a_folder_in_the_place_of_a_file_is_reported(cache: FileEmbeddingCache) -> None:
    cache.files.path("a").mkdir(parents=True)

    async def scene() -> None:
        assert await cache.retrieve("a") is None
        with pytest.raises(RuntimeError, match="is not a file"):
            await cache.store(ONE, "a")

    asyncio.run(scene())


def test_what_cannot_be_kept_is_refused(cache: FileEmbeddingCache) -> None:
    async def scene() -> None:
        with pytest.raises(InvalidInput, match="must be a JSON value"):
            await cache.store(ONE, {1, 2})  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="must be vectors of numbers"):
            await cache.store([["a"]], "a")  # type: ignore[list-item]

    asyncio.run(scene())
    assert npy_files(Path(cache.cache_dir)) == []


def test_files_are_not_touched_on_the_event_loop(
    cache: FileEmbeddingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    replace = os.replace

    def noted(*paths: str) -> None:
        threads.append(threading.current_thread())
        replace(*paths)

    monkeypatch.setattr("os.replace", noted)
    asyncio.run(cache.store(ONE, "a"))
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("is_at_hand", [True, False])
async def test_a_thread_reads_only_what_is_to_be_waited_for(
    cache: FileEmbeddingCache, monkeypatch: pytest.MonkeyPatch, is_at_hand: bool
) -> None:
    await cache.store(ONE, "a")
    path = cache.files.path("a")
    data = path.read_bytes()
    readers: list[threading.Thread] = []
    read_bytes = Path.read_bytes

    def noted(path: Path) -> bytes:
        readers.append(threading.current_thread())
        return read_bytes(path)

    def at_hand(asked: str) -> bytes | None:
        assert asked == str(path)
        return data if is_at_hand else None

    monkeypatch.setattr("memoryspace.files.read_at_hand", at_hand)
    monkeypatch.setattr(Path, "read_bytes", noted)
    assert await cache.retrieve("a") == ONE
    assert len(readers) == (0 if is_at_hand else 1)
    assert threading.main_thread() not in readers


def test_writers_at_the_same_time_leave_whole_files(tmp_path: Path) -> None:
    caches = [VectorFiles(tmp_path, max_files=5) for _ in range(4)]

    def write(number: int) -> None:
        for step in range(20):
            name = f"text {(number + step) % 8}"
            caches[number].put(name, np.full(50, number, np.float32))
            found = caches[number].get(name)
            assert found is None or (found.shape == (50,) and len(set(found.tolist())) == 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert all(path.suffix == ".npy" for path in tmp_path.iterdir())
    VectorFiles(tmp_path, max_files=5).put("last", [1.0])
    assert len(npy_files(tmp_path)) <= 5


# The file format, and the order of going


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        ("a", "ac8d8342bbb2362d13f0a559a3621bb407011368895164b628a54f7fc33fc43c"),
        (
            {"b": [1, 2.5, None], "a": "ä"},
            "cecd50ae940f833ef54a5705dbf8e0655dd0f8a6fcc280d68f14f9d2133d569f",
        ),
    ],
)
def test_a_file_is_named_by_the_hash_of_its_identifier(
    cache: FileEmbeddingCache, identifier: Any, name: str
) -> None:
    asyncio.run(cache.store(ONE, identifier))
    (path,) = npy_files(Path(cache.cache_dir))
    text = json.dumps(identifier, ensure_ascii=False, sort_keys=True)
    assert path.stem == hashlib.sha256(text.encode()).hexdigest()
    assert path.name == f"{name}.npy"


@pytest.mark.parametrize("vectors", [ONE, [[1, 2]], [], [[]], np.ones((2, 3), np.float32)])
def test_a_file_is_what_numpy_saves_and_loads(cache: FileEmbeddingCache, vectors: Any) -> None:
    asyncio.run(cache.store(vectors, "a"))
    (path,) = npy_files(Path(cache.cache_dir))
    saved = io.BytesIO()
    np.save(saved, vectors)
    assert path.read_bytes() == saved.getvalue()
    assert np.load(path).tolist() == np.asarray(vectors).tolist()
    assert asyncio.run(cache.retrieve("a")) == np.asarray(vectors).tolist()


def test_files_that_numpy_saved_are_read_whatever_their_layout(cache: FileEmbeddingCache) -> None:
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for number, array in enumerate([turned, turned.astype(">f4"), turned.astype(np.float16)]):
        np.save(Path(cache.cache_dir) / cache.files.path(number).name, array)
        assert asyncio.run(cache.retrieve(number)) == turned.tolist()
        asyncio.run(cache.store(array, [number]))  # type: ignore[arg-type]  # arrays serve as well
        assert asyncio.run(cache.retrieve([number])) == turned.tolist()


def test_reading_does_not_make_a_file_newer_and_overwriting_does(tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path), max_file_number=3)

    async def scene() -> None:
        await fill(cache, "abc")
        assert await cache.retrieve("a") == ONE
        await cache.store(TWO, "b", overwrite=True)
        await cache.store(ONE, "d")
        await cache.store(ONE, "e")
        found = [await cache.retrieve(name) is not None for name in "abcde"]
        assert found == [False, True, False, True, True]

    asyncio.run(scene())


def test_what_is_there_is_not_even_touched(tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path))
    asyncio.run(fill(cache, "a"))
    before = cache.files.path("a").stat()
    smaller = FileEmbeddingCache(str(tmp_path), max_cache_size=0)
    asyncio.run(smaller.store(TWO, "a"))
    after = cache.files.path("a").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_exactly_at_the_limit_everything_stays(tmp_path: Path) -> None:
    size = 128 + 4 * 8
    cache = FileEmbeddingCache(str(tmp_path), max_file_number=3, max_cache_size=3 * size / 2**20)
    asyncio.run(fill(cache, "abc"))
    assert len(npy_files(tmp_path)) == 3


def test_both_limits_hold_and_what_others_put_there_is_neither_counted_nor_dropped(
    tmp_path: Path,
) -> None:
    size = 128 + 4 * 8
    (tmp_path / "notes.txt").write_bytes(b"x" * 10_000)
    (tmp_path / "folder.npy").mkdir()
    cache = FileEmbeddingCache(str(tmp_path), max_file_number=4, max_cache_size=2.5 * size / 2**20)

    async def scene() -> None:
        await fill(cache, "abcdef")
        assert [name for name in "abcdef" if await cache.retrieve(name)] == ["e", "f"]

    asyncio.run(scene())
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / "folder.npy").is_dir()


def test_the_limits_are_those_it_was_given() -> None:
    cache = FileEmbeddingCache("x", 3, 1.5)
    assert (cache.max_file_number, cache.max_cache_size) == (3, 1.5)


# Several processes

WRITER = """
import sys
import numpy as np
from memoryspace.embedding import VectorFiles
folder, number, stores = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
files = VectorFiles(folder, max_files=50)
for step in range(stores):
    name = f"{(step + number * 7) % 90}"
    files.put(name, np.full(300, float(name)))
    found = files.get(f"{step % 90}")
    assert found is None or found.tolist() == [step % 90] * 300
    if step == 20:
        print("busy", flush=True)
"""


def writers(folder: Path, count: int, stores: int) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(number), str(stores)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]


def check_that_all_files_are_whole(folder: Path) -> None:
    known = {VectorFiles(folder).path(str(name)): name for name in range(90)}
    for path in npy_files(folder):
        assert np.load(path).tolist() == [known[path]] * 300


def test_processes_at_work_in_one_folder_keep_it_whole_and_small(tmp_path: Path) -> None:
    at_work = writers(tmp_path, 3, 200)
    assert [process.communicate()[1] for process in at_work] == [""] * 3
    assert [process.returncode for process in at_work] == [0] * 3
    check_that_all_files_are_whole(tmp_path)
    assert len(npy_files(tmp_path)) <= 50 + 3 * 64  # what each may not yet know of
    VectorFiles(tmp_path, max_files=50).put("one more", [1.0])
    assert len(npy_files(tmp_path)) == 50
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy"}


def test_a_process_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    at_work = writers(tmp_path, 2, 1_000_000)
    for process in at_work:
        assert process.stdout is not None
        assert process.stdout.readline() == "busy\n"
        process.kill()
        process.communicate()
    check_that_all_files_are_whole(tmp_path)
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    VectorFiles(tmp_path, max_files=50).put("one more", [1.0])
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy"}


# An embedder with a cache


class Counting:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [[len(text), 1.0] for text in texts]


def test_a_text_is_embedded_once_and_then_remembered(tmp_path: Path) -> None:
    function = Counting()
    embedder: Embedder = CachedEmbedder(
        CallableEmbedder(function, "length/2", 2), FileEmbeddingCache(str(tmp_path))
    )
    first = embedder.embed(["aa", "b", "aa"])
    second = embedder.embed(["b", "ccc", "aa"])
    assert function.asked == [["aa", "b"], ["ccc"]]
    assert (first[0] == first[2]).all()
    assert (second[2] == first[0]).all()
    assert (embedder.name, embedder.dimensions, embedder.scripts) == ("length/2", 2, None)
    assert embedder.embed([]).shape == (0, 2)


class Apart(CallableEmbedder):
    """An embedder that makes other vectors of questions."""

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed([f"{text}?" for text in texts])


def test_a_question_is_remembered_apart_from_the_same_text(tmp_path: Path) -> None:
    function = Counting()
    embedder = CachedEmbedder(Apart(function, "length/2", 2), VectorFiles(tmp_path))
    said, asked = embedder.embed(["aa"]), embedder.embed_questions(["aa"])
    assert (embedder.embed(["aa"]) == said).all()
    assert (embedder.embed_questions(["aa"]) == asked).all()
    assert (said != asked).any()
    assert function.asked == [["aa"], ["aa?"]]


def test_whose_questions_are_texts_is_asked_once_for_both(tmp_path: Path) -> None:
    function = Counting()
    embedder = CachedEmbedder(CallableEmbedder(function, "length/2", 2), VectorFiles(tmp_path))
    assert (embedder.embed(["aa"]) == embedder.embed_questions(["aa"])).all()
    assert function.asked == [["aa"]]


def test_a_vector_is_remembered_for_its_own_model_only(tmp_path: Path) -> None:
    files = VectorFiles(tmp_path)
    function = Counting()
    for name in ("one/2", "two/2"):
        CachedEmbedder(CallableEmbedder(function, name, 2), files).embed(["aa"])
    assert function.asked == [["aa"], ["aa"]]


@pytest.mark.parametrize("wrong", [[1.0, 2.0, 3.0], [float("nan"), 1.0], [[1.0, 2.0]]])
def test_a_remembered_vector_that_cannot_be_one_is_made_anew(
    tmp_path: Path, wrong: list[float]
) -> None:
    files = VectorFiles(tmp_path)
    embedder = CachedEmbedder(CallableEmbedder(Counting(), "length/2", 2), files)
    files.put({"embedder": "length/2", "text": "aa"}, wrong)
    assert np.allclose(embedder.embed(["aa"]), [[2 / 5**0.5, 1 / 5**0.5]])


@pytest.mark.parametrize(
    "limits", [{"max_file_number": "x"}, {"max_cache_size": "x"}, {"max_cache_size": -1}]
)
def test_a_limit_that_is_no_number_is_refused(tmp_path: Path, limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="must be a number of 0 or more"):
        FileEmbeddingCache(str(tmp_path), **limits)


async def test_vectors_of_different_lengths_are_refused(tmp_path: Path) -> None:
    cache = FileEmbeddingCache(str(tmp_path))
    with pytest.raises(InvalidInput, match="of equal length"):
        await cache.store([[1.0], [1.0, 2.0]], "x")
    assert await cache.retrieve("x") is None
