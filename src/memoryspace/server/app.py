"""``create_app``: the server as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from mcp.server.transport_security import TransportSecuritySettings

from ..door import AsyncMemory
from ..version import VERSION
from .access.bodies import Bounds
from .access.gate import Gate
from .access.rates import Rates
from .config import ServerConfig
from .mcp import ByKey, create_mcp
from .problems import handle_problems
from .routes import admin, health, memories, recalling, review, sessions, spaces, users
from .serving import Serving
from .stopping import ended_by_signals
from .watching import Watching

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

    watching = Watching(parts)

    mcp = create_mcp(memory, ByKey(parts))
    mcp_app = mcp.streamable_http_app(
        streamable_http_path="/mcp",
        stateless_http=True,
        json_response=True,
        max_request_body_size=config.max_body,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            async with parts, mcp.session_manager.run():
                with ended_by_signals(watching.feed):
                    yield
        finally:
            watching.close()

    app = FastAPI(
        title="memoryspace",
        version=VERSION,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would send a key to wherever the Host header says
    )
    app.state.serving, app.state.watching = parts, watching
    for module in (memories, recalling, sessions, review, users, spaces, admin, health):
        app.include_router(module.router)
    app.router.routes.extend(mcp_app.routes)
    handle_problems(app)
    app.add_middleware(
        Gate,
        keys=lambda: parts.keys,
        rates=Rates(config.requests_a_minute),
        bounds=Bounds(config.max_body, config.max_depth),
        ended=watching.ended,
    )
    _describe_keys(app)
    return app


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
