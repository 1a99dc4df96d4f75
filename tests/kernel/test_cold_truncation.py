"""A cold tier that lost its end: told as damage, never a killed process, and the rest salvaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from memoryspace.errors import CorruptData, StoreUnavailable
from memoryspace.kernel import CheckpointManager, Durability, MemoryManager, TieredMemoryManager
from memoryspace.kernel.tiers.cold import LMDBColdStorage, open_cold
from memoryspace.kernel.tiers.cold.lmdb_pages import LMDBPages

OBJECTS = 300
SMALL_HEAP = 20_000

READER = """
import json, sys
from memoryspace.errors import CorruptData
from memoryspace.kernel import Durability, TieredMemoryManager, Tiering

QUIET = Tiering(flush_interval=None)

def read(folder, salvage):
    how = Durability(sync="os", salvage=salvage)
    with TieredMemoryManager(20_000, folder=folder, durability=how, tiering=QUIET) as space:
        read = lost = 0
        for number, id in enumerate(json.loads(sys.argv[1])):
            try:
                assert space.load(id).payload == {"text": "%d " % number * 60}, number
                read += 1
            except CorruptData:
                lost += 1
        if not lost:
            space.check()
        space.store({"text": "new"})
        return [read, lost]

for folder in sys.argv[2:]:
    answers = []
    for salvage in (False, True, False):
        try:
            answers.append(read(folder, salvage))
        except CorruptData as error:
            answers.append(str(error))
    print(json.dumps(answers), flush=True)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A closed space whose objects are nearly all cold, and their ids."""
    folder = tmp_path_factory.mktemp("space")
    how = Durability(sync="os")
    with TieredMemoryManager(SMALL_HEAP, folder=folder, durability=how) as space:
        ids = [space.store({"text": f"{number} " * 60}).id for number in range(OBJECTS)]
        space.checkpoint()
    return folder, ids


def cut_at(whole: Path, length: int, folder: Path) -> Path:
    shutil.copytree(whole, folder)
    os.truncate(folder / "cold" / "cold.lmdb", length)
    return folder


def lengths_of(size: int) -> Iterator[int]:
    """Every border of a page, and places within some."""
    yield from range(4096, size, 4096)
    yield from (0, 1, 100, 4095, 4097, 8191, 8193, size // 3 + 7, size // 2 + 1, size - 1)


def test_a_truncated_file_is_damage_at_every_length_and_the_rest_is_salvaged(
    whole: tuple[Path, list[str]], tmp_path: Path
) -> None:
    source, ids = whole
    size = (source / "cold" / "cold.lmdb").stat().st_size
    lengths = sorted(set(lengths_of(size)))
    folders = [cut_at(source, length, tmp_path / str(length)) for length in lengths]
    command = [sys.executable, "-c", READER, json.dumps(ids), *map(str, folders)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, (run.returncode, run.stderr[-2000:])
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(lengths) > 30
    salvaged = []
    for length, folder, (refused, (read, lost), again) in zip(
        lengths, folders, answers, strict=True
    ):
        assert read + lost == OBJECTS
        assert again == [read, lost]  # what was salvaged is a storage like any other
        salvaged.append(read)
        if isinstance(refused, str):
            assert "cold.lmdb" in refused
            aside = folder / "cold" / "cold.lmdb.damaged1"
            assert aside.stat().st_size == length
        else:
            assert refused == [read, lost]
            assert length == 0 or lost == 0  # an empty file is a new one; it has lost everything
    assert sorted(salvaged) == salvaged
    assert max(salvaged) > 0.9 * OBJECTS


def claimed_size(path: Path) -> int:
    with open(path, "rb") as file:
        return LMDBPages(file.fileno()).claimed_size


def test_a_file_that_lmdb_left_shorter_than_it_claims_is_no_damage(tmp_path: Path) -> None:
    """LMDBPages that a transaction took and gave back are claimed, and never written."""
    random = Random(1)
    shorter = 0
    for number in range(12):
        path, held = tmp_path / f"{number}.lmdb", dict[int, bytes]()
        for _ in range(40):
            first = random.randrange(300)
            keys = range(first, first + random.randrange(1, 80))
            with LMDBColdStorage(path, durable=False) as storage:
                if random.random() < 0.5:
                    new = {key: b"%d" % key * (key * 7 % 1500) for key in keys}
                    storage.save_many(new.items())
                    held |= new
                else:
                    storage.delete_many(keys)
                    held = {key: value for key, value in held.items() if key not in keys}
            shorter += path.stat().st_size < claimed_size(path)
        with LMDBColdStorage(path, durable=False) as storage:
            assert storage.load_many(storage.keys()) == held
            storage.check()
        assert path.stat().st_size >= claimed_size(path)
    assert shorter


def test_what_is_salvaged_is_what_was_saved_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "cold.lmdb"
    values = {key: b"%d," % key * (3 + 37 * (key % 50)) for key in range(400)}
    with LMDBColdStorage(path, durable=False) as storage:
        storage.save_many(values.items())
        storage.delete_many(range(0, 400, 7))
    os.truncate(path, path.stat().st_size * 2 // 3)
    with pytest.raises(CorruptData, match="salvage=True"):
        LMDBColdStorage(path)
    before = path.read_bytes()
    with LMDBColdStorage(path, salvage=True) as storage:
        found = storage.load_many(storage.keys())
        storage.check()
        storage.save(1000, b"new")
    assert 100 < len(found) < 400
    assert all(values[key] == value for key, value in found.items())
    assert (tmp_path / "cold.lmdb.damaged1").read_bytes() == before
    assert not path.with_name("cold.lmdb.copy").exists()


def test_a_second_salvage_keeps_what_the_first_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "cold.lmdb"
    for number in (1, 2):
        with LMDBColdStorage(path, durable=False) as storage:
            storage.save_many((key, b"x" * 3000) for key in range(number * 100, number * 100 + 50))
        os.truncate(path, path.stat().st_size // 2)
        LMDBColdStorage(path, salvage=True).close()
        assert (tmp_path / f"cold.lmdb.damaged{number}").exists()


def test_a_page_that_points_to_itself_is_no_endless_walk(tmp_path: Path) -> None:
    path = tmp_path / "cold.lmdb"
    with LMDBColdStorage(path, durable=False) as storage:
        storage.save_many((key, b"x" * 300) for key in range(200))
    body = bytearray(path.read_bytes())
    for page in range(2, len(body) // 4096):
        start = page * 4096
        if body[start + 10] & 1:  # a branch: let each of its children be itself
            for pointer in range(
                start + 16, start + int.from_bytes(body[start + 12 :][:2], "little"), 2
            ):
                node = start + int.from_bytes(body[pointer : pointer + 2], "little")
                body[node : node + 6] = page.to_bytes(6, "little")
    path.write_bytes(body[:-4096])
    with pytest.raises(CorruptData), LMDBColdStorage(path, salvage=False) as storage:
        storage.check()


def test_a_lock_file_is_never_opened_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "cold").mkdir()
    (tmp_path / "cold" / "cold.lmdb-lock").symlink_to(victim)
    with pytest.raises(StoreUnavailable, match="is a link"):
        open_cold(tmp_path / "cold")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "cold" / "cold.lmdb").exists()


def test_a_folder_in_place_of_the_newest_checkpoint_is_damage(tmp_path: Path) -> None:
    how = Durability(sync="os", keep=1, segment_bytes=420)
    with MemoryManager(1 << 20, folder=tmp_path, durability=how) as space:
        for number in range(20):
            space.store({"text": f"{number} " * 20})
        space.checkpoint()
    (image,) = (tmp_path / "checkpoints").glob("*.image")
    image.unlink()
    image.mkdir()
    (image / "something").touch()
    with pytest.raises(CorruptData, match=r"cannot be read|missing"):
        MemoryManager(1 << 20, folder=tmp_path, durability=how)


def test_a_folder_in_place_of_a_checkpoint_is_passed_over_where_the_journal_reaches(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    how = Durability(sync="os", keep=2)
    with MemoryManager(1 << 20, folder=tmp_path, durability=how) as space:
        first = space.store({"text": "first"}).id
        space.checkpoint()
        second = space.store({"text": "second"}).id
        newest = space.checkpoint()
    image = CheckpointManager(tmp_path / "checkpoints").path_of(newest)
    image.unlink()
    image.mkdir()
    with MemoryManager(1 << 20, folder=tmp_path, durability=how) as space:
        assert "is a folder" in caplog.text
        assert [space.load(each).payload["text"] for each in (first, second)] == ["first", "second"]
        for number in range(3):  # it keeps no later checkpoint from taking its place
            space.store({"text": str(number)})
            space.checkpoint()
    assert len(list((tmp_path / "checkpoints").glob("*.image"))) == 3  # two, and the folder
