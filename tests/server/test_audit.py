"""The audit log, and quotas."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace as change

from memoryspace import MemoryStore, open_store
from memoryspace.errors import CorruptData
from memoryspace.record import Record, Where
from memoryspace.server.access import audit
from memoryspace.server.access.audit import AuditLog

from doors import somebody
from web import Web


async def note(log: AuditLog, request: str) -> None:
    await log.note(key="k", action="memories.add", user="ann", count=1, request=request)


async def test_entries_of_many_at_once_make_one_chain() -> None:
    log = AuditLog(MemoryStore())
    await asyncio.gather(*(note(log, str(number)) for number in range(200)))
    entries = [entry async for entry in log.entries()]
    assert [entry.number for entry in entries] == list(range(1, 201))
    assert {entry.request for entry in entries} == {str(number) for number in range(200)}
    assert await log.check() == 200
    assert [entry.number async for entry in log.entries(after=198)] == [199, 200]


async def test_workers_write_one_chain(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/log.db"
    async with open_store(place) as one, open_store(place) as other:
        logs = [AuditLog(one), AuditLog(other)]
        await asyncio.gather(*(note(logs[number % 2], str(number)) for number in range(30)))
        assert await logs[0].check() == 30


@pytest.mark.parametrize("harm", ["changed", "removed", "cut"])
async def test_tampering_is_found(harm: str) -> None:
    store = MemoryStore()
    log = AuditLog(store)
    for number in range(5):
        await note(log, str(number))
    records = await store.select(audit._LOG)
    victim = records[-1 if harm == "cut" else 2]
    where = Where(ids=frozenset({victim.id}))
    if harm == "changed":
        value = [{**each, "count": 99} for each in victim.value]  # type: ignore[union-attr]
        kept = [Record(each.id, value if each is victim else each.value, kind=each.kind)
                for each in records]  # fmt: skip
        await store.delete(audit._LOG)
        await store.append(audit._LOG, kept)
    else:
        await store.delete(audit._LOG, where)
    with pytest.raises(CorruptData):
        await log.check()


async def test_a_writer_that_died_before_the_head_moved_stops_nobody() -> None:
    store = MemoryStore()
    log = AuditLog(store)
    await note(log, "1")
    head = await store.select(audit._HEAD)
    await note(log, "2")
    await store.replace(audit._HEAD, Where(ids=frozenset({head[0].id})), [change(head[0])])
    await note(log, "3")
    assert await log.check() == 3


def test_the_log_says_who_did_what_and_never_what_was_said(server: Web) -> None:
    user = somebody()
    client = server.of(user)
    added = client.post("/v1/memories", json={"messages": "I live in Xanadu."})
    client.request("DELETE", f"/v1/memories/{added.json()['ids'][0]}")
    lines = server.admin.get("/v1/audit").text.splitlines()
    assert [line for line in lines if user in line]
    own = [line for line in lines if f'"{user}"' in line]
    assert ["memories.add" in own[0], "memories.delete" in own[1]] == [True, True]
    assert added.headers["x-request-id"] in own[0]
    assert "Xanadu" not in "".join(lines)


def test_a_quota_is_enforced_and_shown(server: Web) -> None:
    user = somebody()
    client = server.of(user)
    server.admin.put(f"/v1/quotas?user={user}", json={"max_records": 1})
    assert client.post("/v1/memories", json={"messages": "I live in Rome."}).status_code == 201
    full = client.post("/v1/memories", json={"messages": "I like tea."})
    assert (full.status_code, full.json()["code"]) == (507, "quota-exceeded")
    session = client.post("/v1/sessions/s/messages", json={"messages": "Hello."})
    assert session.status_code == 507
    assert client.get("/v1/quotas").json()["quota"]["max_records"] == 1
