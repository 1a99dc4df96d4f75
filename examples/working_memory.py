"""Working memory in one conversation: marks, a summary, and a saved state."""

import asyncio
from tempfile import TemporaryDirectory

from memoryspace.memory import InMemoryMemory
from memoryspace.message import Msg
from memoryspace.session import JSONSession


async def main() -> None:
    """Run the example."""
    memory = InMemoryMemory()
    await memory.add(Msg("Alice", "Write a report on the river's water level.", "user"))
    await memory.add(
        Msg("system", "<system-hint>Make a plan first.</system-hint>", "system"), marks="hint"
    )
    for msg in await memory.get_memory(mark="hint"):
        print("a hint for this step only:", msg.get_text_content())
    print("hints removed after use:", await memory.delete_by_mark("hint"))

    # The conversation grows; old messages are summarised and marked instead of deleted.
    await memory.add([Msg("assistant", f"Reading {day} done.", "assistant") for day in range(1, 8)])
    old = [msg.id for msg in await memory.get_memory()][:-2]
    await memory.update_compressed_summary("Alice wants a report; readings 1 to 5 are done.")
    print("marked as compressed:", await memory.update_messages_mark("compressed", msg_ids=old))
    for msg in await memory.get_memory(exclude_mark="compressed"):
        print(f"  {msg.name}: {msg.get_text_content()}")

    with TemporaryDirectory() as folder:
        session = JSONSession(folder)
        await session.save_session_state("report", user_id="alice", memory=memory)
        restored = InMemoryMemory()
        await session.load_session_state("report", user_id="alice", memory=restored)
        print("messages after a restart:", await restored.size())


if __name__ == "__main__":
    asyncio.run(main())
