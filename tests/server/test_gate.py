"""The gate: who gets in, with what, and what nobody learns there."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator, MutableMapping
from typing import Any

import httpx
import pytest

from memoryspace.server import ServerConfig
from memoryspace.server.access.bodies import check_json
from memoryspace.server.problems import Problem

from web import Web, web

SMALL = ServerConfig(max_body=20_000, max_depth=20)


@pytest.fixture(scope="module")
def small() -> Iterator[Web]:
    with web(config=SMALL) as running:
        yield running


def routes(server: Web) -> list[tuple[str, str]]:
    document = server.admin.get("/v1/openapi.json").json()
    found = [
        (method.upper(), path.replace("{", "").replace("}", ""))
        for path, methods in document["paths"].items()
        for method in methods
    ]
    return [*found, ("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/v1/openapi.json"), ("GET", "/x")]


def test_no_route_but_liveness_answers_without_a_key(server: Web) -> None:
    nobody = server.client(None)
    found = {(method, path): nobody.request(method, path) for method, path in routes(server)}
    assert len(found) > 35
    alive = found.pop(("GET", "/health/live"))
    assert alive.json() == {"status": "alive"}
    assert {answer.status_code for answer in found.values()} == {401}
    for answer in found.values():
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def call(
    server: Web, *, headers: dict[str, str], kind: str = "http", path: str = "/v1/memories"
) -> tuple[int, int]:
    """Send a request by hand; return the status and how often its body was asked for."""
    asked, sent = 0, []

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b"[" * 1000, "more_body": True}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": kind, "method": "POST", "path": path, "query_string": b""}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    await server.app(scope, receive, send)
    return sent[0].get("status", 0), asked


@pytest.mark.parametrize("key", [None, "Bearer ms_0_0", "Basic YTpi"])
@pytest.mark.parametrize("path", ["/v1/memories", "/mcp", "/v1/search", "/v1/keys"])
async def test_the_body_of_a_request_without_a_key_is_never_read(
    small: Web, key: str | None, path: str
) -> None:
    headers = {"transfer-encoding": "chunked", "content-type": "application/json"}
    if key is not None:
        headers["authorization"] = key
    assert await call(small, headers=headers, path=path) == (401, 0)


async def test_a_body_without_end_is_refused_at_the_limit(small: Web) -> None:
    headers = {"transfer-encoding": "chunked", "authorization": f"Bearer {small.key}"}
    assert await call(small, headers=headers) == (413, 21)


async def test_a_web_socket_is_refused(small: Web) -> None:
    headers = {"authorization": f"Bearer {small.key}"}
    assert await call(small, headers=headers, kind="websocket", path="/mcp") == (0, 0)


def parts_of(body: bytes, size: int = 1000) -> Iterator[bytes]:
    yield from (body[at : at + size] for at in range(0, len(body), size))


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("path", ["/v1/memories?user=ann", "/mcp"])
def test_what_is_too_large_or_too_deep_is_refused(small: Web, chunked: bool, path: str) -> None:
    deep = b'{"messages": ' + b"[" * 30 + b"]" * 30 + b"}"
    large = json.dumps({"messages": "x" * 30_000}).encode()
    for body, code in ((deep, "too-deep"), (large, "too-large")):
        content = parts_of(body) if chunked else body
        answer = small.admin.post(
            path, content=content, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (413, code)


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": "\\ud83d", "when": NaN}',
        b'{"messages": "a", "when": -Infinity}',
        '{"messages": "a"}'.encode("utf-16"),
        b'{"messages": "a"',
        b"\xff\xfe",
        b"[]",
        b"null",
        b"",
        b'{"messages": {"role": "user", "content": "a", "n": ' + b"9" * 5000 + b"}}",
    ],
)
def test_what_is_no_json_is_refused(small: Web, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = small.admin.post("/v1/memories?user=ann", content=body, headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_brackets_in_texts_are_not_depth() -> None:
    text = "[" * 1000 + '\\"{{' + "NaN Infinity"
    check_json(json.dumps({"messages": [text, "\\", "]"]}).encode(), deepest=3)
    check_json(b'{"a": "' + b"[" * 100, deepest=3)  # the string has no end: no depth either
    with pytest.raises(Problem, match="nested"):
        check_json(json.dumps([text, [[["\\"]]]]).encode(), deepest=3)


def test_a_long_hostile_body_is_judged_in_linear_time() -> None:
    check_json(b'"' + b'\\"[' * 300_000, deepest=10)  # quadratic search would take hours
    check_json(b'"[' * 300_001, deepest=400_000)


def test_a_length_that_is_no_number_is_refused(small: Web) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b""

    import asyncio

    headers = {"content-length": "\u00b2", "authorization": f"Bearer {small.key}"}
    assert asyncio.run(call(small, headers=headers))[0] in (413, 422)


def test_a_bad_event_id_or_version_is_refused(server: Web) -> None:
    raw = "\u00b2".encode("latin-1")
    events = server.admin.get("/v1/events", headers={b"Last-Event-ID": raw})
    assert events.status_code == 422
    change = server.admin.patch("/v1/memories/a?user=b", json={}, headers={b"If-Match": raw})
    assert change.status_code == 422


@pytest.mark.parametrize(("scopes", "may_write"), [(["read"], False), (["read", "write"], True)])
def test_a_scope_allows_what_it_says(server: Web, scopes: list[str], may_write: bool) -> None:
    client = server.of("ann", scopes=scopes)
    assert client.get("/v1/memories").status_code == 200
    added = client.post("/v1/memories", json={"messages": "I live in Rome."})
    assert added.status_code == (201 if may_write else 403)
    for method, path in (
        ("GET", "/v1/keys"),
        ("POST", "/v1/keys"),
        ("GET", "/metrics"),
        ("GET", "/v1/audit"),
        ("GET", "/v1/users"),
        ("DELETE", "/v1/users?user=ann&confirm=ann"),
        ("POST", "/v1/space/gc"),
    ):
        assert client.request(method, path, json={}).status_code == 403, path


def test_an_admin_key_of_one_user_is_no_key_to_the_server(server: Web) -> None:
    client = server.of("ann", scopes=["admin"])
    for method, path in (
        ("POST", "/v1/keys"),
        ("GET", "/v1/users"),
        ("GET", "/v1/audit"),
        ("GET", "/metrics"),
        ("GET", "/v1/space"),
        ("PUT", "/v1/quotas"),
        ("DELETE", "/v1/users?user=bob&confirm=bob"),
    ):
        assert client.request(method, path, json={}).status_code == 403, path


def test_too_many_requests_of_a_user_are_refused_whatever_the_key() -> None:
    with web(config=ServerConfig(requests_a_minute=3)) as server:
        one, other, bob = server.of("ann"), server.client(None), None
        from memoryspace.loops import wait_for

        issue = server.serving.keys.issue
        other, bob = (server.client(wait_for(issue(users=[user])).key) for user in ("ann", "bob"))
        codes = [client.get("/v1/memories").status_code for client in (one, other, one, other)]
        assert codes == [200, 200, 200, 429]
        assert bob.get("/v1/memories").status_code == 200


def test_no_text_and_no_secret_is_logged(server: Web, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        client = server.of("hidden-user")
        client.post("/v1/memories", json={"messages": "My cat is called Xanthippe."})
        client.post("/v1/search", json={"question": "Who is Xanthippe?"})
        client.get("/v1/memories/Xanthippe")
        client.post("/v1/memories", json={"messages": {"Xanthippe": 1}, "Xanthippe": 2})
        client.get("/v1/Xanthippe")
        server.client("ms_Xanthippe_Xanthippe").get("/v1/memories")
    told = "\n".join(
        f"{each.getMessage()} {vars(each)}"
        for each in caplog.records
        if each.name.startswith("memoryspace")
    )
    assert "/v1/search" in told
    assert "Xanthippe" not in told
    assert "hidden-user" not in told
    assert server.key.split("_", 2)[2] not in told


def test_a_failure_inside_tells_its_kind_to_the_log_and_nothing_to_the_caller(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with web() as server, caplog.at_level(logging.INFO):

        async def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("Xanthippe")

        monkeypatch.setattr(server.serving.memory, "search", broken)
        answer = server.admin.post("/v1/search?user=ann", json={"question": "Who?"})
        assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
        assert "Xanthippe" not in answer.text
        assert answer.headers["x-request-id"] in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "Xanthippe" not in caplog.text


def test_answers_have_the_headers_of_a_safe_server(server: Web) -> None:
    answer = server.admin.get(
        "/v1/memories?user=ann", headers={"Origin": "http://evil", "X-Request-Id": "my-id.1"}
    )
    assert answer.headers["x-request-id"] == "my-id.1"
    assert answer.headers["cache-control"] == "no-store"
    assert "total;dur=" in answer.headers["server-timing"]
    assert not [name for name in answer.headers if name.startswith("access-control")]
    forged = server.admin.get(
        "/health/live", headers={"X-Request-Id": "a b\u00e9".encode("latin-1")}
    )
    assert forged.headers["x-request-id"] != "a b\u00e9"


def test_an_address_with_a_slash_too_many_is_not_redirected(server: Web) -> None:
    answer = server.admin.get("/v1/memories/?user=ann", headers={"Host": "evil.example"})
    assert answer.status_code in (404, 422)
    assert isinstance(answer, httpx.Response)
    assert "location" not in answer.headers


def test_the_server_fetches_nothing_that_a_client_names(server: Web) -> None:
    with socket.create_server(("127.0.0.1", 0)) as trap:
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/image.png"
        blocks = [
            {"type": "text", "text": f"Look at {url}"},
            {"type": "image", "source": {"type": "url", "url": url}},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        body = {"messages": {"role": "user", "content": blocks}}
        added = server.admin.post("/v1/memories?user=ann-of-images", json=body)
        assert added.status_code == 201, added.text
        server.admin.post("/v1/context?user=ann-of-images", json={"question": "What image?"})
        trap.setblocking(False)
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_erasing_a_user_must_be_confirmed(server: Web) -> None:
    server.admin.post("/v1/memories?user=to-erase", json={"messages": "I live in Rome."})
    refused = server.admin.delete("/v1/users?user=to-erase")
    assert (refused.status_code, refused.json()["code"]) == (422, "not-confirmed")
    erased = server.admin.delete("/v1/users?user=to-erase&confirm=to-erase")
    assert erased.status_code == 200
    assert erased.json()["deleted"]["raw"]
    assert server.admin.get("/v1/memories?user=to-erase").json()["memories"] == []


def test_a_store_that_does_not_answer_is_told_by_readiness(
    server: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.admin.get("/health/ready").json() == {"status": "ready"}

    async def is_down() -> bool:
        return False

    monkeypatch.setattr(server.serving.memory, "health", is_down)
    answer = server.admin.get("/health/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
