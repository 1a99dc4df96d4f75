"""Archives: equal content is stored once, per holder, and never reaches another session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from archive_worker import parcel
from memoryspace.context import Archive, FileArchive, Kind, Parcel, RAMArchive
from memoryspace.context.archive import digest_of
from memoryspace.errors import CorruptData, InvalidInput, UnknownHandle
from memoryspace.testing import ManualClock

Make: TypeAlias = Callable[[Path], Archive]
WORKER = Path(__file__).parents[1] / "support" / "archive_worker.py"


def in_files(folder: Path) -> FileArchive:
    return FileArchive(folder, "ann", "s1")


def in_ram(folder: Path) -> RAMArchive:
    return RAMArchive()


every_archive = pytest.mark.parametrize("make", [in_ram, in_files])


def text(data: str, holder: str = "m1") -> Parcel:
    return Parcel(data, "text", holder)


# -- what every archive promises -------------------------------------------------------------------


@every_archive
def test_what_was_put_comes_back_byte_for_byte(make: Make, tmp_path: Path) -> None:
    archive = make(tmp_path)
    parcels = [
        text("a\r\nb\n\n\x00\u2028 \ud800 你好"),
        Parcel('[{"type":"text","text":"hi"}]', "blocks", "m2"),
        text(""),
    ]
    kept = archive.put(parcels)
    assert [archive.get(each.handle) for each in kept] == parcels
    assert [each.kind for each in archive.list()] == ["text", "blocks", "text"]
    assert kept[0].lines == 4
    assert kept[0].characters == len(parcels[0].data)
    archive.check()


@every_archive
def test_the_same_content_is_kept_once_until_its_last_holder_goes(
    make: Make, tmp_path: Path
) -> None:
    archive = make(tmp_path)
    first, second = archive.put([text("same", "m1"), text("same", "m2")])
    assert first == second
    assert len(archive.list()) == 1
    assert archive.release(["m1", "nobody"]) == []
    assert archive.get(first.handle).holder == "m2"
    assert archive.release(["m2"]) == [first.handle]
    assert archive.list() == []
    with pytest.raises(UnknownHandle, match="released"):
        archive.get(first.handle)
    assert archive.release(["m2"]) == []
    archive.check()


@every_archive
def test_what_was_released_can_be_put_again(make: Make, tmp_path: Path) -> None:
    archive = make(tmp_path)
    (kept,) = archive.put([text("again")])
    archive.release(["m1"])
    assert archive.put([text("again", "m9")]) == [kept]
    assert archive.get(kept.handle) == text("again", "m9")


@every_archive
def test_text_and_json_of_the_same_letters_are_two_things(make: Make, tmp_path: Path) -> None:
    archive = make(tmp_path)
    one, two = archive.put([text("[]"), Parcel("[]", "blocks", "m1")])
    assert one.handle != two.handle
    assert archive.get(two.handle).kind == "blocks"


@every_archive
def test_clear_forgets_everything(make: Make, tmp_path: Path) -> None:
    archive = make(tmp_path)
    (kept,) = archive.put([text("gone soon")])
    archive.clear()
    assert archive.list() == []
    assert not archive.holds(kept.handle)
    archive.put([text("new")])
    assert len(archive.list()) == 1
    archive.check()


@every_archive
@pytest.mark.parametrize("handle", ["", "x", "../../etc/passwd", "0" * 15, "0" * 65, "A" * 16, 7])
def test_what_is_no_handle_is_unknown(make: Make, tmp_path: Path, handle: str) -> None:
    with pytest.raises(UnknownHandle, match="hexadecimal"):
        make(tmp_path).get(handle)


@every_archive
@settings(max_examples=50)
@given(handle=st.text(max_size=70) | st.from_regex(r"[0-9a-f./\\%\0]{16,64}", fullmatch=True))
def test_no_handle_reaches_beyond_the_archive(
    make: Make, tmp_path_factory: pytest.TempPathFactory, handle: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "reach"
    folder.mkdir(exist_ok=True)
    (folder / "secret.txt").write_text("secret")
    with pytest.raises(UnknownHandle) as caught:
        make(folder).get(handle)
    assert "secret" not in str(caught.value)


class ClashingRAM(RAMArchive):
    """One whose digests all begin alike."""

    def digest(self, kind: Kind, data: str) -> str:
        return "0" * 20 + digest_of(kind, data)[:44]


class ClashingFiles(FileArchive):
    """One whose digests all begin alike."""

    def digest(self, kind: Kind, data: str) -> str:
        return "0" * 20 + digest_of(kind, data)[:44]


@pytest.mark.parametrize(
    "make", [lambda folder: ClashingRAM(), lambda folder: ClashingFiles(folder, "ann", "s1")]
)
def test_contents_whose_digests_begin_alike_get_handles_of_their_own(
    make: Make, tmp_path: Path
) -> None:
    archive = make(tmp_path)
    kept = archive.put([text(f"content {number}", f"m{number}") for number in range(40)])
    assert len({each.handle for each in kept}) == 40
    assert [archive.get(each.handle).data for each in kept] == [f"content {n}" for n in range(40)]
    assert archive.put([text("content 7", "m7")]) == [kept[7]]
    archive.check()


class AnyUse(RuleBasedStateMachine):
    """An archive against a plain dict, checked after every step."""

    archive: Archive = RAMArchive()

    def __init__(self) -> None:
        super().__init__()
        self.archive.clear()
        self.held: dict[str, set[str]] = {}

    @rule(data=st.text(max_size=3), holder=st.sampled_from("abc"))
    def put(self, data: str, holder: str) -> None:
        (kept,) = self.archive.put([text(data, holder)])
        assert self.archive.get(kept.handle).data == data
        self.held.setdefault(data, set()).add(holder)

    @rule(holders=st.lists(st.sampled_from("abcd"), max_size=2))
    def release(self, holders: list[str]) -> None:
        gone = self.archive.release(holders)
        before = len(self.held)
        self.held = {data: left - set(holders) for data, left in self.held.items()}
        self.held = {data: left for data, left in self.held.items() if left}
        assert len(gone) == before - len(self.held)

    @invariant()
    def what_is_held_is_there(self) -> None:
        found = [self.archive.get(kept.handle) for kept in self.archive.list()]
        assert {each.data for each in found} == set(self.held)
        assert all(each.holder in self.held[each.data] for each in found)
        self.archive.check()


def test_any_use_of_ram() -> None:
    AnyUse.TestCase.settings = settings(max_examples=30, stateful_step_count=20)
    AnyUse.TestCase("runTest").debug()


def test_any_use_of_files(tmp_path: Path) -> None:
    class OfFiles(AnyUse):
        archive = in_files(tmp_path)

    OfFiles.TestCase.settings = settings(max_examples=15, stateful_step_count=15)
    OfFiles.TestCase("runTest").debug()


# -- files -----------------------------------------------------------------------------------------


ids = st.text(min_size=1, max_size=30) | st.sampled_from(
    [
        "../..",
        "/etc",
        "a/../b",
        ".",
        "..",
        "a\0b",
        "C:\\x",
        "~root",
        "a@b",
        "CON",
        "é" * 90,
        "\ud800",
    ]
)


@settings(max_examples=60)
@given(user=ids, session=ids)
def test_no_session_id_leaves_the_folder(
    tmp_path_factory: pytest.TempPathFactory, user: str, session: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "ids"
    archive = FileArchive(folder, user, session)
    (kept,) = archive.put([text("mine")])
    assert archive.folder.parent == folder
    assert all(path.parent == archive.folder for path in archive.folder.iterdir())
    assert archive.get(kept.handle).data == "mine"
    archive.clear()


@pytest.mark.parametrize(
    ("one", "other"),
    [(("a-b", "c"), ("a", "b-c")), (("a@b", "c"), ("a", "b@c")), (("A", "s"), ("a", "s")),
     (("a", "s/1"), ("a", "s-1")), (("a", "s1"), ("a", "s2"))],
)  # fmt: skip
def test_sessions_do_not_reach_each_other(
    one: tuple[str, str], other: tuple[str, str], tmp_path: Path
) -> None:
    first, second = FileArchive(tmp_path, *one), FileArchive(tmp_path, *other)
    (kept,) = first.put([text("private")])
    with pytest.raises(UnknownHandle):
        second.get(kept.handle)
    assert second.list() == []
    second.put([text("private")])
    second.clear()
    assert first.get(kept.handle).data == "private"


@pytest.mark.parametrize(("user", "session"), [("", "s"), ("u", ""), (None, "s")])
def test_a_session_without_a_name_is_refused(user: str, session: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="non-empty"):
        FileArchive(tmp_path, user, session)


def test_nothing_is_written_before_there_is_something_to_keep(tmp_path: Path) -> None:
    archive = in_files(tmp_path / "new")
    assert archive.list() == []
    assert archive.release(["m1"]) == []
    archive.clear()
    archive.check()
    assert not (tmp_path / "new").exists()


def test_another_process_finds_what_was_kept_and_who_holds_it(tmp_path: Path) -> None:
    (kept,) = in_files(tmp_path).put([text("kept")])
    later = in_files(tmp_path)
    assert later.list() == [kept]
    assert later.get(kept.handle) == text("kept")
    assert later.release(["m1"]) == [kept.handle]
    assert [path.name for path in later.folder.glob("*.txt")] == []


def test_two_objects_on_one_folder_see_each_others_changes(tmp_path: Path) -> None:
    one, two = in_files(tmp_path), in_files(tmp_path)
    (kept,) = one.put([text("shared", "a")])
    two.put([text("shared", "b")])
    assert one.release(["a"]) == []
    assert two.release(["b"]) == [kept.handle]
    with pytest.raises(UnknownHandle):
        one.get(kept.handle)
    one.clear()
    two.put([text("new")])
    assert len(one.list()) == 1


def test_a_content_is_a_file_that_can_be_read_with_any_editor(tmp_path: Path) -> None:
    archive = in_files(tmp_path)
    (kept,) = archive.put([text("plain\ntext")])
    assert (archive.folder / f"{kept.handle}.txt").read_text() == "plain\ntext"


def test_the_journal_does_not_grow_without_bound(tmp_path: Path) -> None:
    archive = in_files(tmp_path)
    for number in range(140):
        archive.put([text(f"{number % 3}", f"m{number}")])
        archive.release([f"m{number}"])
    lines = (archive.folder / "holders.jsonl").read_text().count("\n")
    assert lines < 260
    archive.check()


def test_a_torn_line_is_as_if_it_had_never_been_written(tmp_path: Path) -> None:
    archive = in_files(tmp_path)
    (kept,) = archive.put([text("whole")])
    journal = archive.folder / "holders.jsonl"
    for cut in ('["hold","ab', '["free",["m1"', "\x00"):
        with journal.open("a") as file:
            file.write(cut)
        later = in_files(tmp_path)
        later.check()
        (other,) = later.put([text(f"after {cut}", "m2")])
        assert set(later.list()) >= {kept, other}
        later.check()


def test_a_damaged_journal_loses_no_content_and_is_told(tmp_path: Path) -> None:
    archive = in_files(tmp_path)
    (kept,) = archive.put([text("precious")])
    archive.put([text("other")])
    journal = archive.folder / "holders.jsonl"
    head, hold, rest = journal.read_bytes().split(b"\n", 2)
    journal.write_bytes(head + b"\n" + b"?" * len(hold) + b"\n" + rest)
    later = in_files(tmp_path)
    with pytest.raises(CorruptData, match="cannot be read"):
        later.check()
    later.put([text("more")])
    assert (archive.folder / f"{kept.handle}.txt").exists()


def test_without_a_journal_everything_stays_within_reach(tmp_path: Path) -> None:
    archive = in_files(tmp_path)
    (kept,) = archive.put([text("precious")])
    (archive.folder / "holders.jsonl").unlink()
    later = in_files(tmp_path)
    later.put([text("other")])
    assert later.get(kept.handle).data == "precious"
    later.check()


def test_a_changed_file_is_told_and_put_right_when_the_content_leaves_again(
    tmp_path: Path,
) -> None:
    archive = in_files(tmp_path)
    (kept,) = archive.put([text("right")])
    (archive.folder / f"{kept.handle}.txt").write_text("wrong")
    with pytest.raises(CorruptData, match="has changed"):
        archive.get(kept.handle)
    with pytest.raises(CorruptData, match="changed"):
        archive.check()
    assert archive.put([text("right")]) == [kept]
    assert archive.get(kept.handle).data == "right"
    archive.check()


def test_what_a_crash_left_behind_is_cleared_away(tmp_path: Path) -> None:
    archive = in_files(tmp_path)
    archive.put([text("held")])
    orphan = archive.folder / ("0" * 16 + ".txt")
    half = archive.folder / ".half.1234.tmp"
    mine = archive.folder / "notes.md"
    for path in (orphan, half, mine):
        path.write_text("left")
    in_files(tmp_path).put([text("next")])
    assert not orphan.exists()
    assert not half.exists()
    assert mine.exists()


def test_old_content_goes_only_where_that_was_asked_for(tmp_path: Path) -> None:
    clock = ManualClock(1000.0)
    archive = FileArchive(tmp_path, "ann", "s1", ttl=60, clock=clock)
    old, again = archive.put([text("old"), text("again")])
    os.utime(archive.folder / f"{old.handle}.txt", (1000, 1000))
    os.utime(archive.folder / f"{again.handle}.txt", (1000, 1000))
    clock.now = 1050.0
    archive.put([text("again")])
    clock.now = 1070.0
    with pytest.raises(UnknownHandle):
        archive.get(old.handle)
    archive.put([text("new")])
    assert {archive.get(each.handle).data for each in archive.list()} == {"again", "new"}
    archive.check()


def test_over_its_bytes_the_oldest_goes_first(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path, "ann", "s1", max_bytes=25)
    for number in range(5):
        (kept,) = archive.put([text(f"{number}" * 10)])
        os.utime(archive.folder / f"{kept.handle}.txt", (number, number))
    assert [archive.get(each.handle).data[0] for each in archive.list()] == ["3", "4"]
    archive.check()


def test_many_threads_at_once(tmp_path: Path) -> None:
    archive = in_files(tmp_path)

    def use(number: int) -> str:
        (kept,) = archive.put([text(f"content {number % 5}", f"m{number}")])
        if number % 2:
            archive.release([f"m{number}"])
        return kept.handle

    with ThreadPoolExecutor(8) as pool:
        handles = set(pool.map(use, range(60)))
    assert len(handles) == 5
    assert len(archive.list()) == 5
    archive.check()


# -- several processes, and the end of one ---------------------------------------------------------


def start(folder: Path, name: str, seed: int, steps: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(WORKER), str(folder), name, str(seed), str(steps)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_what_was_said(archive: FileArchive, name: str, lines: list[str]) -> None:
    """All that a worker has put and not begun to release is there, byte for byte."""
    held: dict[str, tuple[str, str]] = {}
    for line in lines:
        word, *rest = line.split()
        if word == "put":
            number = int(rest[0])
            held[f"{name}-{number}"] = rest[1], parcel(name, number).data
        elif word == "release":
            held.pop(rest[0])
    for handle, data in held.values():
        assert archive.get(handle).data == data


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    workers = {name: start(tmp_path, name, 1, 60) for name in ("ann", "bob", "eve")}
    archive = in_files(tmp_path)
    for name, worker in workers.items():
        out, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
        assert out.endswith("done\n")
        check_what_was_said(archive, name, out.splitlines())
    archive.check()


@pytest.mark.parametrize("after", [1, 7, 20])
def test_a_killed_writer_loses_nothing_that_it_said_was_kept(after: int, tmp_path: Path) -> None:
    said: dict[int, list[str]] = {}
    for seed in (1, 2):
        worker = start(tmp_path, "ann", seed, 10_000)
        assert worker.stdout is not None
        said[seed] = [worker.stdout.readline() for _ in range(after)]
        worker.send_signal(signal.SIGKILL)
        said[seed] += [line for line in worker.stdout if line.endswith("\n")]
        worker.communicate(timeout=60)
        assert worker.returncode == -signal.SIGKILL
        for lines in said.values():
            check_what_was_said(in_files(tmp_path), "ann", lines)
        in_files(tmp_path).put([text("the next one")])
        in_files(tmp_path).check()
