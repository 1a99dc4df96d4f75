"""Write the fixtures of every stored format: what this release writes, for later ones to read.

    python tools/make_format_fixtures.py

They go to tests/fixtures/formats/<major.minor>. Run it before a release, and whenever a format
changes before its first release; never for a release that is out: its files must stay as it wrote
them.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import format_fixtures as fixtures  # noqa: E402  # found through the path above
import memoryspace  # noqa: E402
from memoryspace import Msg  # noqa: E402
from memoryspace.care import back_up  # noqa: E402
from memoryspace.context.archive import FileArchive, Parcel  # noqa: E402
from memoryspace.kernel import Durability, MemoryManager  # noqa: E402
from memoryspace.kernel.tiers.cold import SQLiteColdStorage  # noqa: E402
from memoryspace.memory import InMemoryMemory  # noqa: E402
from memoryspace.service.deriving.personal import PersonalDeriver  # noqa: E402
from memoryspace.service.stored import StoredMemoryService  # noqa: E402
from memoryspace.session import JSONSession  # noqa: E402
from memoryspace.store import SpaceStore, SQLStore, Store  # noqa: E402

SMALL = Durability(sync="os", segment_bytes=16_384)
HOT = 1 << 12  # bytes: most of a space is cold
BEGIN = 1_700_000_000

MESSAGES = (
    "I live in Rome.", "My sister is called Marta.", "I am allergic to peanuts.",
    "I moved to Oslo last week.", "我住在上海。", "Call me at nine, please.",
)  # fmt: skip


def main() -> None:
    """Write everything, then note what this release reads from it."""
    name = ".".join(memoryspace.__version__.split(".")[:2])
    place = Path(tempfile.gettempdir()) / "memoryspace-formats"  # it is named in some files
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    asyncio.run(write(place))
    tidy(place)
    asyncio.run(note(place))
    tidy(place)
    folder = fixtures.FORMATS / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(place, folder)
    shutil.rmtree(place)
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    sys.stdout.write(f"{folder}: {size:,} bytes\n")


async def write(folder: Path) -> None:
    """Write each format once."""
    clock = ticking()
    for name in fixtures.STORES:
        if name == "sqlite":
            (folder / name / "cold").mkdir(parents=True)
            SQLiteColdStorage(folder / name / "cold" / "cold.sqlite").close()
        async with store_in(folder, name, clock) as store:
            await fill(store)
            if name == "lmdb":
                await back_up(store, folder / "backup")
            async with StoredMemoryService(store, settings=fixtures.SETTINGS) as service:
                await service.delete_memory(fixtures.DOOMED)
    write_kernel(folder / "kernel")
    await write_working_memory(folder)


def ticking() -> Callable[[], float]:
    """Return a clock on which every look is later than the one before."""
    ticks = count()
    return lambda: BEGIN + next(ticks) / 16


def store_in(folder: Path, name: str, clock: Callable[[], float]) -> Store:
    """Return the store to be written to."""
    if name.endswith(".sqlite"):
        return SQLStore(fixtures.address_of(folder, name), clock=clock)
    return SpaceStore(folder / name, hot_capacity=HOT, durability=SMALL, clock=clock)


async def fill(store: Store) -> None:
    """Add memories, facts derived from them, a changed one, vectors, and other users."""
    async with StoredMemoryService(
        store, settings=fixtures.SETTINGS, deriver=PersonalDeriver()
    ) as service:
        receipt = await service.add_memory("ann", list(MESSAGES[:3]), "talk")
        await service.add_memory("ann", list(MESSAGES[3:]), "talk")
        await service.update("ann", receipt.ids[1], "My sister is called Maria.")
        for number in range(8):
            await service.add_memory("bob", [f"note {number}: " + "the sea is blue. " * 20])
        if isinstance(store, SpaceStore):
            store.space.checkpoint()
        await service.add_memory(fixtures.DOOMED, ["My name is Eve."])
        for user in ("ann", "bob", fixtures.DOOMED):
            await service.settled(user)


def write_kernel(folder: Path) -> None:
    """Write a space with references, an index, a checkpoint and a journal after it."""
    with MemoryManager(1 << 20, folder=folder, durability=SMALL) as space:
        goal = space.store({"text": "book a table for four"}, id="goal", root=True)
        fact = space.store({"text": "Ann is allergic to peanuts"}, tags=["diet"], id="fact")
        space.add_reference(goal.id, fact.id)
        space.checkpoint()
        space.update("goal", payload={"text": "book a table for five"})


async def write_working_memory(folder: Path) -> None:
    """Write a saved session and an archive."""
    memory = InMemoryMemory()
    await memory.add(Msg("ann", "We leave on Friday.", "user"))
    await JSONSession(folder / "sessions").save_session_state("talk", "ann", memory=memory)
    archive = FileArchive(folder / "archive", user_id="ann", session_id="talk")
    archive.put([Parcel("a long text that left the context", "text", "message-1")])


async def note(folder: Path) -> None:
    """Write what is read from copies of the files, since opening a store may change it."""
    copies = folder.with_name(f"{folder.name}-copies")
    shutil.copytree(folder, copies)
    try:
        expected = {
            **{
                name: await fixtures.contents(fixtures.address_of(copies, name))
                for name in fixtures.STORES
            },
            "kernel": fixtures.kernel_contents(copies / "kernel"),
            "session": await fixtures.session_contents(copies / "sessions"),
            "archive": fixtures.archive_contents(copies / "archive"),
            "ledger": fixtures.ledger_contents(folder / "lmdb" / "erasures.log"),
        }
    finally:
        shutil.rmtree(copies)
    text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True)
    (folder / "expected.json").write_text(text + "\n", "utf-8")


def tidy(folder: Path) -> None:
    """Remove what holds no data."""
    for path in [*folder.rglob("LOCK"), *folder.rglob("*-lock"), *folder.rglob(".lock")]:
        path.unlink()


if __name__ == "__main__":
    main()
