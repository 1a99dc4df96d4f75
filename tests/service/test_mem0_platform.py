"""mem0's platform as a memory service: the real client, talking to a small platform of our own.

The platform here keeps to what mem0 writes about its own: an id that a filter does not name must be
null, a star is anything but null, pages have at most a hundred, and what is added is worked on
later. The same tests pass with mem0 1.x and 2.x installed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from memoryspace.errors import InvalidInput, StoreError, StoreUnavailable
from memoryspace.service.mem0 import Mem0LongTermMemory, Mem0MemoryService
from memoryspace.service.schema import Message, TextContent

from mem0_parts import package

KEY = "m0-secret-key"
IDS = ("user_id", "agent_id", "app_id", "run_id")

Answer = tuple[int, Any]


class Platform:
    """Memories by id, and what the requests were."""

    def __init__(self) -> None:
        self.memories: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, Any]] = []
        self.left_by_delete_all = 0
        self.troubles: list[int] = []  # statuses of the next answers
        self.names_owners = True

    def answer(self, method: str, url: str, body: Any, key: str) -> Answer:
        parts = urlsplit(url)
        self.requests.append((method, parts.path, body))
        if key != f"Token {KEY}":
            return 401, {"detail": f"no such key: {key}"}
        if parts.path == "/v1/ping/":
            return 200, {"org_id": "o", "project_id": "p", "user_email": "a@b.c"}
        if self.troubles:
            return self.troubles.pop(0), {"detail": f"trouble with {body}"}
        for pattern, verbs in ROUTES.items():
            found = re.fullmatch(pattern, parts.path)
            if found and method in verbs:
                asked = dict(parse_qsl(parts.query))
                return verbs[method](self, body, asked, *map(unquote, found.groups()))
        return 404, {"detail": "no such place"}

    def add(self, body: Any, asked: dict[str, str]) -> Answer:
        new = []
        for each in body["messages"]:
            text = each["content"] if body["infer"] is False else f"Derived: {each['content']}"
            memory_id = f"00000000-0000-0000-0000-{len(self.memories):012}"
            when = f"2026-01-01T00:{len(self.memories) // 60:02}:{len(self.memories) % 60:02}-08:00"
            self.memories[memory_id] = {
                "id": memory_id, "memory": text, "metadata": body.get("metadata"),
                "created_at": when, "updated_at": when, "categories": ["misc"],
                "history": [text], **{name: body.get(name) for name in IDS},
            }  # fmt: skip
            new.append({"id": memory_id, "event": "ADD", "data": {"memory": text}})
        if body.get("async_mode") is False:
            return 200, {"results": new}
        return 200, {
            "message": "Processing in the background",
            "status": "PENDING",
            "event_id": "e",
        }

    def list(self, body: Any, asked: dict[str, str]) -> Answer:
        size, page = min(100, int(asked.get("page_size", 100))), int(asked.get("page", 1))
        fitting = [self.shown(each) for each in self.memories.values() if fits(body, each)][::-1]
        some = fitting[(page - 1) * size : page * size]
        following = f"page={page + 1}" if len(fitting) > page * size else None
        return 200, {"count": len(fitting), "next": following, "previous": None, "results": some}

    def search(self, body: Any, asked: dict[str, str]) -> Answer:
        words = set(body["query"].split())
        found = []
        for each in self.memories.values():
            score = len(words & set(each["memory"].split())) / len(words)
            if fits(body, each) and score >= body.get("threshold", 0.1):
                found.append({**self.shown(each), "score": score})
        found.sort(key=lambda each: -each["score"])
        return 200, {"results": found[: body["top_k"]]}

    def get(self, body: Any, asked: dict[str, str], memory_id: str) -> Answer:
        if memory_id not in self.memories:
            return 404, {"detail": "Memory not found!"}
        return 200, self.shown(self.memories[memory_id], owner=True)

    def put(self, body: Any, asked: dict[str, str], memory_id: str) -> Answer:
        memory = self.memories[memory_id]
        memory["history"] = [*memory["history"], body["text"]]
        memory.update(memory=body["text"], metadata=body.get("metadata"))
        return 200, memory

    def delete(self, body: Any, asked: dict[str, str], memory_id: str) -> Answer:
        del self.memories[memory_id]
        return 200, {"message": "Memory deleted successfully!"}

    def delete_all(self, body: Any, asked: dict[str, str]) -> Answer:
        assert asked.get("user_id")
        wanted = {name: asked[name] for name in IDS if name in asked}
        fitting = [
            key for key, each in self.memories.items()
            if all(each[name] == value for name, value in wanted.items())
        ]  # fmt: skip
        for key in fitting[self.left_by_delete_all :]:
            del self.memories[key]
        return 200, {"message": "Memories deleted successfully!"}

    def history(self, body: Any, asked: dict[str, str], memory_id: str) -> Answer:
        texts = self.memories[memory_id]["history"]
        return 200, [
            {
                "id": f"h{n}",
                "memory_id": memory_id,
                "new_memory": text,
                "updated_at": f"2026-{n:04}",
            }
            for n, text in enumerate(texts)
        ]

    def shown(self, memory: dict[str, Any], owner: bool = False) -> dict[str, Any]:
        hidden = {"history"} if self.names_owners or owner else {"history", *IDS}
        return {key: value for key, value in memory.items() if key not in hidden}


ROUTES: dict[str, dict[str, Callable[..., Answer]]] = {
    r"/v3/memories/add/": {"POST": Platform.add},
    r"/v[23]/memories/": {"POST": Platform.list},
    r"/v[23]/memories/search/": {"POST": Platform.search},
    r"/v1/memories/": {"POST": Platform.add, "DELETE": Platform.delete_all},
    r"/v1/memories/([^/]+)/": {
        "GET": Platform.get, "PUT": Platform.put, "DELETE": Platform.delete,
    },
    r"/v1/memories/([^/]+)/history/": {"GET": Platform.history},
}  # fmt: skip


def fits(body: Any, memory: dict[str, Any]) -> bool:
    """Tell whether a memory fits a filter; without one nothing would be kept apart."""
    parts = body["filters"]["AND"]
    wanted = {key: value for part in parts for key, value in part.items()}
    metadata = wanted.pop("metadata", {})
    if any((memory["metadata"] or {}).get(key) != value for key, value in metadata.items()):
        return False
    assert set(wanted) <= set(IDS)
    return all(
        (memory[name] is not None) if wanted.get(name) == "*" else memory[name] == wanted.get(name)
        for name in IDS
    )


@contextmanager
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Platform, str]]:
    """Yield a platform and its address."""
    package()
    monkeypatch.delenv("MEM0_API_KEY", raising=False)
    made = Platform()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            key = self.headers.get("Authorization", "")
            status, answer = made.answer(self.command, self.path, body, key)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815  # http.server's names

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def message(text: str, **fields: Any) -> Message:
    return Message(role="user", content=[TextContent(text=text)], **fields)


async def test_words_are_kept_found_listed_changed_and_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with platform(monkeypatch) as (there, host):
        async with Mem0MemoryService(api_key=KEY, host=host, infer=False) as mem0:
            assert await mem0.health()
            said = [message("green tea", metadata={"n": 1}), message("black tea")]
            await mem0.add_memory("ann", said, "s")
            await mem0.add_memory("bob", "green tea")
            assert await mem0.add_memory("ann", said, "s") == []
            assert await mem0.list_memory("ann") == said
            assert await mem0.search_memory("ann", "green", {"top_k": 1}) == said[:1]
            assert await mem0.search_memory("ann", "tea", {"session_id": "other"}) == []
            [first, _] = (await mem0.page("ann")).memories
            assert (first.session_id, first.metadata) == ("s", {"n": 1})
            assert first.details["message_id"] == said[0].id
            new = await mem0.update("ann", first.id, message("white tea"))
            assert (new.version, new.text) == (2, "white tea")
            assert [each.text for each in await mem0.history("ann", first.id)] == [
                "green tea", "white tea",
            ]  # fmt: skip
            assert await mem0.get("bob", first.id) is None
            assert await mem0.get("ann", "../../entities") is None
            assert int(await mem0.delete("bob", first.id)) == 0
            assert int(await mem0.delete("ann", first.id)) == 1
            assert int(await mem0.delete_memory("ann")) == 1
            assert await mem0.verify_erasure("ann")
            assert len(there.memories) == 1


async def test_what_the_platform_derives_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with platform(monkeypatch) as (_, host):
        monkeypatch.setenv("MEM0_API_KEY", KEY)
        async with Mem0MemoryService(host=host) as mem0:
            await mem0.add_memory("ann", [message("green tea"), message("black tea")])
            [found] = await mem0.search_memory("ann", [message("green tea")], {"top_k": 1})
            assert isinstance(found, Message)
            assert found.get_text_content() == "Derived: green tea"
            assert found.metadata is not None
            assert found.metadata["score"] == 1.0
            assert found.metadata["created_at"] == 1767254400.0  # eight hours behind


async def test_memories_with_and_without_a_session_are_a_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that others wrote for the user have no run: a filter by user alone finds only them."""
    with platform(monkeypatch) as (there, host):
        async with Mem0MemoryService(api_key=KEY, host=host, infer=False) as mem0:
            await mem0.add_memory("ann", "tea with milk", "s")
            old = {"messages": [{"content": "tea of old"}], "infer": False, "user_id": "ann"}
            there.add(old, {})
            assert await mem0.count("ann") == 2
            assert len(await mem0.search_memory("ann", "tea")) == 2
            assert await mem0.list_memory("ann", {"session_id": "s"}) == ["tea with milk"]
            assert int(await mem0.delete_memory("ann", "s")) == 1
            assert int(await mem0.delete_memory("ann")) == 1


async def test_many_are_listed_and_forgotten_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    with platform(monkeypatch) as (there, host):
        async with Mem0MemoryService(api_key=KEY, host=host, infer=False) as mem0:
            await mem0.add_memory("ann", [f"note {n}" for n in range(205)])
            assert await mem0.list_memory("ann", {"page_num": 21}) == [
                f"note {n}" for n in range(200, 205)
            ]
            there.left_by_delete_all = 3
            assert int(await mem0.delete_memory("ann")) == 205
            assert there.memories == {}


async def test_results_that_do_not_say_whose_they_are_are_the_platforms_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with platform(monkeypatch) as (there, host):
        there.names_owners = False
        async with Mem0MemoryService(api_key=KEY, host=host, infer=False) as mem0:
            await mem0.add_memory("ann", "green tea")
            assert await mem0.search_memory("ann", "tea") == ["green tea"]
            assert await mem0.list_memory("bob") == []
            assert mem0.dropped == 0


async def test_troubles_are_errors_that_show_neither_key_nor_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with platform(monkeypatch) as (there, host):
        async with Mem0MemoryService(api_key=KEY, host=host) as mem0:
            for status, error in (
                (429, StoreUnavailable),
                (503, StoreUnavailable),
                (400, StoreError),
            ):
                there.troubles = [status]
                with pytest.raises(error, match="mem0") as caught:
                    await mem0.add_memory("ann", "secret words")
                assert type(caught.value) is error
                assert "secret" not in str(caught.value)
                there.troubles = [status]
                assert not await mem0.health()
            assert await mem0.health()
        with pytest.raises(InvalidInput, match="rejected the key") as refused:
            await Mem0MemoryService(api_key="m0-wrong", host=host).start()
        assert "wrong" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert KEY not in repr(mem0)
    late = Mem0MemoryService(api_key=KEY, host=host)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await late.start()
    assert not await late.health()


async def test_without_a_key_it_says_which_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEM0_API_KEY", raising=False)
    mem0 = Mem0MemoryService()
    with pytest.raises(ValueError, match="MEM0_API_KEY"):
        await mem0.start()
    assert not await mem0.health()


async def test_a_client_is_closed_if_it_was_opened_here_and_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with platform(monkeypatch) as (_, host):
        mem0 = Mem0MemoryService(api_key=KEY, host=host, infer=False)
        async with mem0:
            opened = mem0._opened.async_client
        assert opened.is_closed
        async with mem0:
            await mem0.add_memory("ann", "tea")
            given = mem0._opened
            async with Mem0MemoryService(given, infer=False) as second:
                assert await second.list_memory("ann") == ["tea"]
            assert not given.async_client.is_closed


async def test_an_agents_memory_works_on_the_platform_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with platform(monkeypatch) as (there, host):
        async with Mem0MemoryService(api_key=KEY, host=host) as mem0:
            memory = Mem0LongTermMemory(user_name="ann", memory=mem0._opened)
            response = await memory.record_to_memory("", ["Ann likes tea"])
            assert response.text.startswith("Successfully recorded content to memory")
            assert len(there.memories) == 1  # what the platform still works on is not added again
            found = await memory.retrieve_from_memory(["likes"])
            assert '"Derived: Ann likes tea"' in found.text
