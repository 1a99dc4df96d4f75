"""Damaged and hostile files are refused: with the line, before anything is written, in bounds."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import sqlite3
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from memoryspace import MemoryStore
from memoryspace.errors import ImportRefused, InvalidInput
from memoryspace.message import Msg
from memoryspace.moving import export_memories, import_foreign, import_memories, importing
from memoryspace.moving.foreign import documents
from memoryspace.moving.foreign.pickles import Thing, plain_data
from memoryspace.record import Record, Scope
from memoryspace.service import InMemoryMemoryService

import moves
from length import at_length

FLIPS = at_length(60, 600)
DEEP = 100_000


async def exported(records: int = 30) -> bytes:
    source, file = MemoryStore(), BytesIO()
    for user in ("ann", "bob"):
        notes = [Record(f"n{n}", f"note {n}", kind="note") for n in range(records)]
        await source.append(Scope(user, "s"), notes)
    await export_memories(source, file)
    return file.getvalue()


async def refused(data: bytes, **options: Any) -> str:
    """Import what must be refused; return why. Nothing may have been written."""
    store = MemoryStore()
    with pytest.raises(ImportRefused) as refusal:
        await import_memories(store, BytesIO(data), **options)
    assert (await store.users()).users == ()
    assert refusal.value.line is not None
    assert f"line {refusal.value.line}" in str(refusal.value)
    return str(refusal.value)


def signed(*lines: Any, user: str = "ann") -> bytes:
    """Return an export with these lines in a user's section and right checksums."""
    header = {"format": 1, "made_by": "a test", "made_at": 1.0}
    data = b"".join(
        json.dumps(each).encode() + b"\n" if not isinstance(each, bytes) else each
        for each in ({"memoryspace": header}, {"user": user}, *lines)
    )
    done = {"user": user, "records": len(lines), "sha256": sha256(data).hexdigest()}
    data += json.dumps({"done": done}).encode() + b"\n"
    end = {"users": 1, "records": len(lines), "sha256": sha256(data).hexdigest()}
    return data + json.dumps({"end": end}).encode() + b"\n"


def line(**fields: Any) -> dict[str, Any]:
    return {
        "record": {
            "id": "r",
            "session": "s",
            "kind": "note",
            "created_at": 1.0,
            "importance": 0.5,
            "value": "x",
            **fields,
        }
    }


async def test_a_well_signed_file_is_imported() -> None:
    store = MemoryStore()
    report = await import_memories(store, BytesIO(signed(line())))
    assert (report.users, report.added) == (1, 1)


async def test_a_file_cut_off_anywhere_is_refused() -> None:
    data = await exported()
    for end in random.Random(1).sample(range(1, len(data)), FLIPS):
        assert "line" in await refused(data[:end])


async def test_a_changed_byte_anywhere_is_noticed() -> None:
    data = await exported()
    rng = random.Random(2)
    for at in rng.sample(range(len(data)), FLIPS):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        await refused(bytes(changed))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:5] + lines[6:],
        lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]],
        lambda lines: [*lines[:4], lines[4], *lines[4:]],
        lambda lines: [*lines, *lines],
        lambda lines: [*lines, b"{}\n"],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [*lines[:5], b"\n", *lines[5:]],
    ],
)
async def test_lost_moved_and_added_lines_are_noticed(
    change: Callable[[list[bytes]], list[bytes]],
) -> None:
    lines = (await exported()).splitlines(keepends=True)
    await refused(b"".join(change(lines)))


async def test_a_damaged_file_is_imported_up_to_the_damage_only_when_asked() -> None:
    lines = (await exported(2500)).splitlines(keepends=True)
    del lines[2400]  # of ann's; the check after her 2000th record was right
    store = MemoryStore()
    report = await import_memories(store, BytesIO(b"".join(lines)), until_damage=True)
    assert (report.records, report.added, report.users) == (2000, 2000, 1)
    assert report.damage is not None
    assert "the checksum differs" in report.damage
    assert await store.count(Scope("ann")) == 2000
    assert await store.count(Scope("bob")) == 0


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (line(id="x" * 300), "record id has 300 characters"),
        (line(id=""), "record id is empty"),
        (line(id="memoryspace:summary"), "reserved"),
        (line(id="memoryspace:job:1", kind="memory"), "reserved"),
        (line(id="memoryspace:other", kind="fact"), "reserved"),
        (line(session="memoryspace:x", kind="memory", value={}), "reserved"),
        (line(session="a\nb"), "session id"),
        (line(id=5), "Expected `str`, got `int` - at `$.record.id`"),
        (line(value=5), "a value cannot be int"),
        (line(kind="message"), "a message must be an object"),
        (line(kind="message", value={"role": "user"}), "needs 'name'"),
        (line(value=Msg("a", "b", "user").to_dict(), kind="message", created_at="now"), "float"),
        (line(marks=["a\x1fb"]), "mark"),
        (line(created_at=None), "created_at"),
        (line(importance=True), "importance"),
        (line(origin={"derived_from": 5}), "derived_from"),
        (line(vectors={"space": "AAAA" * 30_000}), "the vector of record"),
        (line(value={"$number": "__import__('os')"}), "not written by to_dict"),
        (line(unknown=1), "unknown field `unknown`"),
        ({"record": None}, "none of the parts"),
        ({"user": "bob"}, "has no end"),
        (["list"], "Expected `object`"),
        (b'{"record":{"id":"\xff"}}\n', "UTF-8"),
        (b"[" * DEEP + b"\n", "line 3"),
        (b'{"record":' * DEEP + b"\n", "line 3"),
    ],
)
async def test_what_may_not_be_imported_is_refused_with_its_line(bad: Any, why: str) -> None:
    assert why in await refused(signed(bad))


@pytest.mark.parametrize("deep", [150, 250, 900, 5000])
async def test_records_nested_too_deep_are_refused(deep: int) -> None:
    value = b"[" * deep + b"]" * deep
    bad = json.dumps(line(value="VALUE")).encode().replace(b'"VALUE"', value) + b"\n"
    if deep <= 200:
        await import_memories(MemoryStore(), BytesIO(signed(bad)))
    else:
        assert "nested deeper than 200" in await refused(signed(bad))


async def test_reserved_and_unexpected_users_are_refused() -> None:
    assert "reserved" in await refused(signed(line(), user="memoryspace:outbox"))
    assert "user 'ann' may not be imported here" in await refused(signed(line()), allowed={"bob"})
    assert (await import_memories(MemoryStore(), BytesIO(signed(line())), allowed={"ann"})).added


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not an export of memoryspace"),
        (b"hello\n", "not an export of memoryspace"),
        ('{"memoryspace":1}\n'.encode("utf-16"), "not an export of memoryspace"),
        (b'{"user":"ann"}\n', "name their importer"),
        (b'{"memoryspace":{"format":9,"made_by":"memoryspace 7","made_at":1}}\n', "upgrade"),
        (b"\x28\xb5\x2f\xfd1234", "zstd"),
        (b"\x1f\x8bnonsense", "damaged or cut off"),
        (gzip.compress(signed(line()))[:-9], "damaged or cut off"),
    ],
)
async def test_what_is_no_export_is_refused(data: bytes, why: str) -> None:
    assert why in await refused(data)


async def test_a_huge_line_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_LINE", 1 << 20)
    filling = b"x" * (40 << 20)
    bombs = (filling, signed(b'{"record":{"id":"' + filling + b'"}}\n'), signed() + filling)
    packed = [gzip.compress(each, 1) for each in bombs]
    del filling, bombs
    tracemalloc.start()
    try:
        for data in packed:
            assert "longer than 1048576 bytes" in await refused(data)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


async def test_new_names_cannot_be_reserved() -> None:
    with pytest.raises(InvalidInput, match="reserved"):
        await import_memories(MemoryStore(), BytesIO(signed(line())), users={"ann": "memoryspace:"})


# -- other programs' files -------------------------------------------------------------------------


async def refused_foreign(name: str, source: object) -> str:
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        with pytest.raises(ImportRefused) as refusal:
            await import_foreign(service, name, str(source), user="ann")
    return str(refusal.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello", "this is not JSON"),
        (b'[{"a": 1}', "cut off"),
        (b'[{"a": 1} {"b": 2}]', "neither ',' nor ']'"),
        (b"[1]", "item 1 is no conversation"),
        (b"[" * DEEP, "nested too deep"),
        (b'[{"title": "\xe9"}]', "not UTF-8"),
        ('[{"title": "é"}]'.encode("utf-16"), "not UTF-8"),
        (b"", "cut off"),
    ],
)
@pytest.mark.parametrize("name", ["chatgpt", "claude"])
async def test_conversations_that_are_none_are_refused(
    name: str, content: bytes, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "conversations.json"
    file.write_bytes(content)
    assert why in await refused_foreign(name, file)


async def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGE", 1 << 20)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * (10 << 20))
    assert "would become" in await refused_foreign("chatgpt", bomb)


async def test_broken_archives_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/conversations.json", json.dumps([{"title": "x" * 1000}]))
    whole = file.read_bytes()
    file.write_bytes(whole[:600])
    assert "the archive is damaged" in await refused_foreign("chatgpt", file)
    file.write_bytes(whole.replace(b"xxxx", b"xxxy", 1))
    assert "the archive is damaged" in await refused_foreign("chatgpt", file)
    file.write_bytes(whole.replace(b"conversations", b"conversationZ"))
    assert "is in the archive" in await refused_foreign("chatgpt", file)


async def test_an_endless_item_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_ITEM", 1 << 20)
    file = tmp_path / "conversations.json"
    file.write_text('[{"title": "' + "x" * (3 << 20))
    assert "longer than 1048576 characters" in await refused_foreign("claude", file)
    file = tmp_path / "get_all.json"
    file.write_text('{"results": "' + "x" * (3 << 20))
    assert "larger than 1048576 bytes" in await refused_foreign("mem0", file)


@pytest.mark.parametrize(
    ("name", "file", "content", "why"),
    [
        ("mem0", "all.json", b"[5]", "memory 0 is a int"),
        ("mem0", "all.json", b'{"x": 1}', "not what mem0's get_all() returns"),
        ("mem0", "all.json", b"[" * DEEP, "nested too deep"),
        ("mem0", "all.json", b"\xff\xfe", "not UTF-8"),
        ("agentscope", "a.json", b"[]", "no saved state"),
        ("agentscope", "a.json", b'{"m": {"content": [{"id": "x"}]}}', "needs 'name'"),
        ("langchain", "a.json", b"{}", "no list of messages"),
        ("langchain", "a.json", b"[{}]", "no message of LangChain"),
        ("reme", "w.jsonl", b'{"content": "x"}\nnonsense\n', "w.jsonl, line 2: this is not JSON"),
        ("reme", "w.jsonl", b"[]\n", "no vector node"),
        ("openai-agents", "a.db", b"no database", "not a SQLite database"),
        ("openai-agents", "a.db", b"SQLite format 3\0" + b"x" * 1000, "cannot be read"),
        ("text", "a.txt", b"caf\xe9", "byte 3 is not UTF-8"),
        ("text", "a.txt", b"a\0b", "this is no text"),
        ("agentscope-runtime", "a", b"", "not the address of a Redis server"),
    ],
)
async def test_files_of_the_wrong_form_are_refused(
    name: str, file: str, content: bytes, why: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_bytes(content)
    assert why in await refused_foreign(name, tmp_path / file)


async def test_a_view_in_a_foreign_database_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "sessions.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE VIEW agent_messages AS SELECT randomblob(1000000000) AS id")
        database.commit()
    assert "has no table 'agent_messages'" in await refused_foreign("openai-agents", file)


async def test_a_foreign_database_is_not_changed(tmp_path: Path) -> None:
    source = Path(__file__).parent / "foreign" / "data" / "openai_agents.db"
    file = tmp_path / "sessions.db"
    file.write_bytes(source.read_bytes())
    file.chmod(0o400)
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        await import_foreign(service, "openai-agents", file, user="ann")
    assert file.read_bytes() == source.read_bytes()
    assert [each.name for each in file.parent.iterdir()] == ["sessions.db"]


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_pickle_runs(protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    found = plain_data(pickle.dumps({"data": Evil(marker)}, protocol), "a point")
    assert isinstance(found["data"], Thing)
    assert not marker.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_is_read_from_any_pickle(protocol: int) -> None:
    shared = ["a", 1, -1.5, True, None]
    data = {"list": shared, "again": shared, "n": {"x": 2**70, "y": "ü" * 300}, "t": (1, (), "é")}
    assert plain_data(pickle.dumps(data, protocol), "a point") == data


def test_broken_pickles_are_refused() -> None:
    whole = pickle.dumps({"data": ["a", {"b": 1.5}], "more": "x" * 300})
    rng = random.Random(3)
    for _ in range(at_length(500, 20_000)):
        broken = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        with suppress(ImportRefused):  # anything else would be a defect
            found = plain_data(bytes(broken[: rng.randrange(1, len(broken) + 1)]), "a point")
            assert not callable(found)
