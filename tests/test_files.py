import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.files import FileMap, read_at_hand, safe_name, write_atomic

HOSTILE_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "/etc/x",
    "a/b",
    "a\\b",
    ".hidden",
    "a b",
    "a\0",
    "a\n",
    "漢",
]

WRITER = """
import itertools, json, sys
from pathlib import Path
from memoryspace.files import write_atomic
for number in itertools.count():
    body = str(number) * (50_000 // len(str(number)))
    write_atomic(Path(sys.argv[1]), json.dumps({"number": number, "body": body}).encode())
    print(number, flush=True)
"""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def age(folder: Path, *oldest_first: str) -> None:
    """Make the files look written one second after the other."""
    for second, name in enumerate(oldest_first):
        os.utime(folder / name, (1_000_000 + second, 1_000_000 + second))


def test_a_file_is_written_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"the first and longer one", b"second", b""):
        write_atomic(path, data)
        assert path.read_bytes() == data
    assert names_in(tmp_path) == ["file"]


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")
    text: Any = "not bytes"
    with pytest.raises(TypeError):
        write_atomic(path, text)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["file"]


def test_a_failed_rename_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken" / "inner").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        write_atomic(tmp_path / "taken", b"data")
    assert names_in(tmp_path) == ["taken"]
    assert names_in(tmp_path / "taken") == ["inner"]


@pytest.mark.parametrize("moment", range(6))
def test_a_writer_killed_at_any_moment_leaves_a_whole_file(moment: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        acknowledged = -1
        for _ in range(random.Random(moment).randint(1, 60)):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
    found = json.loads(path.read_bytes())
    assert found["number"] >= acknowledged
    assert set(found["body"]) == set(str(found["number"]))


def test_ids_are_shown_as_far_as_they_are_safe() -> None:
    assert safe_name("session-1") == "session-1"
    assert safe_name("alice", "session-1") == "alice@session-1"
    assert safe_name("../Etc/Passwd").startswith("Etc-Passwd~")


ids = st.text(min_size=1, max_size=255) | st.text("abAB._-@~:1", min_size=1, max_size=6)
id_tuples = st.lists(ids, min_size=1, max_size=2).map(tuple)


@given(id_tuples, id_tuples)
def test_two_tuples_of_ids_never_have_one_name(
    first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    assume(first != second)
    assert safe_name(*first).casefold() != safe_name(*second).casefold()


@given(id_tuples, st.sampled_from([str.upper, str.lower, str.swapcase, lambda id_: id_ + "."]))
def test_ids_that_look_alike_have_names_of_their_own(
    first: tuple[str, ...], change: Callable[[str], str]
) -> None:
    second = tuple(change(id_) for id_ in first)
    assume(first != second)
    assert safe_name(*first).casefold() != safe_name(*second).casefold()


@given(id_tuples)
def test_a_safe_name_stays_inside_its_folder_and_fits(parts: tuple[str, ...]) -> None:
    name = safe_name(*parts)
    assert Path(os.path.normpath(Path("/folder") / name)).parent == Path("/folder")
    assert not name.startswith((".", "-"))
    assert name.isascii()
    assert name.isprintable()
    assert 0 < len(name.encode()) < 255 - len(".json")


def test_a_file_map_is_a_mapping(tmp_path: Path) -> None:
    files = FileMap(tmp_path / "new" / "folder", suffix=".bin")
    assert len(files) == 0
    assert "a" not in files
    files["a"] = b"1"
    files.update(b=b"22", c=b"")
    assert dict(files) == {"a": b"1", "b": b"22", "c": b""}
    assert files.pop("a") == b"1"
    del files["c"]
    assert (list(files), len(files), files.bytes_used) == (["b"], 1, 2)
    files.clear()
    assert names_in(tmp_path / "new" / "folder") == []


def test_a_missing_name_is_a_key_error(tmp_path: Path) -> None:
    files = FileMap(tmp_path)
    with pytest.raises(KeyError, match="missing"):
        files["missing"]
    with pytest.raises(KeyError, match="missing"):
        del files["missing"]
    assert files.get("missing") is None


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "x" * 201])
def test_a_hostile_name_is_refused(name: str, tmp_path: Path) -> None:
    files = FileMap(tmp_path / "folder")
    for use in (files.__getitem__, files.__delitem__):
        with pytest.raises(InvalidInput):
            use(name)
    assert name not in files
    with pytest.raises(InvalidInput, match="safe_name"):
        files[name] = b"data"
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if name])
def test_a_hostile_name_can_be_made_safe(name: str, tmp_path: Path) -> None:
    files = FileMap(tmp_path)
    files[safe_name(name)] = b"data"
    assert list(files) == [safe_name(name)]


@pytest.mark.parametrize("limit", [{"max_files": -1}, {"max_bytes": -1}])
def test_a_negative_limit_is_refused(limit: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=next(iter(limit))):
        FileMap(tmp_path, **limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [{"max_files": 3}, {"max_bytes": 3}])
def test_over_a_limit_the_oldest_written_go_first(limit: dict[str, int], tmp_path: Path) -> None:
    files = FileMap(tmp_path, **limit)  # type: ignore[arg-type]
    for name in "edcba":
        files[name] = b"1"
    assert sorted(files) == ["a", "b", "c"]
    assert files.bytes_used == 3


def test_a_big_file_pushes_out_as_many_as_it_needs(tmp_path: Path) -> None:
    files = FileMap(tmp_path, max_bytes=10)
    for name in "abcde":
        files[name] = b"22"
    files["f"] = b"55555"
    assert sorted(files) == ["d", "e", "f"]
    assert files.bytes_used == 9


def test_overwriting_makes_a_file_new_again(tmp_path: Path) -> None:
    files = FileMap(tmp_path, max_files=2)
    files["a"], files["b"] = b"1", b"1"
    assert files["b"] == b"1"  # a read does not count
    files["a"] = b"2"
    files["c"] = b"1"
    assert dict(files) == {"a": b"2", "c": b"1"}


def test_a_file_bigger_than_the_limit_leaves_an_empty_folder(tmp_path: Path) -> None:
    files = FileMap(tmp_path, max_bytes=3)
    files["a"] = b"1"
    files["b"] = b"4444"
    assert names_in(tmp_path) == []
    assert files.bytes_used == 0


def test_the_order_of_writing_outlives_the_object(tmp_path: Path) -> None:
    FileMap(tmp_path).update(a=b"1", b=b"1", c=b"1")
    age(tmp_path, "b", "c", "a")
    files = FileMap(tmp_path, max_files=2)
    assert list(files) == ["b", "c", "a"]
    files["d"] = b"1"
    assert sorted(files) == ["a", "d"]


def test_files_that_are_not_its_own_are_left_alone(tmp_path: Path) -> None:
    for name in ("readme.txt", ".hidden.bin", ".half.tmp"):
        (tmp_path / name).write_bytes(b"foreign")
    (tmp_path / "folder").mkdir()
    files = FileMap(tmp_path, suffix=".bin", max_files=1, max_bytes=5)
    files["a"], files["b"] = b"1", b"1"
    assert list(files) == ["b"]
    files.clear()
    assert names_in(tmp_path) == [".half.tmp", ".hidden.bin", "folder", "readme.txt"]


def test_two_objects_on_one_folder_see_each_others_files(tmp_path: Path) -> None:
    first, second = FileMap(tmp_path), FileMap(tmp_path)
    first["a"] = b"1"
    assert second["a"] == b"1"
    assert "a" in second
    assert (list(second), len(second)) == (["a"], 1)
    del second["a"]
    assert dict(first) == {}


def test_the_files_of_others_count_for_the_limit_before_long(tmp_path: Path) -> None:
    limited, other = FileMap(tmp_path, max_files=10), FileMap(tmp_path)
    for number in range(50):
        other[f"other-{number}"] = b"1"
    age(tmp_path, *(f"other-{number}" for number in range(50)))
    for number in range(200):
        limited[f"own-{number}"] = b"1"
    assert len(limited) == 10
    assert not any(name.startswith("other") for name in limited)


def test_a_file_removed_by_others_is_no_trouble(tmp_path: Path) -> None:
    files = FileMap(tmp_path, max_files=2)
    files["a"], files["b"] = b"1", b"1"
    (tmp_path / "a").unlink()
    files["c"] = b"1"
    assert sorted(files) == ["b", "c"]


def test_writing_does_not_list_the_folder_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        (tmp_path / f"old-{number}").write_bytes(b"1")
    listings: list[object] = []
    scandir = os.scandir

    def counted(folder: Any) -> Any:
        listings.append(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", counted)
    files = FileMap(tmp_path, max_files=1000, durable=False)
    for number in range(999):
        files[f"new-{number}"] = b"1"
    assert len(listings) == 1
    files["last"] = b"1"
    assert len(listings) == 2
    (tmp_path / "of-another").write_bytes(b"1")
    os.utime(tmp_path, (1, 1))  # as if it had been written at another moment than ours
    for number in range(1000, 1125):
        files[f"new-{number}"] = b"1"
    assert len(listings) == 3


def test_names_of_many_long_ids_stay_short_and_apart(tmp_path: Path) -> None:
    names = {safe_name(*["a" * 100] * 2), safe_name(*["a" * 100] * 3), safe_name(*["A" * 100] * 6)}
    assert len(names) == 3
    files = FileMap(tmp_path)
    for name in names:
        assert len(name) <= 200
        files[name] = b"x"
    assert set(files) == names


def test_folders_and_foreign_names_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder.bin").mkdir()
    (tmp_path / "my notes.bin").write_bytes(b"mine")
    files = FileMap(tmp_path, suffix=".bin", max_files=1)
    files["a"] = b"1"
    files["b"] = b"2"
    assert dict(files) == {"b": b"2"}
    assert (tmp_path / "my notes.bin").read_bytes() == b"mine"
    assert (tmp_path / "folder.bin").is_dir()


def test_files_of_one_moment_keep_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    files = FileMap(tmp_path, max_files=70, durable=False)
    names = [f"{(number * 37) % 200:03}" for number in range(200)]
    for name in names:
        files[name] = b"1"
        os.utime(tmp_path / name, ns=(10**18, 10**18))
    assert set(files) == set(names[-70:])


def test_what_a_killed_writer_left_half_done_is_swept_up_in_time(tmp_path: Path) -> None:
    old = tmp_path / f".name.npy.{'0' * 16}.tmp"
    new = tmp_path / f".name.npy.{'1' * 16}.tmp"
    foreign = tmp_path / ".name.tmp"
    for path in (old, new, foreign):
        path.write_bytes(b"half")
    for path in (old, foreign):
        os.utime(path, (1, 1))
    assert list(FileMap(tmp_path)) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([new.name, foreign.name])


@pytest.mark.parametrize("durable", [True, False])
def test_only_what_must_last_is_waited_for(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    FileMap(tmp_path, durable=durable)["a"] = b"1"
    assert bool(waits) is durable
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    files = FileMap(tmp_path / "deep" / "down")
    files["a"] = b"1"
    shutil.rmtree(tmp_path / "deep")
    files["b"] = b"2"
    assert dict(files) == {"b": b"2"}


# -- without waiting -------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 100_000])
def test_what_is_at_hand_is_all_of_it_or_nothing(data: bytes, tmp_path: Path) -> None:
    files = FileMap(tmp_path, suffix=".bin")
    files["a"] = data
    assert files.at_hand("a") in (data, None)  # None on systems that cannot tell
    with pytest.raises(InvalidInput):
        files.at_hand("../a")


def test_what_is_not_there_or_no_file_is_never_waited_for(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")  # opened as a file is, it would block for ever
    assert read_at_hand(str(tmp_path / "folder")) is None
    assert read_at_hand(str(tmp_path / "pipe")) is None
    if read_at_hand(__file__) is not None:
        with pytest.raises(KeyError):
            FileMap(tmp_path).at_hand("missing")


@pytest.mark.parametrize("trouble", [BlockingIOError, OSError])
def test_what_the_disk_would_have_to_be_asked_for_is_not_at_hand(
    trouble: type[OSError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise trouble

    files = FileMap(tmp_path)
    files["a"] = b"x"
    monkeypatch.setattr("os.preadv", refuse, raising=False)
    assert files.at_hand("a") is None
    monkeypatch.setattr("os.preadv", lambda *_: 0, raising=False)  # a part of it is at hand
    assert files.at_hand("a") is None
    assert files["a"] == b"x"


def test_a_large_file_is_left_to_those_who_may_wait(tmp_path: Path) -> None:
    files = FileMap(tmp_path)
    files["a"] = bytes((1 << 20) + 1)
    assert files.at_hand("a") is None
