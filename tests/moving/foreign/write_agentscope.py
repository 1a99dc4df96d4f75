"""Writes memories with AgentScope v1: python write_agentscope.py FOLDER [REDIS_PORT].

With a port, what it leaves in Redis is written down as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path

from agentscope.memory import AsyncSQLAlchemyMemory, InMemoryMemory, RedisMemory
from agentscope.message import Msg, TextBlock, ToolResultBlock, ToolUseBlock
from agentscope.module import StateModule
from agentscope.session import JSONSession, RedisSession
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import create_async_engine


class Agent(StateModule):
    def __init__(self, memory):
        super().__init__()
        self.memory = memory


async def fill(memory):
    await memory.add(Msg("ann", "I live in Oslo.", "user"), marks="pinned")
    await memory.add(
        [
            Msg(
                "bot",
                [ToolUseBlock(type="tool_use", id="c1", name="f", input={"x": 1})],
                "assistant",
            ),
            Msg(
                "system",
                [ToolResultBlock(type="tool_result", id="c1", name="f", output="7")],
                "system",
            ),
            Msg("bot", [TextBlock(type="text", text="It is 7. ✓")], "assistant", {"k": [1]}),
        ]
    )


async def dump(client):
    kinds = {}
    for key in sorted(await client.keys("*")):
        kind = await client.type(key)
        if kind == "string":
            kinds[key] = await client.get(key)
        elif kind == "list":
            kinds[key] = {"list": await client.lrange(key, 0, -1)}
        elif kind == "set":
            kinds[key] = {"set": sorted(await client.smembers(key))}
        else:
            kinds[key] = {"hash": await client.hgetall(key)}
    return kinds


async def main(folder: Path, port: str | None) -> None:
    database = folder / "agentscope.db"
    database.unlink(missing_ok=True)
    engine = create_async_engine(f"sqlite+aiosqlite:///{database}")
    for user, session in [("ann", "s1"), ("bob", "s2")]:
        memory = AsyncSQLAlchemyMemory(engine, session_id=session, user_id=user)
        await fill(memory)
        await memory.close()
    await engine.dispose()
    memory = InMemoryMemory()
    await fill(memory)
    await memory.update_compressed_summary("A summary.")
    await JSONSession(str(folder / "agentscope")).save_session_state(
        "s3", "ann", agent=Agent(memory)
    )
    if port is not None:
        client = Redis(port=int(port), decode_responses=True)
        await client.flushall()
        await fill(
            RedisMemory("s1", "ann", connection_pool=client.connection_pool, key_prefix="p:")
        )
        session = RedisSession(connection_pool=client.connection_pool)
        await session.save_session_state("s9", "bob", agent=Agent(memory))
        found = await dump(client)
        text = json.dumps(found, indent=1, ensure_ascii=False)
        (folder / "agentscope-redis.json").write_text(text, "utf-8")
        await client.aclose()


asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
