"""Commands that serve the memory to others."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .command import on
from .groups import app
from .work import Work


@on(app, name="serve")
def serve(
    work: Work,
    host: Annotated[
        str | None,
        typer.Option(help="Where to listen; by default this computer only.", metavar="HOST"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port; by default 8710.", metavar="PORT")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="How many processes serve; a folder allows one.", metavar="NUMBER"),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Add a few memories to try it with.")
    ] = False,
) -> None:
    """Serve the memory over HTTP and MCP."""
    from ..server import load_server_config
    from ..server.command import serve as run

    given = {"host": host, "port": port, "workers": workers}
    server = load_server_config(given, file=work.config_file).settings
    run(work.settings().settings, server, say=_say, demo=demo)


@on(app, name="mcp")
def mcp(work: Work) -> None:
    """Serve one user's memory to an agent, by MCP over stdio."""
    from ..server.command import serve_mcp

    config = work.settings().settings
    serve_mcp(config, user=str(config.user))


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
