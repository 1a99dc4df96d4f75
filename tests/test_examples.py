"""The examples and the tour do what they say, the services over real HTTP."""

from __future__ import annotations

import asyncio
import os
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from memoryspace.message import new_id

from backends import server_url, sql_url

EXAMPLES = Path(__file__).parent.parent / "examples"
REQUESTS = 50
START_SECONDS = 30


# What each script says, in this order, if it did what it is there to show.
SHOWN = {
    "working_memory": ["after a restart: 8"],
    "moving": [
        "from ChatGPT: 2 messages",
        "derived:",
        "moved: True",
        "already there: True",
        "found in SQLite: I moved to Oslo in October.",
    ],
    "custom_store": ["checks"],
    "memory_space": ["undone"],
    "front_door": [
        "I moved to Oslo last week!",
        "no longer true",
        "NO LONGER TRUE",
        "nothing left: True",
    ],
    "agent_notes": ["20,000 notes"],
    "recall": ["谁要去北京? -> 我下个月去北京出差。"],
    "long_term_memory": [
        "Where does Mia live? -> My sister Mia moved into a flat in Bergen. (words: mia",
        "in Rome: Dinner by the river was wonderful.",
        "and the canteen? its 'stars' is 2",
        "too late",
        "version 1: My sister Mia moved into a flat in Bergen.",
        "version 2: My sister Mia moved on to Oslo.",
        "after a restart: My sister Mia moved on to Oslo.",
        "forgotten with one session: 2",
        "then everything: 2 memories, 1 old version",
        "nothing left: True",
    ],
    "personal_memory": [
        "The user lives in Rome.  [only from 2024-03-01 to 2024-09-02]",
        "用户住在北京。  [only from 2024-03-01 to 2024-08-01]",
        "Where does the user live? Guess what, I moved to Oslo",
        "In May: Hi! I live in Rome",
        "用户住在哪里? 我上个月搬到了上海",
        "In May: 我叫李娜,我住在北京",
        "Because on 2024-03-01 she said: Hi! I live in Rome",
        "held back: fact: The user lives in Paris.",
        "found meanwhile: 0",
        "deleted: 2",
        "found now: I work as a teacher.",
        "quoted as data",
        "moved to Oslo last week",
    ],
    "task_and_tool_memory": [
        "comparison:\nFor a task like: Book a table for two at the harbour restaurant on Friday.",
        "Do: find_restaurant",
        "Avoid (it failed): book_table",
        "lessons for a similar task: 1",
        "lessons for one never seen: 0",
        "pruned after three uses without help: 1",
        "kept: comparison, helped 2 of 3",
        "new when recorded again: 0",
        "71 % of 7 recent calls succeeded",
        "Cause: limit=500: avoid it",
    ],
    "learning_agent": [
        "lesson: none\n  rows: 200 of 412, score 0",
        "lesson: failure\n  rows: 412 of 412, score 1",
        "supplier from the Larkdesk CRM\n  lesson: comparison\n  rows: 412 of 412, score 1",
        "French\n  lesson: none",
    ],
    "multi_agent_conversation": [
        "Ann: The bend of the river",
        "Cat(thinking): Bob must not know",
        "Bob: Found it! What were you two whispering about?",
        "Ann remembers 7 messages; knows of the cake: True",
        "Bob remembers 5 messages; knows of the cake: False",
        "what Cat only thought is in Ann's memory: False",
    ],
    "long_tool_task": [
        "window of 4,000 tokens",
        "   12  read_log               22,579 tokens     2,",
        "Agent: The Rhine rose",
        "every one can be had back",
        "the Emme stood at 3.03 m",
        "In the log itself: Emme 07:30 level 3.03 m",
        "The largest prompt had 2,",
        "The memory has all 30 messages",
    ],
    "restart_mid_task": [
        "surveying the south field",
        "it is gone, with exit code 70",
        "found 6 messages; going on",
        "a call without a result",
        "surveying the south field",
        "north: rye, east: barley, south: poppies, west: flax",
        "done, with exit code 0",
    ],
    "shared_service": [
        "found on the phone: ['I live in Rome']",
        "two changes at once: 1 made, 1 told it was late",
        "all from both: 40",
        "the other process finds 41 memories",
        "and seen here: ['The ferry leaves at nine']",
        "deleted there, found here: []",
    ],
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_script_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    rest = capsys.readouterr().out
    for text in SHOWN[name]:
        assert text in rest
        rest = rest.partition(text)[2]


def test_the_tour_reads_back_after_a_restart(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memoryspace", "tour", "--folder", str(tmp_path / "tour")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    before, after = shown.split("4. The process ends;")
    assert "all 8 are still stored" in before
    for half in (before, after):
        assert "planner remembers 8 messages" in half
        assert "writer remembers 5 messages" in half
    assert "So far: Alice wants vegetables" in after
    assert "bob's messages in 'garden-plan': 0" in after
    assert (tmp_path / "tour" / "alice@garden-plan.json").is_file()
    assert "would be collected:     200, unreachable" in after
    assert "restored:               202 objects" in after


def test_the_command_says_what_it_can_do() -> None:
    command = [sys.executable, "-m", "memoryspace", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "tour" in shown


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb", "redis"])
async def test_fifty_requests_at_once_on_one_session(backend: str, tmp_path: Path) -> None:
    if backend == "redis":
        module, environment = "fastapi_redis", {"REDIS_URL": server_url("redis")}
    else:
        module, environment = "fastapi_sql", {"DATABASE_URL": sql_url(backend, tmp_path)}
    with service(f"examples.{module}:create_app", environment) as address:
        await check_service(address)


async def check_service(address: str) -> None:
    whose = {"user_id": f"user-{new_id()}", "session_id": "a:b/../%*"}
    inputs = [f"request {number}: 你好" for number in range(REQUESTS)]
    limits = httpx.Limits(max_connections=REQUESTS)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        calls = [client.post("/chat", params={**whose, "input": text}) for text in inputs]
        replies = await asyncio.gather(*calls)
        assert [reply.status_code for reply in replies] == [200] * REQUESTS
        history = (await client.get("/history", params=whose)).json()
        again = (await client.get("/history", params=whose)).json()
        other = (await client.get("/history", params={**whose, "user_id": "other"})).json()
    assert other == []
    assert history == again
    assert len({msg["id"] for msg in history}) == len(history) == 2 * REQUESTS
    said = [msg["content"] for msg in history]
    for text in inputs:
        assert said.count(text) == said.count(f"You said: {text}") == 1
        assert said.index(text) < said.index(f"You said: {text}")
    assert max(reply.json()["messages"] for reply in replies) == 2 * REQUESTS


@contextmanager
def service(factory: str, environment: dict[str, str]) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--factory", factory, "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--log-level", "warning"],
        cwd=EXAMPLES.parent,
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            assert process.poll() is None, process.stderr and process.stderr.read().decode()
            assert time.monotonic() < deadline, "the service did not start"
            time.sleep(0.05)  # until it listens; not part of the test
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
