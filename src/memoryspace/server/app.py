"""``create_app``: the server as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from ..door import AsyncMemory
from ..version import VERSION
from .access.gate import Gate
from .access.rates import Rates
from .config import ServerConfig
from .problems import handle_problems
from .routes import admin, memories, recalling, review, sessions, spaces, users
from .serving import Serving

_ABOUT = """Memory for agents: what was said, what is believed, and why.

Every request needs a key: `Authorization: Bearer ms_…`. Whose memory it is about says `?user=…`, or
the key, if it is bound to one user. Errors are problem details (RFC 9457)."""


def create_app(memory: AsyncMemory | None = None, config: ServerConfig | None = None) -> FastAPI:
    """Return a server of a memory, as an application for any ASGI server.

    Args:
        memory: The memory; by default the one that the configuration names. It is opened when the
            application starts and closed when it stops.
        config: How the server is reached, and what it allows.

    Example::

        app = create_app(AsyncMemory("postgresql://db/memories"))
    """
    memory = AsyncMemory() if memory is None else memory
    config = ServerConfig() if config is None else config
    parts = Serving.of(memory, config)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with parts:
            yield

    app = FastAPI(
        title="memoryspace",
        version=VERSION,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.serving = parts
    for module in (memories, recalling, sessions, review, users, spaces, admin):
        app.include_router(module.router)
    _add_health(app, parts)
    handle_problems(app)
    app.add_middleware(
        Gate,
        keys=lambda: parts.keys,
        rates=Rates(config.requests_a_minute),
        max_body=config.max_body,
    )
    _describe_keys(app)
    return app


def _add_health(app: FastAPI, parts: Serving) -> None:
    @app.get("/health/live", tags=["health"], operation_id="isAlive", summary="Is it running?")
    async def live() -> dict[str, str]:
        """Return that the process answers; no key is needed."""
        return {"status": "alive"}

    @app.get("/health/ready", tags=["health"], operation_id="isReady", summary="Can it serve?")
    async def ready(request: Request) -> Response:
        """Return whether the store answers."""
        is_ready = await parts.memory.health()
        status = "ready" if is_ready else "the store does not answer"
        return JSONResponse({"status": status}, status_code=200 if is_ready else 503)


def _describe_keys(app: FastAPI) -> None:
    """Say in the OpenAPI document that every route but one needs a key."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["key"] = {"type": "http", "scheme": "bearer", "description": "An API key, ms_…"}
        document["security"] = [{"key": []}]
        document["paths"]["/health/live"]["get"]["security"] = []
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation does it
