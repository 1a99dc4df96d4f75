"""The program and its groups of commands, without their commands."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace as change

from .command import Options


def _group(about: str) -> typer.Typer:
    """Return a group whose help is plain text: Rich would take as long to load as all the rest."""
    return typer.Typer(
        help=about,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


app = _group("A memory for agents: durable, searchable, explained.")
session = _group("One conversation, read within a budget of tokens.")
review = _group("What waits for a decision: facts, and held back messages.")
config = _group("The settings, and where each of them is from.")
past = _group("Read the memory as it was: `at 2026-11-01 search …`.")

app.add_typer(session, name="session")
app.add_typer(review, name="review")
app.add_typer(config, name="config")
app.add_typer(past, name="at")


@past.callback()
def at(
    ctx: typer.Context,
    moment: Annotated[
        str,
        typer.Argument(
            help="A time such as 2026-11-01 or 2026-11-01T12:00, or the number that `snapshot` "
            "has shown.",
            metavar="MOMENT",
        ),
    ],
) -> None:
    """Read the memory as it was: `at 2026-11-01 search …`."""
    options = ctx.obj if isinstance(ctx.obj, Options) else Options()
    ctx.obj = change(options, moment=moment)
