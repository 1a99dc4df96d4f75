"""The program with all its commands, in the order in which its help shows them."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from . import (  # noqa: F401  # importing a module registers its commands
    adding,
    caring,
    configuring,
    conversations,
    deciding,
    finding,
    keeping,
    moving,
    past,
    reviewing,
    serving,
    showing,
)
from .command import Options, shared, sign
from .groups import app
from .groups import past as at

_ABOUT = """A memory for agents: durable, searchable, explained.

The options below, except --version, may stand before a command or after it.
"""


def _show_version(asked: bool) -> None:
    if asked:
        from ..version import VERSION

        typer.echo(f"memoryspace {VERSION}")
        raise typer.Exit


_ORDER = (
    *("add", "search", "context", "list", "get", "update", "delete", "history", "facts", "users"),
    *("stats", "why-not", "recalls", "feedback", "import", "export", "migrate", "backup"),
    *("restore", "doctor", "snapshot", "diff", "rewind", "fork", "gc", "serve", "mcp", "demo"),
    *("tour", "bench"),
)

_VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ],
)


def _begin(ctx: typer.Context, **given: Any) -> None:
    given.pop("version")
    ctx.obj = Options(**given)


sign(_begin, [*shared(hidden=False).values(), _VERSION])
app.callback(help=_ABOUT)(_begin)


@cache
def command() -> Any:
    """Return the program as Typer runs it, its commands in the order in which they are shown."""
    for group in (app, at):
        group.registered_commands.sort(key=lambda each: _ORDER.index(str(each.name)))
    return get_command(app)
