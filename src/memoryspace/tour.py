"""A guided tour with the embedded defaults: two agents remember, then a new process continues.

The second half really runs in a new Python process that knows only the folder.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from .kernel import Durability, MemoryManager, at, diff, restore
from .memory import InMemoryMemory, MemoryBase, SpaceMemory
from .message import Msg
from .session import JSONSession
from .token import estimate_tokens

USER, SESSION = "alice", "garden-plan"
KEEP_RECENT = 3
SOWING_TABLE = " ".join(
    f"{plant}: sow {month}, {row} cm between rows, {light}."
    for plant, month, row, light in [
        ("Beans", "after mid-May", 40, "full sun"),
        ("Chard", "from April", 30, "tolerates shade"),
        ("Lettuce", "from April, every two weeks", 25, "tolerates shade"),
        ("Carrots", "March to June", 25, "sun"),
        ("Beetroot", "April to June", 25, "half shade"),
        ("Courgette", "after mid-May", 100, "full sun"),
        ("Spinach", "March, and again in August", 20, "half shade"),
        ("Radish", "March to September", 15, "anywhere"),
    ]
)


def run(folder: str | None = None) -> None:
    """Run the tour in ``folder``, or in a temporary folder."""
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _walk(Path(folder))
        return
    with tempfile.TemporaryDirectory(prefix="memoryspace-tour-") as temporary:
        _walk(Path(temporary))


def _walk(folder: Path) -> None:
    asyncio.run(_first_process(folder))
    _title("4. The process ends; a new one starts and knows only the folder")
    code = f"from memoryspace.tour import after_restart; after_restart({str(folder)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


async def _first_process(folder: Path) -> None:
    async with _planner(folder) as planner:
        writer = InMemoryMemory()
        _title("1. Two agents talk: the planner stores on disk, the writer in RAM")
        await _talk(planner, writer)
        await _show("planner", planner)
        await _show("writer", writer)

        _title("2. Marks: a hint for one step, deleted after use")
        hint = Msg("system", "<system-hint>Ask about the soil first.</system-hint>", "system")
        await planner.add(hint, marks="hint")
        print(f"  with the mark 'hint':   {len(await planner.get_memory(mark='hint'))} message")
        print(f"  deleted by that mark:   {await planner.delete_by_mark('hint')}")

        _title("3. A summary: old messages are summarised and marked, not deleted")
        before = await planner.get_memory()
        old = [msg.id for msg in before[:-KEEP_RECENT]]
        await planner.update_compressed_summary(
            "So far: Alice wants vegetables on 12 m², half of it in shade; soil is loam; "
            "beans, chard and lettuce are agreed."
        )
        await planner.update_messages_mark("compressed", msg_ids=old)
        context = await planner.get_memory(exclude_mark="compressed")
        print(f"  the model reads {len(context)} messages instead of {len(before)},")
        print(f"  about {_tokens(context)} tokens instead of {_tokens(before)};")
        print(f"  all {await planner.size()} are still stored and can be read by their mark")
        await JSONSession(folder).save_session_state(SESSION, user_id=USER, writer=writer)


def after_restart(folder: str) -> None:
    """Read everything back, in the second process."""
    asyncio.run(_second_process(Path(folder)))


async def _second_process(folder: Path) -> None:
    writer = InMemoryMemory()
    await JSONSession(folder).load_session_state(SESSION, user_id=USER, writer=writer)
    async with _planner(folder) as planner:
        context = await planner.get_memory(exclude_mark="compressed")
        print("  the planner's context, from the memory space on disk:")
        for msg in context:
            print(f"    {msg.name:>9}: {_cut(msg.get_text_content() or '')}")
        await _show("planner", planner)
        await _show("writer", writer)

        _title("5. Tenants: another user with the same session name sees none of it")
        async with _planner(folder, user="bob") as stranger:
            print(f"  bob's messages in {SESSION!r}: {await stranger.size()}")

        _title("6. Speed on this machine, with the embedded defaults")
        await _measure("RAM", InMemoryMemory(), 10_000)
        async with _planner(folder, user="carol") as memory:
            await _measure("disk", memory, 300)
    _show_the_space(folder / "space")
    print("\nNext: docs/guide.md for working memory, docs/kernel.md for the memory space.")


def _show_the_space(folder: Path) -> None:
    _title("7. Under the hood: a heap with garbage collection, explanations and time travel")
    with MemoryManager(1 << 16, folder=folder, durability=Durability(sync="os")) as space:
        goal = space.store({"text": "Alice wants a garden of 12 m²"}, root=True)
        fact = space.store({"text": "the soil is loam"}, tags=("fact",))
        space.add_reference(goal.id, fact.id)
        for number in range(200):
            space.store({"text": f"small talk, number {number}"})
        before = space.last_lsn
        found = space.retrieve("what soil is it?", top_k=1)[0]
        print(f"  found by search:        {found.object.payload['text']!r}")
        doomed = space.explain_gc()
        print(f"  would be collected:     {len(doomed)}, {doomed[0].reason}")
        event = space.run_gc()
        print(f"  collected:              {event.freed} in {event.duration * 1e3:.1f} ms")
        print(f"  kept, still referenced: {space.load(fact.id).payload['text']!r}")
        with at(space, lsn=before) as past:
            print(f"  before the collection:  {len(past)} objects")
        print(f"  removed since:          {len(diff(space, before).removed)}")
        restore(space, lsn=before)
        print(f"  restored:               {len(space)} objects")


@asynccontextmanager
async def _planner(folder: Path, user: str = USER) -> AsyncIterator[MemoryBase]:
    async with SpaceMemory(folder / "memory", session_id=SESSION, user_id=user) as memory:
        yield memory


async def _talk(planner: MemoryBase, writer: MemoryBase) -> None:
    dialogue = [
        ("Alice", "user", "Help me plan a vegetable garden of 12 square metres."),
        ("planner", "assistant", "Gladly. How much sun does it get, and what is the soil like?"),
        ("Alice", "user", "Half of it lies in shade. The soil is loam."),
        ("planner", "assistant", f"I looked up what grows there. {SOWING_TABLE}"),
        ("Alice", "user", "That is a lot. Which three should I begin with?"),
        ("planner", "assistant", "Then beans in the sun, chard and lettuce in the shade."),
        ("Alice", "user", "好的。请把种植时间也写上。"),
        ("planner", "assistant", "Beans after mid-May; chard and lettuce from April, in turns."),
    ]
    for name, role, text in dialogue:
        msg = Msg(name, text, role)  # type: ignore[arg-type]  # one of the roles above
        await planner.add(msg)
        if name == "planner":
            await writer.add(msg)  # one agent observes what another says
    await writer.add(Msg("writer", "Draft: 'A garden of two lights'", "assistant"), marks="draft")


async def _measure(name: str, memory: MemoryBase, count: int) -> None:
    messages = [Msg("carol", f"note {number}", "user") for number in range(count)]
    start = time.perf_counter()
    for msg in messages:
        await memory.add(msg)
    added = time.perf_counter()
    found = await memory.get_memory()
    read = time.perf_counter()
    print(
        f"  {name:>6}: {count / (added - start):>8,.0f} single adds a second; "
        f"{len(found):,} messages read back in {(read - added) * 1e3:.1f} ms"
    )


async def _show(name: str, memory: MemoryBase) -> None:
    everything = await memory.get_memory(prepend_summary=False)
    print(f"  {name:>7} remembers {len(everything)} messages, about {_tokens(everything)} tokens")


def _tokens(messages: list[Msg]) -> int:
    return sum(estimate_tokens(msg.get_text_content() or "") for msg in messages)


def _title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def _cut(text: str, width: int = 80) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
