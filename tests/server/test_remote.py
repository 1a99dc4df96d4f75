"""The remote door where a server is not as it should be."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

import pytest

from memoryspace import Memory
from memoryspace.door.faults import AccessDenied, QuotaExceeded
from memoryspace.errors import InvalidInput, MemorySpaceError, StoreUnavailable

from doors import somebody
from web import Web, web


def test_a_server_that_is_not_there_is_not_healthy() -> None:
    with Memory("http://127.0.0.1:9", api_key="ms_0_0", user="ann") as memory:
        assert memory.health() is False
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            memory.add("I live in Rome.")


def test_a_key_is_refused_by_name(server: Web) -> None:
    for key, user in ((None, "ann"), ("ms_0_0", "ann"), (server.new_key(["ann"]), "bob")):
        with Memory(server.address, api_key=key, user=user) as memory, pytest.raises(AccessDenied):
            memory.add("I live in Rome.")


def test_a_full_quota_has_a_name(server: Web) -> None:
    user = somebody()
    server.admin.put(f"/v1/quotas?user={user}", json={"max_records": 1})
    with Memory(server.address, api_key=server.key, user=user) as memory:
        memory.add("I live in Rome.")
        with pytest.raises(QuotaExceeded, match="are allowed"):
            memory.add("I like tea.")


def test_a_redirect_is_an_error_and_gets_no_key() -> None:
    seen: list[str] = []

    class Redirecting(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/stolen")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{other.server_port}"
        with (
            Memory(address, api_key="ms_0_0", user="ann") as memory,
            pytest.raises(MemorySpaceError),
        ):
            memory.get("a")
        other.shutdown()
        thread.join()
    assert [path for path in seen if "stolen" in path] == []


def test_moments_are_named_over_http_as_in_a_folder(tmp_path: Path) -> None:
    with (
        web(tmp_path / "space") as server,
        Memory(server.address, api_key=server.key, user="ann") as memory,
    ):
        before = memory.snapshot()
        memory.add("I live in Rome.")
        after = memory.snapshot()
        assert memory.diff(before, after).to_dict() == memory.diff(before.lsn).to_dict()
        with pytest.raises(InvalidInput):
            memory.diff("no time at all")
