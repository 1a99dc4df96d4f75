"""``Memory`` works wherever it is called from, and closes itself at the end."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memoryspace import AsyncMemory, Memory
from memoryspace.door import AsyncReview, AsyncSession, Review, Session
from memoryspace.errors import StoreError

from doors import WORDS


def test_every_verb_of_the_asynchronous_door_is_offered_by_the_other() -> None:
    pairs = [(AsyncMemory, Memory), (AsyncSession, Session), (AsyncReview, Review)]
    for asynchronous, blocking in pairs:
        verbs = {name for name in dir(asynchronous) if not name.startswith("_")}
        internal = {"service", "store"} if asynchronous is AsyncMemory else set()
        assert verbs - internal <= set(dir(blocking)), blocking


def test_help_shows_the_arguments_of_a_verb() -> None:
    with Memory("memory:") as memory:
        names = [*inspect.signature(memory.search).parameters]
        assert names[:3] == ["question", "user", "limit"]
        assert "best first" in str(memory.search.__doc__)
        assert next(iter(inspect.signature(Memory.search).parameters)) == "self"


def test_a_memory_can_be_used_from_many_threads_at_once() -> None:
    with Memory("memory:", config=WORDS) as memory:
        texts = {f"thread {n} note {each}" for n in range(8) for each in range(10)}

        def add(n: int) -> None:
            for each in range(10):
                memory.add(f"thread {n} note {each}", user="ann")
                memory.search("note", user="ann")

        threads = [threading.Thread(target=add, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(memory.list(user="ann", limit=1000).texts) == texts


def test_a_memory_can_be_used_where_a_loop_is_running_already() -> None:
    async def cell() -> tuple[str, ...]:
        with Memory("memory:", user="ann", config=WORDS) as memory:
            memory.add("hello")
            return memory.list().texts

    assert asyncio.run(cell()) == ("hello",)


def test_a_call_that_would_wait_for_itself_says_so() -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory:
        memory.add("hello")
        raised: list[str] = []

        def listen(event: object) -> None:
            try:
                memory.list()
            except RuntimeError as error:
                raised.append(str(error))

        memory.events.subscribe(listen)
        memory.add("hello again")
        assert "never return" in raised[0]


@pytest.mark.parametrize("place", ["memory:", "folder"])
async def test_an_asynchronous_memory_serves_many_tasks(place: str, tmp_path: Path) -> None:
    address = place if place == "memory:" else str(tmp_path)
    async with AsyncMemory(address, user="ann", config=WORDS) as memory:
        await asyncio.gather(*(memory.add(f"note {n}") for n in range(50)))
        found = await asyncio.gather(*(memory.search(f"note {n}", limit=1) for n in range(50)))
        assert [hits.texts for hits in found] == [(f"note {n}",) for n in range(50)]


AT_THE_END = """
import os, signal, sys
from memoryspace import Config, Memory
memory = Memory(sys.argv[1], user="ann", config=Config(embedder="none"))
memory.add("I moved to Oslo last week.")
memory.search("Where do I live?")
print("ready", flush=True)
{end}
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM),
    ],
    ids=["exit", "SystemExit", "SIGTERM"],
)
def test_a_memory_closes_itself_at_the_end(end: str, code: int, tmp_path: Path) -> None:
    program = AT_THE_END.format(end=end)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True)
    assert done.returncode == code, done.stderr.decode()
    assert done.stderr == b""
    assert list((tmp_path / "index").glob("*")) or not (tmp_path / "index").exists()
    with Memory(tmp_path, user="ann", config=WORDS) as memory:
        assert memory.list().texts == ("I moved to Oslo last week.",)
        assert memory.recalls().newest[0].question == "Where do I live?"


def test_a_handler_of_the_program_is_left_alone(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        + AT_THE_END.format(end="os.kill(os.getpid(), signal.SIGTERM); signal.pause()")
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True)
    assert done.returncode == 7, done.stderr.decode()


def test_a_killed_program_loses_nothing_it_was_told_is_safe(tmp_path: Path) -> None:
    program = AT_THE_END.format(end="os.kill(os.getpid(), signal.SIGKILL)")
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    with Memory(tmp_path, user="ann", config=WORDS) as memory:
        assert memory.search("Where do I live?").texts == ("I moved to Oslo last week.",)


def test_a_second_process_is_told_who_owns_the_folder(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from memoryspace import Memory\n"
        "from memoryspace.errors import StoreError\n"
        "try:\n"
        "    Memory(sys.argv[1], user='ann').add('hello')\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    with Memory(tmp_path, user="ann", config=WORDS) as memory:
        memory.add("hello")
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True
        )
        assert str(os.getpid()) in done.stdout
        assert "postgresql://" in done.stdout


def test_a_second_memory_in_one_process_is_refused_too(tmp_path: Path) -> None:
    with Memory(tmp_path, user="ann", config=WORDS) as memory:
        memory.add("hello")
        with Memory(tmp_path, user="ann", config=WORDS) as other, pytest.raises(StoreError):
            other.add("hello")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() on this system")
def test_a_forked_child_can_open_a_memory_of_its_own() -> None:
    program = (
        "import json, os, sys\n"
        "from memoryspace import Config, Memory\n"
        "words = Config(embedder='none')\n"
        "memory = Memory('memory:', user='ann', config=words)\n"
        "memory.add('parent')\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    own = Memory('memory:', user='ann', config=words)\n"
        "    own.add('child')\n"
        "    print(json.dumps(own.list().texts), flush=True)\n"
        "    sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(json.dumps(memory.list().texts))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [["child"], ["parent"]]
