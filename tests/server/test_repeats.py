"""Requests that are sent again: one key, one effect, one answer."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from memoryspace.loops import wait_for

from doors import somebody
from web import Web


def keyed() -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex}


def test_the_same_key_has_one_effect_and_one_answer(server: Web) -> None:
    client, headers = server.of(somebody()), keyed()
    body = {"messages": ["I live in Rome.", {"role": "user", "content": "I like tea."}]}
    first, again = (client.post("/v1/memories", json=body, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert len(first.json()["new"]) == 2
    assert len(client.get("/v1/memories").json()["memories"]) == 2


def test_a_key_is_refused_for_another_request(server: Web) -> None:
    client, headers = server.of(somebody()), keyed()
    assert client.post("/v1/memories", json={"messages": "a"}, headers=headers).is_success
    for other in ({"messages": "b"}, {"messages": "a", "session": "s"}):
        answer = client.post("/v1/memories", json=other, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "key-reused")
    assert len(client.get("/v1/memories").json()["memories"]) == 1


def test_a_key_of_one_user_says_nothing_to_another(server: Web) -> None:
    headers, one, other = keyed(), server.of(somebody()), server.of(somebody())
    body = {"messages": "I live in Rome."}
    sent = [each.post("/v1/memories", json=body, headers=headers) for each in (one, other)]
    ids = [each.json()["ids"] for each in sent]
    assert ids[0] != ids[1]
    assert [len(each.get("/v1/memories").json()["memories"]) for each in (one, other)] == [1, 1]


def test_requests_at_the_same_time_have_one_effect_and_one_answer(server: Web) -> None:
    client, headers = server.of(somebody()), keyed()

    def add(_: int) -> str:
        return client.post("/v1/memories", json={"messages": "Hello."}, headers=headers).text

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(add, range(16)))
    assert len(answers) == 1
    assert len(client.get("/v1/memories").json()["memories"]) == 1


@pytest.mark.parametrize("same", [True, False])
def test_a_server_that_died_before_its_answer_was_stored_is_no_second_effect(
    server: Web, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    user, headers = somebody(), keyed()
    client = server.of(user)

    async def dies(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:  # the memory is written, its answer is not
        broken.setattr(type(server.serving.repeats), "keep", dies)
        first = client.post("/v1/memories", json={"messages": "Hello."}, headers=headers)
        assert first.status_code == 500
    body = {"messages": "Hello." if same else "Something else."}
    again = client.post("/v1/memories", json=body, headers=headers)
    assert again.status_code == (201 if same else 422)
    [stored] = wait_for(server.serving.memory.list(user=user))
    assert stored.text == "Hello."
    if same:
        assert again.json()["new"] == [stored.id]


def test_a_refused_request_gives_its_key_back(server: Web) -> None:
    client, headers = server.of(somebody()), keyed()
    wrong = {"messages": {"role": "user", "nothing": 1}}
    assert client.post("/v1/memories", json=wrong, headers=headers).status_code == 422
    assert client.post("/v1/memories", json={"messages": "Hi."}, headers=headers).is_success


@pytest.mark.parametrize("key", ["", "a b", "x" * 129])
def test_a_key_that_cannot_be_one_is_refused(server: Web, key: str) -> None:
    answer = server.of("ann").post(
        "/v1/memories", json={"messages": "a"}, headers={"Idempotency-Key": key}
    )
    assert answer.status_code == 422


def test_a_version_is_changed_once(server: Web) -> None:
    client = server.of(somebody())
    [memory_id] = client.post("/v1/memories", json={"messages": "I live in Rome."}).json()["ids"]
    path = f"/v1/memories/{memory_id}"
    tag = client.get(path).headers["etag"]
    changed = client.patch(path, json={"message": "I live in Oslo."}, headers={"If-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    late = client.patch(path, json={"message": "I live in Bonn."}, headers={"If-Match": tag})
    assert (late.status_code, late.json()["code"]) == (412, "version-conflict")
    assert client.get(path).json()["text"] == "I live in Oslo."
    assert client.get("/v1/memories/none").json()["code"] == "unknown-memory"


def test_a_full_quota_does_not_take_back_an_answer(server: Web) -> None:
    user, headers = somebody(), keyed()
    client = server.of(user)
    server.admin.put(f"/v1/quotas?user={user}", json={"max_records": 1})
    first, again = (
        client.post("/v1/memories", json={"messages": "I live in Rome."}, headers=headers)
        for _ in range(2)
    )
    assert (first.status_code, again.json()) == (201, first.json())
    refused = client.post("/v1/memories", json={"messages": "I like tea."}, headers=keyed())
    assert refused.status_code == 507
