"""Three engines, one contract; what only a disk can do to one is tested with real files."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import lmdb
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memoryspace.errors import (
    CorruptData,
    InvalidInput,
    MemorySpaceError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from memoryspace.kernel.tiers.cold import (
    ColdStorage,
    LMDBColdStorage,
    RamColdStorage,
    SQLiteColdStorage,
    open_cold,
)
from memoryspace.testing.cold_contract import COLD_CONTRACT, ColdCheck

DISK_ENGINES = ["lmdb", "sqlite"]

WRITER = """
import itertools, sys
from memoryspace.kernel.tiers.cold import open_cold
storage = open_cold(sys.argv[1])
for batch in itertools.count():
    first = batch * 50
    storage.save_many((key, b"%d " % key * 100) for key in range(first, first + 50))
    if batch % 3 == 2:
        storage.delete_many(range(first - 50, first))
    print(batch, flush=True)
"""

FULL_DISK = """
import resource, sys
from memoryspace.errors import StoreUnavailable
from memoryspace.kernel.tiers.cold import open_cold
storage = open_cold(sys.argv[1])
storage.save_many((key, b"x" * 1000) for key in range(100))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
try:
    storage.save_many((key, b"y" * 1000) for key in range(50, 2000) if key >= 100)
except StoreUnavailable as error:
    print(error)
assert list(storage.keys()) == list(range(100)), len(storage)
assert len(storage) == 100
storage.check()
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
storage.save_many((key, b"y" * 1000) for key in range(100, 2000))
storage.check()
storage.close()
print(len(open_cold(sys.argv[1])))
"""


def make(engine: str, folder: Path, *, durable: bool = False) -> ColdStorage:
    if engine == "ram":
        return RamColdStorage()
    if engine == "lmdb":
        return LMDBColdStorage(folder / "cold.lmdb", durable=durable)
    return SQLiteColdStorage(folder / "cold.sqlite", durable=durable, timeout=0)


def file_of(engine: str, folder: Path) -> Path:
    return folder / f"cold.{engine}"


def python(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("check", COLD_CONTRACT, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("engine", ["ram", "sqlite", "lmdb"])
def test_the_cold_contract(engine: str, check: ColdCheck, tmp_path: Path) -> None:
    with make(engine, tmp_path) as storage:
        check(storage)


def test_the_contract_has_no_check_missing() -> None:
    assert len(COLD_CONTRACT) >= 15


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_everything_is_there_after_reopening(engine: str, durable: bool, tmp_path: Path) -> None:
    for turn in range(3):
        with make(engine, tmp_path, durable=durable) as storage:
            assert list(storage.keys()) == list(range(turn * 10))
            storage.save_many((turn * 10 + n, b"%d" % n) for n in range(10))
            storage.sync()
            assert len(storage) == (turn + 1) * 10
            storage.check()
    with make(engine, tmp_path) as storage:
        assert storage.load(25) == b"5"


def test_a_full_map_grows_and_the_batch_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "small"
    with LMDBColdStorage(path, map_size=65_536, durable=False) as storage:
        storage.save_many((key, b"x" * 1000) for key in range(3000))
        storage.save(5000, b"y" * 5_000_000)
        assert len(storage) == 3001
        storage.check()
    with LMDBColdStorage(path, map_size=65_536) as storage:
        storage.save(5001, b"z" * 100_000)
        assert len(storage.load(5000)) == 5_000_000


def test_a_map_that_is_full_can_still_be_emptied(tmp_path: Path) -> None:
    with LMDBColdStorage(tmp_path / "small", map_size=65_536, durable=False) as storage:
        for key in range(40):
            storage.save(key, b"x" * 1000)
        assert storage.delete_many(range(40)) == 40
        assert len(storage) == 0


@pytest.mark.parametrize("size", [0, -1, 1.5, "1", None])
def test_a_map_size_must_be_a_number_of_bytes(size: int, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="map_size"):
        LMDBColdStorage(tmp_path / "x", map_size=size)
    assert list(tmp_path.iterdir()) == []


class ThreeEngines(RuleBasedStateMachine):
    """Whatever is done to all three engines, all three answer alike."""

    keys = st.integers(0, 12) | st.sampled_from([2**32, 2**63 - 1])
    batches = st.lists(st.tuples(keys, st.sampled_from([b"", b"a", b"b" * 5000])), max_size=6)

    @initialize()
    def open(self) -> None:
        self.folder = Path(mkdtemp())
        self.engines = {name: make(name, self.folder) for name in ("ram", "sqlite", "lmdb")}

    def all(self, verb: Callable[[ColdStorage], object]) -> object:
        answers = [_answer(verb, engine) for engine in self.engines.values()]
        assert answers[0] == answers[1] == answers[2]
        return answers[0]

    @rule(batch=batches)
    def save(self, batch: list[tuple[int, bytes]]) -> None:
        self.all(lambda storage: storage.save_many(batch))

    @rule(keys=st.lists(keys, max_size=6))
    def load(self, keys: list[int]) -> None:
        self.all(lambda storage: list(storage.load_many(keys).items()))
        for key in keys:
            self.all(lambda storage, key=key: storage.load(key))

    @rule(keys=st.lists(keys, max_size=4))
    def delete(self, keys: list[int]) -> None:
        self.all(lambda storage: storage.delete_many(keys))

    @rule(engine=st.sampled_from(DISK_ENGINES))
    def reopen(self, engine: str) -> None:
        self.engines[engine].close()
        self.engines[engine] = make(engine, self.folder)

    @invariant()
    def all_hold_the_same(self) -> None:
        keys = self.all(lambda storage: list(storage.keys()))
        assert isinstance(keys, list)
        assert self.all(len) == len(keys)
        self.all(lambda storage: storage.check())
        self.all(lambda storage: [key in storage for key in range(13)])

    def teardown(self) -> None:
        for engine in getattr(self, "engines", {}).values():
            engine.close()
        shutil.rmtree(getattr(self, "folder", "/nonexistent"), ignore_errors=True)


TestThreeEngines = ThreeEngines.TestCase
TestThreeEngines.settings = settings(max_examples=20, stateful_step_count=15)


def _answer(verb: Callable[[ColdStorage], object], storage: ColdStorage) -> object:
    try:
        return verb(storage)
    except (InvalidInput, KeyError) as error:
        return type(error)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
@pytest.mark.parametrize("batches", [1, 12])
@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_a_killed_writer_leaves_all_it_acknowledged(
    engine: str, batches: int, tmp_path: Path
) -> None:
    make(engine, tmp_path).close()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= batches:
            break
    writer.kill()
    acknowledged = max([batches, *(int(line) for line in writer.stdout if line.strip())])
    writer.wait()
    with open_cold(tmp_path) as storage:
        storage.check()
        held = set(storage.keys())
        for batch in range(acknowledged + 3):
            present = [key in held for key in range(batch * 50, batch * 50 + 50)]
            assert all(present) or not any(present)
            if batch <= acknowledged and batch % 3 != 1:
                assert all(present)
            if batch % 3 == 1 and batch < acknowledged:
                assert not any(present)
        storage.save(10**9, b"and it goes on")
        assert all(storage.load(key) == b"%d " % key * 100 for key in held)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_a_batch_that_finds_no_room_changes_nothing(engine: str, tmp_path: Path) -> None:
    make(engine, tmp_path).close()
    run = python(FULL_DISK, tmp_path)
    assert run.returncode == 0, run.stderr
    complaint, count = run.stdout.splitlines()
    assert str(file_of(engine, tmp_path)) in complaint
    assert "disk" in complaint
    assert count == "2000"


@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_a_damaged_value_is_named_and_the_others_can_be_read(engine: str, tmp_path: Path) -> None:
    path = file_of(engine, tmp_path)
    with make(engine, tmp_path) as storage:
        storage.save_many([(1, b"first value"), (2, b"second value"), (3, b"third value")])
    path.write_bytes(path.read_bytes().replace(b"second value", b"second valve"))
    with make(engine, tmp_path) as storage:
        assert storage.load(1) == b"first value"
        with pytest.raises(CorruptData, match="key 2 is damaged") as caught:
            storage.load(2)
        assert str(path) in str(caught.value)
        with pytest.raises(CorruptData, match="key 2"):
            storage.load_many([1, 2, 3])
        with pytest.raises(CorruptData, match="key 2"):
            storage.check()
        assert storage.delete(2) is True
        storage.save(2, b"second value")
        storage.check()


def test_a_value_under_another_key_is_noticed(tmp_path: Path) -> None:
    with make("sqlite", tmp_path) as storage:
        storage.save_many([(1, b"same size"), (2, b"different")])
    change(tmp_path, "UPDATE cold SET key = 3 WHERE key = 2")
    with make("sqlite", tmp_path) as storage, pytest.raises(CorruptData, match="key 3"):
        storage.load(3)


@pytest.mark.parametrize("frame", ["", b"", b"\0\0\0", "text", None, 1])
def test_what_is_no_frame_is_damaged(frame: object, tmp_path: Path) -> None:
    make("sqlite", tmp_path).close()
    change(tmp_path, "INSERT INTO cold VALUES (1, ?)", frame)
    with make("sqlite", tmp_path) as storage, pytest.raises(CorruptData, match="key 1"):
        storage.load(1)


def test_a_foreign_entry_among_the_keys_is_noticed(tmp_path: Path) -> None:
    make("lmdb", tmp_path).close()
    put(tmp_path, b"\0\1", b"?")
    with make("lmdb", tmp_path) as storage, pytest.raises(CorruptData, match="restore"):
        storage.check()


@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_a_newer_format_is_refused(engine: str, tmp_path: Path) -> None:
    make(engine, tmp_path).close()
    if engine == "lmdb":
        put(tmp_path, b"\0", b"memoryspace cold 2")
    else:
        change(tmp_path, "PRAGMA user_version = 2")
    before = file_of(engine, tmp_path).read_bytes()
    with pytest.raises(StoreError, match=r"format 2.*upgrade memoryspace"):
        make(engine, tmp_path)
    assert file_of(engine, tmp_path).read_bytes() == before


@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_a_file_of_another_kind_is_left_alone(engine: str, tmp_path: Path) -> None:
    path = file_of(engine, tmp_path)
    path.write_bytes(b"Dear diary, " * 5000)
    with pytest.raises(CorruptData, match="choose another path") as caught:
        make(engine, tmp_path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"Dear diary, " * 5000


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path, b"theirs", b"1")
    connection = sqlite3.connect(tmp_path / "cold.sqlite")
    connection.execute("CREATE TABLE cold (theirs)")
    connection.close()
    for engine in DISK_ENGINES:
        with pytest.raises(StoreError, match="another program"):
            make(engine, tmp_path)
    connection = sqlite3.connect(tmp_path / "cold.sqlite")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


@pytest.mark.parametrize("mark", [b"someone else", b"memoryspace cold ", b"memoryspace cold x"])
def test_a_mark_that_is_not_ours_is_refused(mark: bytes, tmp_path: Path) -> None:
    make("lmdb", tmp_path).close()
    put(tmp_path, b"\0", mark)
    with pytest.raises(StoreError, match="another program"):
        make("lmdb", tmp_path)


@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_an_empty_file_becomes_a_storage(engine: str, tmp_path: Path) -> None:
    file_of(engine, tmp_path).touch()
    with open_cold(tmp_path) as storage:
        storage.save(1, b"one")
        assert storage.load(1) == b"one"
    assert {path.name for path in tmp_path.iterdir()} <= {f"cold.{engine}", f"cold.{engine}-lock"}


@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_a_second_opener_is_told(engine: str, tmp_path: Path) -> None:
    with make(engine, tmp_path) as storage:
        storage.save(1, b"one")
        with pytest.raises(StoreBusy, match=r"already|close that one"):
            make(engine, tmp_path)
        assert storage.load(1) == b"one"
    make(engine, tmp_path).close()


@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_a_missing_folder_is_told(engine: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="folder") as caught:
        make(engine, tmp_path / "absent")
    assert "absent" in str(caught.value)


def test_a_torn_database_is_told_as_damage(tmp_path: Path) -> None:
    with make("sqlite", tmp_path) as storage:
        storage.save_many((key, b"x" * 3000) for key in range(50))
    path = tmp_path / "cold.sqlite"
    body = bytearray(path.read_bytes())
    body[4096:] = b"\x55" * (len(body) - 4096)
    path.write_bytes(body)
    with pytest.raises(CorruptData, match="backup"), make("sqlite", tmp_path) as storage:
        storage.check()


@pytest.mark.parametrize("engine", DISK_ENGINES)
def test_the_storage_that_is_there_wins(engine: str, tmp_path: Path) -> None:
    with make(engine, tmp_path) as storage:
        storage.save(1, b"one")
        kind = type(storage)
    with open_cold(tmp_path) as storage:
        assert type(storage) is kind
        assert storage.load(1) == b"one"


def test_a_new_folder_gets_lmdb(tmp_path: Path) -> None:
    with open_cold(tmp_path / "deep" / "folder") as storage:
        assert type(storage) is LMDBColdStorage
        assert storage.durable
    with open_cold(tmp_path / "other", durable=False) as storage:
        assert not storage.durable


def test_two_storages_in_a_folder_are_refused(tmp_path: Path) -> None:
    for engine in DISK_ENGINES:
        make(engine, tmp_path).close()
    with pytest.raises(StoreError, match="two cold storages"):
        open_cold(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MemorySpaceError, match="writable folder"):
        open_cold(tmp_path / "file" / "folder")


def test_without_lmdb_a_new_folder_gets_sqlite_and_an_old_one_is_not_passed_over(
    tmp_path: Path,
) -> None:
    make("lmdb", tmp_path).close()
    code = """
import sys
sys.modules["lmdb"] = None
import memoryspace.kernel.tiers.cold as cold
from memoryspace.errors import MissingExtra
for act in (lambda: cold.open_cold(sys.argv[1]), lambda: cold.LMDBColdStorage):
    try:
        act()
    except MissingExtra as error:
        print(error)
with cold.open_cold(sys.argv[2]) as storage:
    print(type(storage).__name__)
"""
    run = python(code, tmp_path, tmp_path / "new")
    assert run.stdout.count("pip install 'memoryspace[lmdb]'") == 2, run.stderr
    assert run.stdout.splitlines()[-1] == "SQLiteColdStorage"


def change(folder: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(folder / "cold.sqlite", isolation_level=None)
    connection.execute(statement, values)
    connection.close()


def put(folder: Path, key: bytes, value: bytes) -> None:
    environment = lmdb.open(str(folder / "cold.lmdb"), subdir=False)
    with environment, environment.begin(write=True) as transaction:
        transaction.put(key, value)
