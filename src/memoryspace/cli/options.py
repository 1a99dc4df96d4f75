"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from .moments import object_in

Session = Annotated[
    str | None, typer.Option("--session", "-s", help="The conversation.", metavar="NAME")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Cursor = Annotated[
    str | None,
    typer.Option(help="The `cursor` of the page before, as --json shows it.", metavar="CURSOR"),
]
Role = Annotated[
    Literal["user", "assistant", "system"],
    typer.Option(help="Who said it.", metavar="user|assistant|system"),
]
Jsonl = Annotated[
    bool, typer.Option("--jsonl", help='Each text is a JSON object with "role" and "content".')
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        help="Only `memory` (what was said), `fact` or another kind; may be repeated.",
        metavar="KIND",
    ),
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", help="The most to show.", metavar="NUMBER", min=1, max=1000)
]
Since = Annotated[
    str | None, typer.Option(help="Only what was said since this time.", metavar="TIME")
]
Until = Annotated[
    str | None, typer.Option(help="Only what was said until this time.", metavar="TIME")
]
When = Annotated[
    str | None,
    typer.Option(help='The time of the question: "last week" counts from it.', metavar="TIME"),
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filters",
        help='Further conditions as a JSON object, such as {"role": "user"}.',
        metavar="JSON",
    ),
]
Question = Annotated[
    list[str],
    typer.Argument(help="A question in words; `-` reads it from standard input.", metavar="WORD"),
]
Relevance = Annotated[
    float | None,
    typer.Option(help="Leave out what is less relevant, from 0 to 1.", metavar="NUMBER"),
]


def conditions(filters: str | None, since: str | None, until: str | None) -> Mapping[str, Any]:
    """Return the conditions that options name, as the door takes them."""
    given = object_in("--filters", filters)
    found = {} if given is None else dict(given)
    named = {"since": since, "until": until}
    return {**found, **{name: value for name, value in named.items() if value is not None}}
