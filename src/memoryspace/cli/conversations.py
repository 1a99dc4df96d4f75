"""Commands for a conversation's working memory."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import on
from .exits import NothingFound
from .groups import session
from .options import Jsonl, Role
from .screen import Grid
from .texts import batches
from .work import Work

SessionId = Annotated[str, typer.Argument(help="The id of the conversation.", metavar="SESSION")]


@on(session, name="add")
def add(
    work: Work,
    session_id: SessionId,
    texts: Annotated[
        list[str],
        typer.Argument(help="What was said; `-` reads lines from standard input.", metavar="TEXT"),
    ],
    role: Role = "user",
    mark: Annotated[
        list[str] | None,
        typer.Option(
            help="A mark; `pinned` keeps a message within the budget; may be repeated.",
            metavar="LABEL",
        ),
    ] = None,
    jsonl: Jsonl = False,
) -> None:
    """Append messages to a conversation."""
    ids: list[str] = []
    with work.memory(makes=True) as memory:
        conversation = memory.session(session_id)
        for _, batch in batches(texts, as_json=jsonl):
            messages = batch if jsonl else [{"role": role, "content": text} for text in batch]
            ids += conversation.add(messages, marks=mark)
    work.screen.show({"ids": ids}, Grid(("id",), [(each,) for each in ids]))


@on(session, name="show")
def show(
    work: Work,
    session_id: SessionId,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="The budget; the older part is summarised.", metavar="NUMBER", min=100),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every message, whatever the budget.")
    ] = False,
) -> None:
    """Show a conversation within a budget of tokens."""
    from ..door.session import DEFAULT_BUDGET

    with work.memory() as memory:
        conversation = memory.session(session_id)
        if everything:
            messages = conversation.all_messages()
        else:
            messages = conversation.messages(max_tokens=max_tokens or DEFAULT_BUDGET)
    rows = [(each.name, each.get_text_content() or "", each.id) for each in messages]
    data = {"messages": [each.to_dict() for each in messages]}
    if rows or work.screen.as_json:
        work.screen.show(data, Grid(("who", "text", "id"), rows))
    if not rows:
        raise NothingFound(f"no conversation {session_id!r}")


@on(session, name="expand")
def expand(
    work: Work,
    session_id: SessionId,
    handle: Annotated[
        str,
        typer.Argument(help="A handle from `show`, or the id of a message.", metavar="HANDLE"),
    ],
) -> None:
    """Show what was paged out of a conversation under a handle."""
    with work.memory() as memory:
        text = memory.session(session_id).expand(handle)
    work.screen.show({"text": text}, text)
