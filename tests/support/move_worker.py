"""A process whose children move memories until they die.

    python move_worker.py FOLDER import|export folder|sqlite LIVES

Each life imports or exports in a forked child that dies the hard way, at a random moment after one
of its steps. What it had acknowledged and what it left are printed, one JSON line a life. Python
starts and imports only once.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from memoryspace import MemoryStore, Store, open_store
from memoryspace.moving import Moved, export_memories, import_memories, importing, leaving
from memoryspace.record import Record, Scope

import moves

RECORDS = 400
USERS = ["ann", "bob"]

# Small steps, so that there are many.
importing.BATCH_BYTES = 1 << 12
leaving.FIRST_PAGE = leaving.LONGEST_PAGE = 30


def address(folder: Path, kind: str) -> str:
    place = folder / "target"
    return str(place) if kind == "folder" else f"sqlite:///{place}.db"


def forget(folder: Path) -> None:
    shutil.rmtree(folder / "target", ignore_errors=True)
    for file in folder.glob("target.db*"):
        file.unlink()


async def write_source(file: Path) -> None:
    store = MemoryStore()
    await moves.fill(store)
    for user in USERS:
        for start in range(0, RECORDS, 100):
            session = f"s{start % 300}"
            notes = [
                Record(f"n{n}", {"text": f"note {n}"}, f"note {n}", kind="note", created_at=n * 1.0)
                for n in range(start, start + 100)
            ]
            await store.append(Scope(user, session), notes)
    await export_memories(store, file, users=moves.USERS)


async def bring_in(folder: Path, kind: str, acknowledge: Callable[[int], None]) -> None:
    def note(moved: Moved) -> None:
        if moved.step == "importing":
            acknowledge(moved.records)

    async with open_store(address(folder, kind)) as store:
        await import_memories(store, folder / "source.jsonl", progress=note)


async def take_out(folder: Path, kind: str, acknowledge: Callable[[int], None]) -> None:
    async with open_store(address(folder, kind)) as store:
        await export_memories(
            store,
            folder / "out.jsonl.gz",
            users=moves.USERS,
            progress=lambda moved: acknowledge(moved.records),
        )


async def left_in(folder: Path, kind: str) -> dict[str, list[str]]:
    async with open_store(address(folder, kind)) as store:
        return await contents(store)


async def contents(store: Store) -> dict[str, list[str]]:
    return await moves.contents(store)


def in_child(work: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
    """Run work in a child; return whether it died."""
    child = os.fork()
    if child == 0:
        asyncio.run(work())
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


class Doom:
    """Ends the process at a random moment after so many acknowledgements, and notes them."""

    def __init__(self, notes: Path, rng: random.Random, steps: int) -> None:
        self._notes = notes
        self._at, self._after = rng.randrange(steps), rng.uniform(0.0001, 0.004)
        notes.write_text("0")

    def acknowledge(self, count: int) -> None:
        self._notes.write_text(str(count))
        if self._at == 0:
            signal.setitimer(signal.ITIMER_REAL, self._after)  # its signal kills at once
        self._at -= 1


def import_lives(folder: Path, kind: str, lives: int) -> None:
    """Import again and again; each life goes on where the last one died, and the last completes."""
    rng, notes = random.Random(f"{kind}{lives}"), folder / "acknowledged"
    steps: list[int] = []
    asyncio.run(bring_in(folder, kind, steps.append))  # also loads all that the children need
    expected = asyncio.run(left_in(folder, kind))
    for _ in range(lives):
        forget(folder)
        for _ in range(rng.randrange(1, 4)):
            doom = Doom(notes, rng, len(steps))
            died = in_child(lambda doom=doom: bring_in(folder, kind, doom.acknowledge))
            held = asyncio.run(left_in(folder, kind))
            _say(
                died=died,
                acknowledged=int(notes.read_text() or 0),
                held=sum(map(len, held.values())),
                is_beginning=all(expected[user][: len(held[user])] == held[user] for user in held),
            )
        asyncio.run(bring_in(folder, kind, _nobody))
        _say(is_whole=asyncio.run(left_in(folder, kind)) == expected)


def export_lives(folder: Path, kind: str, lives: int) -> None:
    """Export again and again; a file that is there is whole."""
    rng, steps = random.Random(f"{kind}{lives}"), list[int]()
    asyncio.run(bring_in(folder, kind, _nobody))
    asyncio.run(take_out(folder, kind, steps.append))
    file = folder / "out.jsonl.gz"
    for _ in range(lives):
        file.unlink(missing_ok=True)
        doom = Doom(folder / "acknowledged", rng, len(steps))
        died = in_child(lambda doom=doom: take_out(folder, kind, doom.acknowledge))
        is_whole = asyncio.run(_is_whole(file)) if file.exists() else None
        _say(died=died, is_there=file.exists(), is_whole=is_whole)


async def _is_whole(file: Path) -> bool:
    store = MemoryStore()
    report = await import_memories(store, file)
    return report.damage is None and report.added > RECORDS


def _nobody(count: int) -> None:
    """Acknowledge to nobody."""


def _say(**found: Any) -> None:
    print(json.dumps(found), flush=True)


def main(folder: str, work: str, kind: str, lives: str) -> None:
    place = Path(folder)
    asyncio.run(write_source(place / "source.jsonl"))
    {"import": import_lives, "export": export_lives}[work](place, kind, int(lives))


if __name__ == "__main__":
    main(*sys.argv[1:])
