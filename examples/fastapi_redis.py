"""A chat service whose working memory is in Redis, with one connection pool for all requests.

    pip install 'memoryspace[redis]' fastapi uvicorn
    REDIS_URL=redis://localhost:6379/0 uvicorn --factory examples.fastapi_redis:create_app

Calls wait for a free connection in the pool. A conversation is deleted a day after its last use.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from redis.asyncio import ConnectionPool

from memoryspace.memory import RedisMemory
from memoryspace.message import Msg

A_DAY = 24 * 60 * 60


def create_app(redis_url: str | None = None) -> FastAPI:
    """Create the application; the address is ``REDIS_URL`` unless given."""
    pool = ConnectionPool.from_url(redis_url or os.environ["REDIS_URL"], max_connections=10)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await pool.disconnect()

    app = FastAPI(lifespan=lifespan)

    def memory_of(user_id: str, session_id: str) -> RedisMemory:
        return RedisMemory(session_id, user_id, connection_pool=pool, key_ttl=A_DAY)

    @app.post("/chat")
    async def chat(user_id: str, session_id: str, input: str) -> dict[str, object]:
        async with memory_of(user_id, session_id) as memory:
            await memory.add(Msg("user", input, "user"))
            reply = Msg("assistant", f"You said: {input}", "assistant")  # your agent goes here
            await memory.add(reply)
            return {"reply": reply.content, "messages": await memory.size()}

    @app.get("/history")
    async def history(user_id: str, session_id: str) -> list[dict[str, object]]:
        async with memory_of(user_id, session_id) as memory:
            return [msg.to_dict() for msg in await memory.get_memory()]

    return app
