"""What other programs have written is imported: the real packages wrote the files beside this.

``make foreign`` lets them write the files again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from sqlalchemy import JSON, Column, Integer, MetaData, Table, Text
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import Msg
from memoryspace.errors import ImportRefused, InvalidInput
from memoryspace.moving import ImportReport, import_foreign, importers
from memoryspace.service import InMemoryMemoryService
from memoryspace.service.deriving.personal import PersonalDeriver
from memoryspace.service.schema import Message

import moves
import servers
from backends import no_server, server_url

DATA = Path(__file__).parent / "foreign" / "data"

Found = dict[tuple[str, str], list[Any]]


async def imported(
    name: str, source: object, user: str | None = None
) -> tuple[ImportReport, Found]:
    """Import twice, as after an interruption; return the first report and what is there."""
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        report = await import_foreign(service, name, str(source), user=user)
        found = await held_by(service)
        again = await import_foreign(service, name, str(source), user=user)
        assert (again.added, again.known) == (0, report.records - report.refused)
        assert await held_by(service) == found
    return report, found


async def held_by(service: InMemoryMemoryService) -> Found:
    found: Found = {}
    for user in (await service.users()).users:
        for memory in (await service.page(user, limit=1000)).memories:
            found.setdefault((user, memory.session_id), []).append(plain(memory.value))
    return found


def plain(value: Any) -> Any:
    """Return what was said, short enough to compare."""
    if isinstance(value, Msg):
        return value.role, value.get_text_content() or [each["type"] for each in value.content]
    if isinstance(value, Message):
        return value.role, value.get_all_text()
    calls = [each["function"]["name"] for each in value.get("tool_calls", ())]
    return value["role"], value["content"] or calls


@asynccontextmanager
async def filled_redis(file: str) -> AsyncIterator[str]:
    """Yield the address of a server with the keys that another program left."""
    try:
        server = servers.start("redis")
    except servers.NoServerError as error:
        no_server(error)
    client = Redis.from_url(server.url)
    for key, held in json.loads((DATA / file).read_text("utf-8")).items():
        match held:
            case str():
                await client.set(key, held)
            case {"list": found}:
                await client.rpush(key, *found)
            case {"set": found}:
                await client.sadd(key, *found)
            case {"hash": found}:
                await client.hset(key, mapping=found)
    await client.aclose()
    try:
        yield server.url
    finally:
        server.remove()


MESSAGES_OF_AGENTSCOPE = [
    ("user", "I live in Oslo."),
    ("assistant", ["tool_use"]),
    ("system", ["tool_result"]),
    ("assistant", "It is 7. ✓"),
]


@pytest.mark.parametrize("version", ["mem0v1", "mem0v2"])
async def test_mem0_is_read_from_its_vector_store(version: str, tmp_path: Path) -> None:
    shutil.copytree(DATA / version, tmp_path / "mem0")
    _, found = await imported("mem0", tmp_path / "mem0")
    assert {place: sorted(said) for place, said in found.items()} == {
        ("ann", "trip"): [("assistant", "Noted: Oslo. ✓"), ("user", "I live in Oslo.")],
        ("bob", "default"): [("user", "Likes green tea."), ("user", "Works at the airport.")],
    }


@pytest.mark.parametrize("version", ["mem0v1", "mem0v2"])
async def test_mem0_is_read_from_get_all(version: str) -> None:
    _, found = await imported("mem0", DATA / f"{version}.json")
    assert sorted(found["ann", "trip"]) == [
        ("assistant", "Noted: Oslo. ✓"),
        ("user", "I live in Oslo."),
    ]


@pytest.mark.parametrize("version", ["mem0v1", "mem0v2"])
async def test_mem0_is_read_from_its_history(version: str) -> None:
    _, found = await imported("mem0", DATA / version / "history.db", "ann")
    assert sorted(text for _, text in found["ann", "default"]) == [
        "I live in Oslo.",
        "Likes green tea.",
        "Noted: Oslo. ✓",
        "Works at the airport.",
    ]
    with pytest.raises(InvalidInput, match="does not say whose"):
        await imported("mem0", DATA / version / "history.db")


async def test_mem0_keeps_time_and_metadata() -> None:
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        await import_foreign(service, "mem0", DATA / "mem0v2.json")
        memory = (await service.page("ann")).memories[0]
    given = json.loads((DATA / "mem0v2.json").read_text("utf-8"))["results"][0]
    assert memory.id == given["id"]
    assert memory.metadata["topic"] == "home"
    assert memory.created_at > 1.7e9


async def test_agentscope_is_read_from_its_database() -> None:
    _, found = await imported("agentscope", DATA / "agentscope.db")
    assert found == {("ann", "s1"): MESSAGES_OF_AGENTSCOPE, ("bob", "s2"): MESSAGES_OF_AGENTSCOPE}


async def test_agentscope_is_read_from_saved_sessions() -> None:
    _, found = await imported("agentscope", DATA / "agentscope", "ann")
    assert found == {("ann", "ann_s3"): MESSAGES_OF_AGENTSCOPE}


async def test_agentscope_keeps_marks() -> None:
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        await import_foreign(service, "agentscope", DATA / "agentscope.db")
        marks = [each.marks for each in (await service.page("ann")).memories]
    assert marks == [{"pinned"}, set(), set(), set()]


async def test_agentscope_is_read_from_redis() -> None:
    async with filled_redis("agentscope-redis.json") as address:
        _, found = await imported("agentscope", address)
    assert found == {("ann", "s1"): MESSAGES_OF_AGENTSCOPE, ("bob", "s9"): MESSAGES_OF_AGENTSCOPE}


async def test_the_runtime_is_read_from_redis() -> None:
    async with filled_redis("agentscope-runtime-redis.json") as address:
        _, found = await imported("agentscope-runtime", address)
    assert found == {
        ("ann", "s1"): [("user", "I live in Oslo."), ("assistant", "Oslo!")],
        ("bob", "default"): [("user", "我喜欢喝茶。")],
    }


async def test_langgraph_is_read_from_its_database() -> None:
    _, found = await imported("langgraph", DATA / "langgraph.db")
    assert found == {
        ("ann", "memories.ann"): [("user", "Lives in Oslo."), ("user", "Likes tea.")],
        ("bob", "bob.prefs"): [("user", '{"colour": "blau", "dark": true}')],
    }


@asynccontextmanager
async def copied_to_server(kind: str, file: str, tables: Sequence[str]) -> AsyncIterator[str]:
    """Yield the address of a server with the tables of a SQLite file."""
    address = server_url(kind)
    engine = create_async_engine(address)
    with closing(sqlite3.connect(DATA / file)) as database:
        found = {name: database.execute(f'SELECT * FROM "{name}"') for name in tables}  # noqa: S608
        rows = {name: (each.description, each.fetchall()) for name, each in found.items()}
    copies = MetaData()
    for name, (heads, _) in rows.items():
        types = {"index": Integer(), "value": JSON(), "msg": JSON()}
        columns = [Column(head[0], types.get(head[0], Text())) for head in heads]
        Table(name, copies, *columns)
    async with engine.begin() as on:
        await on.run_sync(copies.create_all)
        for name, (heads, values) in rows.items():
            names = [head[0] for head in heads]
            for row in values:
                fields = dict(zip(names, row, strict=True))
                for each in {"value", "msg"} & fields.keys():
                    fields[each] = json.loads(fields[each])
                await on.execute(copies.tables[name].insert(), fields)
    try:
        yield address
    finally:
        async with engine.begin() as on:
            await on.run_sync(copies.drop_all)
        await engine.dispose()


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
async def test_sql_servers_are_read_like_files(kind: str) -> None:
    tables = ("session", "message_mark", "message")
    async with copied_to_server(kind, "agentscope.db", tables) as address:
        assert await imported("agentscope", address) == await imported(
            "agentscope", DATA / "agentscope.db"
        )
    async with copied_to_server(kind, "langgraph.db", ["store"]) as address:
        assert await imported("langgraph", address) == await imported(
            "langgraph", DATA / "langgraph.db"
        )


async def test_reme_is_read_from_its_files() -> None:
    _, found = await imported("reme", DATA / "reme")
    assert found == {
        ("ann", "default"): [("user", "Lives in Oslo. 🏠")],
        ("shop", "default"): [("user", "Ask for the size first.")],
    }
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        await import_foreign(service, "reme", DATA / "reme" / "ann.jsonl")
        memory = (await service.page("ann")).memories[0]
    assert memory.metadata["when_to_use"] == "where does she live"
    assert memory.created_at == datetime(2026, 1, 2, 3, 4, 5).astimezone().timestamp()


async def test_openai_agents_sessions_are_read() -> None:
    _, found = await imported("openai-agents", DATA / "openai_agents.db", "ann")
    assert found == {
        ("ann", "chat-1"): [
            ("user", "I live in Oslo."),
            ("assistant", "Noted: Oslo."),
            ("assistant", ["weather"]),
            ("tool", "rain"),
            ("user", "My tea is green. 🍵"),
        ]
    }


@pytest.mark.parametrize(
    ("file", "session"), [("langchain-chat.json", "langchain-chat"), ("langchain.db", "chat-2")]
)
async def test_langchain_history_is_read(file: str, session: str) -> None:
    _, found = await imported("langchain", DATA / file, "ann")
    assert found == {
        ("ann", session): [
            ("system", "Be kind."),
            ("user", "I live in Oslo."),
            ("assistant", ["weather"]),
            ("tool", "rain"),
            ("assistant", "It rains. 🌧"),
        ]
    }


def chatgpt_node(
    node: str, parent: str | None, role: str, *parts: Any, **more: Any
) -> dict[str, Any]:
    return {
        "id": node,
        "parent": parent,
        "children": [],
        "message": {
            "id": f"m-{node}",
            "author": {"role": role},
            "create_time": 1.7e9,
            "content": {"content_type": "text", "parts": list(parts)},
            "metadata": {},
            **more,
        },
    }


CHATGPT = [
    {
        "title": "Oslo",
        "conversation_id": "c1",
        "current_node": "d",
        "mapping": {
            "r": {"id": "r", "parent": None, "message": None},
            "a": chatgpt_node("a", "r", "system", ""),
            "b": chatgpt_node("b", "a", "user", "I live in Oslo."),
            "x": chatgpt_node("x", "b", "assistant", "An answer that was replaced."),
            "c": chatgpt_node("c", "b", "tool", "search results"),
            "d": chatgpt_node("d", "c", "assistant", "Noted. ✓", {"asset": 1}, "Anything else?"),
        },
    },
    {
        "title": "Circle",
        "id": "c2",
        "current_node": "a",
        "mapping": {"a": chatgpt_node("a", "a", "user", "Hm")},
    },
]
CLAUDE = [
    {
        "uuid": "k1",
        "name": "Oslo",
        "chat_messages": [
            {
                "uuid": "t1",
                "sender": "human",
                "text": "I live in Oslo.",
                "content": [{"type": "text", "text": "I live in Oslo."}],
                "created_at": "2026-01-02T03:04:05.678Z",
                "attachments": [{"file_name": "a.txt", "extracted_content": "A list."}],
            },
            {"uuid": "t2", "sender": "assistant", "text": "Noted. ✓", "content": []},
        ],
    }
]
CHATS = {
    "chatgpt": (
        CHATGPT,
        {
            ("ann", "c1"): [
                ("user", "I live in Oslo."),
                ("assistant", "Noted. ✓\n\nAnything else?"),
            ],
            ("ann", "c2"): [("user", "Hm")],
        },
    ),
    "claude": (
        CLAUDE,
        {("ann", "k1"): [("user", "I live in Oslo.\n\nA list."), ("assistant", "Noted. ✓")]},
    ),
}


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize("form", ["file", "folder", "zip"])
async def test_account_exports_are_read(name: str, form: str, tmp_path: Path) -> None:
    talks, expected = CHATS[name]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(talks), "utf-8")
    source = {"file": file, "folder": tmp_path, "zip": tmp_path / "export.zip"}[form]
    if form == "zip":
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(file, "user-1/conversations.json")
            archive.writestr("../../evil.json", "[]")
    _, found = await imported(name, source, "ann")
    assert found == expected
    with pytest.raises(InvalidInput, match="does not say whose it is; pass user="):
        await imported(name, source)


async def test_texts_are_read_in_parts_with_their_headings(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "trip.md").write_text(
        "# Oslo\n\nThe ferry leaves at nine.\n\n## Food\nFish soup.\n\n```\na\n\nb\n```\n", "utf-8"
    )
    (tmp_path / "plain.txt").write_text("\ufeffTea at four.\r\n", "utf-8")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    (tmp_path / "link.md").symlink_to("/etc/hostname")
    _, found = await imported("text", tmp_path, "ann")
    assert found == {
        ("ann", "notes/trip.md"): [
            ("user", "The ferry leaves at nine."),
            ("user", "Fish soup.\n\n```\na\n\nb\n```"),
        ],
        ("ann", "plain.txt"): [("user", "Tea at four.")],
    }


async def test_an_edited_text_adds_only_what_is_new(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("# A\nOne.\n# B\nTwo.\n")
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        await import_foreign(service, "text", file, user="ann")
        file.write_text("# A\nOne.\n# B\nThree.\n")
        report = await import_foreign(service, "text", file, user="ann")
    assert (report.added, report.known) == (1, 1)


async def test_facts_are_derived_from_what_is_imported() -> None:
    async with InMemoryMemoryService(settings=moves.WORDS, deriver=PersonalDeriver()) as service:
        await import_foreign(service, "openai-agents", DATA / "openai_agents.db", user="ann")
        await service.settled("ann")
        facts = [each.text for each in await service.facts("ann")]
    assert any("Oslo" in each for each in facts)


async def test_a_message_that_is_refused_is_reported_and_the_others_are_added(
    tmp_path: Path,
) -> None:
    file = tmp_path / "chat.json"
    talk = [
        {"type": "human", "data": {"content": text}} for text in ("one", "x" * 1_000_001, "two")
    ]
    file.write_text(json.dumps(talk))
    report, found = await imported("langchain", file, "ann")
    assert (report.records, report.added, report.refused) == (3, 2, 1)
    assert found == {("ann", "chat"): [("user", "one"), ("user", "two")]}
    assert "1000001 characters" in report.problems[0]


async def test_all_becomes_the_named_users(tmp_path: Path) -> None:
    _, found = await imported("agentscope", DATA / "agentscope.db", "carl")
    assert {user for user, _ in found} == {"carl"}


async def test_an_unknown_importer_is_named_with_the_nearest() -> None:
    async with InMemoryMemoryService(settings=moves.WORDS) as service:
        with pytest.raises(InvalidInput, match="did you mean 'langchain'"):
            await import_foreign(service, "langchian", "x")
        with pytest.raises(ImportRefused, match="there is no such file"):
            await import_foreign(service, "mem0", "/no/such/file")
    assert sorted(importers()) == [
        "agentscope",
        "agentscope-runtime",
        "chatgpt",
        "claude",
        "langchain",
        "langgraph",
        "mem0",
        "openai-agents",
        "reme",
        "text",
    ]
