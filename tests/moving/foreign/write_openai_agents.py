"""Writes a session with the OpenAI Agents SDK: python write_openai_agents.py FOLDER."""

import asyncio
import sys
from pathlib import Path

from agents import SQLiteSession

ITEMS = [
    {"role": "user", "content": "I live in Oslo."},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Noted: Oslo.", "annotations": []}],
    },
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"in":"Oslo"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    {"role": "user", "content": [{"type": "input_text", "text": "My tea is green. 🍵"}]},
]


async def main(folder: Path) -> None:
    session = SQLiteSession("chat-1", folder / "openai_agents.db")
    await session.add_items(ITEMS)
    session.close()


asyncio.run(main(Path(sys.argv[1])))
