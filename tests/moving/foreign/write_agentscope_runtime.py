"""Writes memories with agentscope-runtime 1.0.5: python write_agentscope_runtime.py FOLDER PORT."""

import asyncio
import json
import sys
from pathlib import Path

from agentscope_runtime.engine.schemas.agent_schemas import Message, TextContent
from agentscope_runtime.engine.services.memory import RedisMemoryService
from redis.asyncio import Redis


def said(role, text):
    return Message(type="message", role=role, content=[TextContent(type="text", text=text)])


async def main(folder: Path, port: str) -> None:
    client = Redis(port=int(port), decode_responses=True)
    await client.flushall()
    service = RedisMemoryService(redis_url=f"redis://127.0.0.1:{port}/0")
    await service.start()
    await service.add_memory(
        "ann", [said("user", "I live in Oslo."), said("assistant", "Oslo!")], "s1"
    )
    await service.add_memory("bob", [said("user", "我喜欢喝茶。")])
    found = {key: {"hash": await client.hgetall(key)} for key in sorted(await client.keys("*"))}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (folder / "agentscope-runtime-redis.json").write_text(text, "utf-8")
    await service.stop()
    await client.aclose()


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
