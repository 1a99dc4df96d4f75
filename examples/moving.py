"""Move in and out: from ChatGPT's export into a folder, from there into SQLite, and into a file."""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from memoryspace import open_store
from memoryspace.moving import export_memories, import_foreign, import_memories, migrate
from memoryspace.service import PersonalMemoryService

TALK = {
    "conversation_id": "moving-house",
    "title": "Moving house",
    "current_node": "2",
    "mapping": {
        "1": {
            "parent": None,
            "message": {
                "id": "m1",
                "author": {"role": "user"},
                "create_time": 1_760_000_000,
                "content": {"content_type": "text", "parts": ["I moved to Oslo in October."]},
            },
        },
        "2": {
            "parent": "1",
            "message": {
                "id": "m2",
                "author": {"role": "assistant"},
                "create_time": 1_760_000_060,
                "content": {"content_type": "text", "parts": ["How do you like it?"]},
            },
        },
    },
}


async def main(place: Path) -> None:
    """Run the example."""
    conversations = place / "conversations.json"
    conversations.write_text(json.dumps([TALK]), "utf-8")

    async with PersonalMemoryService(place / "memories") as service:
        report = await import_foreign(service, "chatgpt", conversations, user="ann")
        print("from ChatGPT:", report.added, "messages")
        for fact in await service.facts("ann"):
            print("derived:", fact.text)

    database = f"sqlite:///{place}/memories.db"
    async with open_store(place / "memories") as old, open_store(database) as new:
        moved = await migrate(old, new)
        print("moved:", moved.added == moved.records)
        exported = await export_memories(new, place / "everything.jsonl.gz")
        again = await import_memories(new, place / "everything.jsonl.gz")
        print("already there:", again.known == exported.records)

    async with PersonalMemoryService(database) as service:
        hit, *_ = await service.search("ann", "Where does she live?", top_k=1)
        print("found in SQLite:", hit.memory.text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
