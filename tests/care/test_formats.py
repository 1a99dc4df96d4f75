"""What any release wrote is opened, searched and verified by this one; what a later one wrote is not."""  # noqa: E501

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

import format_fixtures as fixtures
from memoryspace.care import Lsn, examine, restore_backup
from memoryspace.context.archive import FileArchive
from memoryspace.errors import CorruptData, StoreError
from memoryspace.kernel import MemoryManager
from memoryspace.record import Record
from memoryspace.retrieval.persistence import load_arrays
from memoryspace.service.values.envelope import memory_of
from memoryspace.session import JSONSession
from memoryspace.store.space.objects import payload_of

RELEASES = sorted(each for each in fixtures.FORMATS.iterdir() if each.is_dir())
pytestmark = pytest.mark.skipif(sys.byteorder != "little", reason="images are little-endian")


@pytest.fixture(params=RELEASES, ids=lambda each: each.name)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a release wrote: opening it may change it."""
    pytest.importorskip("lmdb")
    return Path(shutil.copytree(request.param, tmp_path / "release"))


def expected(release: Path, name: str) -> Any:
    return json.loads((release / "expected.json").read_text("utf-8"))[name]


def test_there_is_a_fixture_of_this_release() -> None:
    from memoryspace import __version__

    assert ".".join(__version__.split(".")[:2]) in {each.name for each in RELEASES}


@pytest.mark.parametrize("name", fixtures.STORES)
def test_a_store_of_an_earlier_release_is_healthy_and_holds_what_it_held(
    release: Path, name: str
) -> None:
    address = fixtures.address_of(release, name)
    found = asyncio.run(examine(address, embedder=fixtures.Lengths()))
    assert found.is_healthy, str(found)
    assert "unreadable" not in str(found)
    assert plain(asyncio.run(fixtures.contents(address))) == expected(release, name)


def test_a_space_with_an_index_of_an_earlier_release_is_searched(release: Path) -> None:
    assert plain(fixtures.kernel_contents(release / "kernel")) == expected(release, "kernel")


def test_a_backup_of_an_earlier_release_is_restored(release: Path, tmp_path: Path) -> None:
    restored = restore_backup(release / "backup", tmp_path / "r")
    assert restored.users_erased == 1
    found = plain(asyncio.run(fixtures.contents(str(tmp_path / "r"))))
    assert found == expected(release, "lmdb")
    assert restore_backup(release / "backup", tmp_path / "early", at=Lsn(4)).lsn == 4


def test_sessions_archives_and_ledgers_of_an_earlier_release_are_read(release: Path) -> None:
    session = asyncio.run(fixtures.session_contents(release / "sessions"))
    assert plain(session) == expected(release, "session")
    assert fixtures.archive_contents(release / "archive") == expected(release, "archive")
    ledger = fixtures.ledger_contents(release / "lmdb" / "erasures.log")
    assert plain(ledger) == expected(release, "ledger")


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


# -- later formats ---------------------------------------------------------------------------------


def number_at(place: int) -> Callable[[bytes], bytes]:
    """Return a change of a format's number, four bytes in front of a file."""
    return lambda data: data[:place] + (99).to_bytes(4, "little") + data[place + 4 :]


def journal_of_later(data: bytes) -> bytes:
    import zlib

    head = number_at(8)(data)[:36]
    return head + zlib.crc32(head).to_bytes(4, "little") + data[40:]


def change(path: Path, how: Callable[[bytes], bytes]) -> None:
    path.write_bytes(how(path.read_bytes()))


def says_upgrade(work: Callable[[], object]) -> None:
    with pytest.raises((CorruptData, StoreError)) as caught:
        work()
    message = str(caught.value)
    assert any(word in message for word in ("upgrade", "update memoryspace", "newer memoryspace"))


def open_space(folder: Path) -> None:
    asyncio.run(fixtures.contents(str(folder)))


def test_a_later_journal_or_checkpoint_or_cold_tier_says_to_upgrade(tmp_path: Path) -> None:
    newest = RELEASES[-1]
    for pattern, how in (
        ("lmdb/journal/*.log", journal_of_later),
        ("lmdb/checkpoints/*.image", number_at(8)),
        ("lmdb/cold/cold.lmdb", lambda data: data.replace(b"space cold 1", b"space cold 9")),
    ):
        copy = Path(shutil.copytree(newest, tmp_path / pattern.replace("/", "-").replace("*", "")))
        change(sorted(copy.glob(pattern))[-1], how)
        says_upgrade(lambda copy=copy: open_space(copy / "lmdb"))  # type: ignore[misc]


def test_a_later_sqlite_cold_tier_says_to_upgrade(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(RELEASES[-1], tmp_path / "copy"))
    with closing(sqlite3.connect(copy / "sqlite/cold/cold.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    says_upgrade(lambda: open_space(copy / "sqlite"))


def test_a_later_saved_index_is_built_again(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(RELEASES[-1], tmp_path / "copy"))
    for path in copy.glob("kernel/index/*/*.json"):
        change(path, lambda data: data.replace(b'"version": 1', b'"version": 99'))
        with pytest.raises(CorruptData):
            load_arrays(path.parent, path.stem)
    found = plain(fixtures.kernel_contents(copy / "kernel"))
    assert found == expected(RELEASES[-1], "kernel")


async def test_a_later_session_or_archive_says_to_upgrade(tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text('{"memoryspace:format": 2}')
    with pytest.raises(CorruptData, match="upgrade memoryspace"):
        await JSONSession(tmp_path).load_session_state("talk")
    copy = Path(shutil.copytree(RELEASES[-1] / "archive", tmp_path / "archive"))
    (journal,) = [*copy.glob("*/holders.jsonl")]  # noqa: ASYNC240  # a test's own files
    change(journal, lambda data: data.replace(b'",1]', b'",2]', 1))
    with pytest.raises(CorruptData, match="upgrade memoryspace"):
        FileArchive(copy, user_id="ann", session_id="talk").list()


def test_a_later_record_or_memory_says_to_upgrade() -> None:
    payload = {"i": "a", "s": "s", "kind": "k", "value": "{}", "created_at": 0.0, "f": 2}
    with pytest.raises(CorruptData, match="upgrade memoryspace"):
        payload_of(msgspec.msgpack.encode([payload]))
    value = {"form": "text", "body": "tea", "updated_at": 0.0, "format": 2}
    with pytest.raises(CorruptData, match="upgrade memoryspace"):
        memory_of("ann", Record("a", value, kind="raw"))


def test_files_of_another_program_are_not_taken_for_ours(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(RELEASES[-1], tmp_path / "copy"))
    (image,) = copy.glob("kernel/checkpoints/*.image")
    change(image, lambda data: b"NOTOURS!" + data[8:])
    with MemoryManager(1 << 20, folder=copy / "kernel") as space:
        assert sorted(space.ids()) == ["fact", "goal"], "the journal still has everything"
    with pytest.raises(CorruptData, match="image"):
        space.checkpoint_manager.verify(3)  # type: ignore[union-attr]  # opened in a folder
