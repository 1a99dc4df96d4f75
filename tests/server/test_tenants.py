"""Nobody reaches another user's memory, whatever they send, over REST and over MCP."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from doors import somebody
from length import at_length
from web import Web

CASES = at_length(2_000, 20_000)
AT_ONCE = 8
SECRET = "Xanthippe keeps the blue key"


class Victim:
    """A user with everything that others may want: the names of it are known to the attacker."""

    def __init__(self, server: Web) -> None:
        self.user = somebody()
        client = server.of(self.user)
        said = [f"{SECRET} number {number}." for number in range(4)]
        self.key = "known-to-all"
        headers = {"Idempotency-Key": self.key}
        added = client.post(
            "/v1/memories", json={"messages": said, "session": "s"}, headers=headers
        )
        assert added.is_success, added.text
        self.ids: list[str] = added.json()["ids"]
        page = client.get("/v1/memories", params={"limit": 1}).json()
        self.cursor = page["cursor"]
        found = client.post("/v1/search", json={"question": "Who keeps the key?"}).json()
        assert SECRET in json.dumps(found)
        self.recall = found["recall_id"]
        client.post("/v1/sessions/s/messages", json={"messages": said})
        self.message = client.get("/v1/sessions/s/messages?everything=true").json()["messages"][0]
        self.client = client

    def state(self) -> Any:
        """Return what the victim sees."""
        paths = ("/v1/memories", "/v1/sessions/s/messages?everything=true", "/v1/quotas")
        return [self.client.get(path).json() for path in paths]


def attack(dice: random.Random, victim: Victim) -> tuple[str, str, dict[str, Any]]:
    """Return a request that names the victim's things in one way or another."""
    twisted: list[Callable[[str], str]] = [
        str,
        lambda name: f"../{name}",
        lambda name: f"{name}\x00",
        lambda name: f"{name}/../{name}",
        lambda name: f"{name}:s",
        lambda name: f'{name}" OR "1"="1',
        lambda name: f"@user:{{{name}}}",
        str.upper,
    ]
    user = dice.choice(twisted)(victim.user)
    memory_id = dice.choice([*victim.ids, victim.message["id"]])
    filters = dice.choice(
        [
            {"user_id": user},
            {"metadata": {"user_id": user}},
            {"metadata": {"a') OR 1=1 --": 1}},
            {"metadata": {"@user:{*}": "*"}},
            {"OR": [{"role": "user"}, {"name": user}]},
            {"NOT": [{"name": "x"}]},
        ]
    )
    path = dice.choice([memory_id, f"../{victim.user}/{memory_id}", f"{memory_id}%00"])
    session = dice.choice(["s", f"{user}/s", f"{user}:s", "memoryspace:answers", "../s"])
    query = dice.choice([{}, {}, {"user": user}, {"user_id": user}])
    question = f"{SECRET.split()[dice.randrange(4)]} key"
    headers = dice.choice(
        [{}, {"Idempotency-Key": victim.key}, {"X-Memoryspace-User": victim.user}]
    )
    quoted = quote(session, safe="")
    method, where, body = dice.choice(
        [
            ("GET", f"/v1/memories/{path}", None),
            ("DELETE", f"/v1/memories/{path}", None),
            ("PATCH", f"/v1/memories/{memory_id}", {"message": "mine"}),
            ("GET", f"/v1/history/{path}", None),
            ("GET", "/v1/memories", None),
            ("POST", "/v1/memories/list", {"filters": filters, "session": session}),
            ("POST", "/v1/memories/list", {"cursor": victim.cursor}),
            ("POST", "/v1/memories/delete", {"ids": victim.ids}),
            ("POST", "/v1/search", {"question": question, "filters": filters}),
            ("POST", "/v1/search", {"question": question, "session": session}),
            ("POST", "/v1/context", {"question": question}),
            ("POST", "/v1/why-not", {"question": question, "memory_id": memory_id}),
            ("POST", f"/v1/recalls/{victim.recall}/feedback", {"used": [memory_id]}),
            ("GET", "/v1/recalls", None),
            ("GET", f"/v1/sessions/{quoted}/messages", None),
            ("POST", f"/v1/sessions/{quoted}/expand", {"handle": memory_id}),
            ("POST", f"/v1/sessions/{quoted}/marks", {"mark": "m", "ids": [memory_id]}),
            ("POST", f"/v1/sessions/{quoted}/messages/delete", {"ids": [memory_id]}),
            ("DELETE", f"/v1/sessions/{quoted}/messages", None),
            ("DELETE", "/v1/sessions?session=s", None),
            ("DELETE", f"/v1/users?confirm={victim.user}", None),
            ("POST", "/v1/review/release", {"ids": [memory_id]}),
            ("GET", "/v1/sessions", None),
            ("GET", "/v1/facts", None),
        ]
    )
    return method, where, {"json": body, "params": query or None, "headers": headers}


async def test_no_request_reaches_another_users_memory(server: Web) -> None:
    victim = Victim(server)
    before = victim.state()
    key = server.new_key([somebody()], scopes=["read", "write"])
    dice, failures = random.Random(19), []

    async def attacker(http: httpx.AsyncClient, count: int) -> None:
        for _ in range(count):
            method, path, more = attack(dice, victim)
            if "?" in path and more["params"] is not None:
                path, _, own = path.partition("?")
                more["params"] = {**dict([own.split("=")]), **more["params"]}
            answer = await http.request(method, path, **more)
            if "Xanthippe" in answer.text.replace(str(more["json"]), "") and not re.search(
                r'"question"|"text": "mine"', answer.text
            ):
                failures.append((method, path, more, answer.text))
            if answer.status_code >= 500 or "blue key number" in answer.text:
                failures.append((method, path, more, answer.text))

    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=60) as http:
        await asyncio.gather(*(attacker(http, CASES // AT_ONCE) for _ in range(AT_ONCE)))
    assert failures == []
    assert victim.state() == before


async def test_no_tool_reaches_another_users_memory(server: Web) -> None:
    victim = Victim(server)
    before = victim.state()
    user = somebody()
    dice = random.Random(7)
    async with client_of(server, server.new_key([user])) as client:
        names = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert len(names) == 9
        for tool in names.values():
            assert "user" not in tool.input_schema["properties"]
        for _ in range(CASES // 20):
            hostile = dice.choice(
                [*victim.ids, victim.user, f"{victim.user}:s", "s", "', user='x", "](x) MATCH (n)"]
            )
            name, arguments = dice.choice(
                [
                    ("recall", {"question": "Who keeps the blue key?"}),
                    ("recall", {"question": hostile, "user": victim.user}),
                    ("context", {"question": "Who keeps the blue key?"}),
                    ("history", {"memory_id": hostile}),
                    ("why_not", {"question": "Who keeps it?", "memory_id": hostile}),
                    ("update", {"memory_id": hostile, "text": "mine"}),
                    ("forget", {"memory_ids": [hostile]}),
                    ("read_session", {"session": hostile}),
                    ("list_memories", {"kind": "memory", "user": victim.user}),
                    ("recall", {"question": 5, "limit": "all"}),
                    (hostile, {}),
                ]
            )
            answer = str(await told(client, name, arguments))
            assert "number" not in answer, (name, arguments, answer)
    assert victim.state() == before


async def told(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    try:
        return await client.call_tool(name, arguments)
    except Exception as error:  # an unknown tool
        return error


def client_of(server: Web, key: str, **headers: str) -> Client:
    given = {"Authorization": f"Bearer {key}", **headers}
    sent = [(name.encode(), value.encode()) for name, value in given.items()]
    http = httpx2.AsyncClient(headers=sent, timeout=60)
    return Client(streamable_http_client(f"{server.address}/mcp", http_client=http))


async def test_an_agent_remembers_and_recalls(server: Web) -> None:
    user = somebody()
    async with client_of(server, server.new_key([user])) as client:
        stored = str(await client.call_tool("remember", {"text": "I live in Rome."}))
        assert "Stored with the id" in stored
        assert "Rome" in str(await client.call_tool("recall", {"question": "Where do I live?"}))
        assert "Rome" in str(await client.read_resource("memory://facts/current"))
    log = [line for line in server.admin.get("/v1/audit").text.splitlines() if user in line]
    assert "mcp.remember" in log[-1]


async def test_the_header_names_the_user_of_a_key_for_several(server: Web) -> None:
    one, other, stranger = somebody(), somebody() + "王芳", somebody()
    key = server.new_key([one, other])
    named = {"X-Memoryspace-User": other}
    async with client_of(server, key, **named) as client:
        await client.call_tool("remember", {"text": "I live in Oslo."})
    texts = server.admin.get("/v1/memories", params={"user": other}).json()["memories"]
    assert [each["text"] for each in texts] == ["I live in Oslo."]
    for headers in ({}, {"X-Memoryspace-User": stranger}, {"X-Memoryspace-User": "memoryspace:x"}):
        async with client_of(server, key, **headers) as client:
            answer = await client.call_tool("recall", {"question": "Where?"})
            assert answer.is_error


async def test_tools_obey_scopes_and_quotas(server: Web) -> None:
    user = somebody()
    async with client_of(server, server.new_key([user], scopes=["read"])) as client:
        assert (await client.call_tool("remember", {"text": "Hi."})).is_error
    server.admin.put(f"/v1/quotas?user={user}", json={"max_records": 1})
    async with client_of(server, server.new_key([user])) as client:
        assert not (await client.call_tool("remember", {"text": "I live in Rome."})).is_error
        refused = await client.call_tool("remember", {"text": "I like tea."})
        assert refused.is_error
        assert "quota" in str(refused)


async def test_an_error_inside_a_tool_is_not_told(
    server: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("Xanthippe")

    monkeypatch.setattr(server.serving.memory, "search", broken)
    async with client_of(server, server.new_key([somebody()])) as client:
        answer = await client.call_tool("recall", {"question": "Where?"})
    assert answer.is_error
    assert "Xanthippe" not in str(answer)
