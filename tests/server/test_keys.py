"""API keys: what they allow, when they end, and that only their hashes are stored."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memoryspace import AsyncMemory, MemoryStore
from memoryspace.errors import InvalidInput, UnknownKey
from memoryspace.server import create_app
from memoryspace.server.access.keys import KeyRing

from doors import WORDS
from web import Web, web


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_key_says_what_its_caller_may_do() -> None:
    ring = KeyRing(MemoryStore())
    issued = await ring.issue(name="app", scopes=["read"], users=["ann", "bob"])
    caller = await ring.caller(issued.key)
    assert caller is not None
    assert caller.may("read")
    assert not caller.may("write")
    assert caller.may_use("ann")
    assert not caller.may_use("eve")
    assert caller.only_user is None


@pytest.mark.parametrize("wrong", ["", "ms_", "ms__", "ms_00_x", "Bearer", "ms_é_x", "x" * 5000])
async def test_what_is_no_key_is_nobody(wrong: str) -> None:
    ring = KeyRing(MemoryStore())
    await ring.issue()
    assert await ring.caller(wrong) is None


async def test_a_right_id_with_a_wrong_secret_is_nobody() -> None:
    ring = KeyRing(MemoryStore())
    one, other = await ring.issue(), await ring.issue()
    stolen = f"ms_{one.info.id}_{other.key.rpartition('_')[2]}"
    assert await ring.caller(stolen) is None
    assert await ring.caller(one.key[:-1]) is None


async def test_a_key_ends_when_it_says() -> None:
    clock = Clock()
    ring = KeyRing(MemoryStore(clock=clock))
    issued = await ring.issue(expires_at=1010.0)
    assert await ring.caller(issued.key) is not None
    clock.now = 1010.0
    assert await ring.caller(issued.key) is None


async def test_a_rotated_key_works_for_as_long_as_asked_and_no_longer() -> None:
    clock = Clock()
    ring = KeyRing(MemoryStore(clock=clock))
    old = await ring.issue(scopes=["read"], users=["ann"])
    new = await ring.rotate(old.info.id, keep_seconds=60)
    assert await ring.caller(old.key) is not None
    clock.now += 60
    assert await ring.caller(old.key) is None
    caller = await ring.caller(new.key)
    assert caller is not None
    assert (caller.scopes, caller.users) == (frozenset({"read"}), frozenset({"ann"}))


async def test_rotation_neither_revives_an_ended_key_nor_prolongs_one() -> None:
    clock = Clock()
    ring = KeyRing(MemoryStore(clock=clock))
    revoked, short = await ring.issue(), await ring.issue(expires_at=1010.0)
    await ring.revoke(revoked.info.id)
    with pytest.raises(InvalidInput, match="has ended"):
        await ring.rotate(revoked.info.id)
    await ring.rotate(short.info.id, keep_seconds=600)
    clock.now = 1010.0
    assert await ring.caller(short.key) is None
    with pytest.raises(UnknownKey):
        await ring.rotate("nobody")


def test_a_revoked_key_is_refused_at_once_by_another_worker(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/memories.db"
    with web(place) as one:
        key = one.new_key(["ann"])

        async def other_worker() -> list[int]:
            import httpx

            app = create_app(AsyncMemory(place, config=WORDS))
            async with app.router.lifespan_context(app):
                transport = httpx.ASGITransport(app)
                async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
                    headers = {"Authorization": f"Bearer {key}"}
                    before = await http.get("/v1/memories", headers=headers)
                    await asyncio.to_thread(one.admin.delete, f"/v1/keys/{key.split('_')[1]}")
                    after = await http.get("/v1/memories", headers=headers)
            return [before.status_code, after.status_code]

        assert asyncio.run(other_worker()) == [200, 401]
        assert one.client(key).get("/v1/memories").status_code == 401


@pytest.mark.parametrize("place", ["space", "sqlite:///{}/memories.db"])
def test_a_secret_is_in_no_file(place: str, tmp_path: Path) -> None:
    where = place.format(tmp_path) if "{}" in place else str(tmp_path / place)
    with web(where) as server:
        keys = [server.key, server.new_key(["ann"], name="a name to find")]
        server.admin.get("/v1/memories", params={"user": "ann"})
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for key in keys:
        _, key_id, secret = key.split("_", 2)
        assert key_id.encode() in held
        assert secret.encode() not in held


def test_a_revoked_key_does_not_come_back_with_the_past_of_a_space(tmp_path: Path) -> None:
    with web(tmp_path / "space") as server:
        key = server.new_key(["ann"])
        moment = server.admin.post("/v1/space/snapshot").json()["lsn"]
        server.admin.delete(f"/v1/keys/{key.split('_')[1]}")
        answer = server.admin.post("/v1/space/restore", json={"moment": moment})
        assert answer.status_code == 200, answer.text
        assert server.client(key).get("/v1/memories").status_code == 401


def test_only_the_first_start_makes_a_key(server: Web) -> None:
    from memoryspace.loops import wait_for

    assert wait_for(server.serving.first_key()) is None


def test_a_key_is_shown_once(server: Web) -> None:
    key = server.new_key(["ann"], name="app")
    listed = server.admin.get("/v1/keys").text
    assert key.split("_")[1] in listed
    assert key.split("_", 2)[2] not in listed
    assert "digest" not in listed


@pytest.mark.parametrize("given", [{"users": []}, {"scopes": ["root"]}, {"expires_at": 1}])
def test_a_key_that_makes_no_sense_is_refused(server: Web, given: dict[str, object]) -> None:
    assert server.admin.post("/v1/keys", json=given).status_code == 422
