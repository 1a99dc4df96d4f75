"""The live feed and the metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx

from doors import somebody
from web import Web, web

DOCS = Path(__file__).parent.parent.parent / "docs"


def read(stream: httpx.Response, *, until: str) -> list[dict[str, Any]]:
    """Read events up to one of a name; each with its id."""
    found: list[dict[str, Any]] = []
    number = 0
    for line in stream.iter_lines():
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("data: "):
            found.append({"id": number, **json.loads(line[6:])})
            if found[-1]["data"].get("name") == until:
                return found
    return found


def test_a_reader_sees_its_users_events_and_resumes_where_it_was(server: Web) -> None:
    ann, bob = somebody(), somebody()
    one, other = server.of(ann), server.of(bob)
    with one.stream("GET", "/v1/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry")
    start = server.app.state.watching.feed._number
    other.post("/v1/memories", json={"messages": "I live in Xanadu."})
    one.post("/v1/memories", json={"messages": "I live in Rome."})
    one.post("/v1/search", json={"question": "Where do I live?"})
    with one.stream("GET", f"/v1/events?after={start}") as stream:
        seen = read(stream, until="service.search")
    assert {each["data"]["scope"]["user"] for each in seen} == {ann}
    assert "Rome" not in json.dumps(seen)
    assert "Xanadu" not in json.dumps(seen)
    assert [each["id"] for each in seen] == sorted({each["id"] for each in seen})
    middle = seen[len(seen) // 2]["id"]
    with one.stream("GET", "/v1/events", headers={"Last-Event-ID": str(middle)}) as stream:
        rest = read(stream, until="service.search")
    assert rest == [each for each in seen if each["id"] > middle]


def test_a_stream_ends_with_its_key(server: Web) -> None:
    user = somebody()
    key = server.new_key([user])
    with server.client(key).stream("GET", "/v1/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        server.admin.delete(f"/v1/keys/{key.split('_')[1]}")
        server.admin.get("/v1/memories", params={"user": user})  # an event that it may not see
        assert [line for line in lines if line.startswith("data")] == []


def test_streams_end_when_the_server_does() -> None:
    with web() as server:
        stream = server.of("ann").send(
            server.admin.build_request(
                "GET", "/v1/events", headers={"Authorization": f"Bearer {server.key}"}
            ),
            stream=True,
        )
        lines = stream.iter_lines()
        next(lines)
    assert not [line for line in lines if line.startswith('data: {"name": "end')]


def test_every_metric_is_documented(server: Web) -> None:
    server.admin.get("/v1/memories?user=ann")
    text = server.admin.get("/metrics").text
    names = set(re.findall(r"^# TYPE (memoryspace_\w+) (?!gauge$)?", text, re.M))
    names = {name for name in names if not name.endswith("_created")}
    assert 'memoryspace_http_requests_total{method="GET",route="/v1/memories",status="200"}' in text
    page = (DOCS / "server.md").read_text("utf-8")
    assert [name for name in sorted(names) if name.removesuffix("_total") not in page] == []
    assert "user=" not in text
