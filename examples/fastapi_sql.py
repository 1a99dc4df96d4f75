"""A chat service whose working memory is in a database, with a pooled session per request.

    pip install 'memoryspace[sql]' fastapi uvicorn
    DATABASE_URL=sqlite+aiosqlite:///chat.db uvicorn --factory examples.fastapi_sql:create_app

The request's session is yours: commit, roll back and close it as you like. A message is stored as
soon as ``add`` returns, unless you have an open transaction; then it becomes part of that.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from memoryspace.memory import AsyncSQLAlchemyMemory
from memoryspace.message import Msg
from memoryspace.store import SQLStore


def create_app(database_url: str | None = None) -> FastAPI:
    """Create the application; the address is ``DATABASE_URL`` unless given."""
    engine = create_async_engine(
        database_url or os.environ["DATABASE_URL"], pool_size=10, max_overflow=20, pool_timeout=30
    )
    new_session = async_sessionmaker(engine, expire_on_commit=False, autoflush=False)

    async def get_db() -> AsyncIterator[AsyncSession]:
        async with new_session() as session:
            yield session
            await session.commit()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await SQLStore(engine).create_tables()
        yield
        await engine.dispose()

    app = FastAPI(lifespan=lifespan)

    @app.post("/chat")
    async def chat(
        user_id: str, session_id: str, input: str, db: Annotated[AsyncSession, Depends(get_db)]
    ) -> dict[str, object]:
        memory = AsyncSQLAlchemyMemory(db, session_id=session_id, user_id=user_id)
        await memory.add(Msg("user", input, "user"))
        reply = Msg("assistant", f"You said: {input}", "assistant")  # your agent goes here
        await memory.add(reply)
        return {"reply": reply.content, "messages": await memory.size()}

    @app.get("/history")
    async def history(
        user_id: str, session_id: str, db: Annotated[AsyncSession, Depends(get_db)]
    ) -> list[dict[str, object]]:
        memory = AsyncSQLAlchemyMemory(db, session_id=session_id, user_id=user_id)
        return [msg.to_dict() for msg in await memory.get_memory()]

    return app
