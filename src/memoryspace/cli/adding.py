"""Commands that add, read, change and delete memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .asking import confirm
from .command import on
from .exits import NothingFound
from .groups import app, past
from .moments import object_in
from .options import (
    Cursor,
    Filter,
    Jsonl,
    Kind,
    Limit,
    Role,
    Session,
    Since,
    Until,
    Yes,
    conditions,
)
from .progress import progress
from .texts import STDIN, batches, whole
from .work import Work

if TYPE_CHECKING:
    from ..door import Memories

Id = Annotated[str, typer.Argument(help="The id of a memory.", metavar="ID")]


@on(app, name="add")
def add(
    work: Work,
    texts: Annotated[
        list[str],
        typer.Argument(
            help="What to remember; `-` reads lines from standard input.", metavar="TEXT"
        ),
    ],
    session: Session = None,
    role: Role = "user",
    name: Annotated[
        str | None, typer.Option(help="The name of who said it.", metavar="NAME")
    ] = None,
    mark: Annotated[
        list[str] | None,
        typer.Option(help="A label to filter by; may be repeated.", metavar="LABEL"),
    ] = None,
    when: Annotated[
        str | None, typer.Option(help="When it was said, such as 2026-11-01T12:00.", metavar="TIME")
    ] = None,
    jsonl: Jsonl = False,
) -> None:
    """Remember texts. They are safe when the command ends.

    From standard input every line is a message, and the result is shown for each hundred of them.
    """
    from .views import receipt_grid

    said_by = {"role": role} | ({} if name is None else {"name": name})
    held_back = added = 0
    with work.memory(makes=True) as memory, progress(work.screen) as tell:
        for first, batch in batches(texts, as_json=jsonl):
            messages = batch if jsonl else [{**said_by, "content": text} for text in batch]
            try:
                receipt = memory.add(messages, session=session, marks=mark, when=when)
            except ValueError:
                if added:
                    work.screen.note(f"the messages before number {first} were added")
                raise
            if receipt.pending:
                memory.settle()
            added += len(batch)
            held_back += len(receipt.held_back)
            tell("adding", added, None)
            work.screen.stream(receipt.to_dict(), receipt_grid(receipt))
    if held_back:
        work.screen.note(f"{held_back} held back; see `memoryspace review quarantined`")


@on(app, past, name="list")
def list_(
    work: Work,
    session: Session = None,
    kind: Kind = None,
    limit: Limit = 50,
    oldest: Annotated[bool, typer.Option("--oldest", help="Begin with the oldest.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all pages; as JSON, one line for each memory.")
    ] = False,
    cursor: Cursor = None,
    since: Since = None,
    until: Until = None,
    filters: Filter = None,
) -> None:
    """Show memories, newest first."""
    from .views import memories_grid

    given = conditions(filters, since, until)
    with work.memory() as memory:
        while True:
            page: Memories = memory.list(
                session=session, kind=kind or "memory", limit=limit, newest=not oldest,
                cursor=cursor, filters=given,
            )  # fmt: skip
            if not everything:
                work.screen.show(page.to_dict(), memories_grid(page))
                break
            _show_all(work, page)
            cursor = page.cursor
            if cursor is None:
                return
    if page.cursor is not None:
        work.screen.note("there are more; pass --all, or a larger --limit")


def _show_all(work: Work, page: Memories) -> None:
    from .views import memories_grid

    if not work.screen.as_json:
        work.screen.show(None, memories_grid(page))
        return
    for each in page:
        work.screen.stream(each.to_dict(), "")


@on(app, past, name="get")
def get(work: Work, memory_id: Id) -> None:
    """Show all of one memory."""
    from .views import memory_fields

    with work.memory() as memory:
        found = memory.get(memory_id)
    if found is None:
        raise NothingFound(f"no memory {memory_id!r}")
    work.screen.show(found.to_dict(), memory_fields(found))


@on(app, name="update")
def update(
    work: Work,
    memory_id: Id,
    text: Annotated[
        str | None,
        typer.Argument(help="The new text; `-` reads it from standard input.", metavar="TEXT"),
    ] = None,
    metadata: Annotated[
        str | None, typer.Option(help="New metadata, as a JSON object.", metavar="JSON")
    ] = None,
    importance: Annotated[
        float | None, typer.Option(help="A new importance, from 0 to 1.", metavar="NUMBER")
    ] = None,
    mark: Annotated[
        list[str] | None, typer.Option(help="The new marks; may be repeated.", metavar="LABEL")
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(help="Change it only if it is still at this version.", metavar="NUMBER"),
    ] = None,
) -> None:
    """Change a memory. Its old version stays in its history."""
    from .views import memory_fields

    new = whole([text]) if text == STDIN else text
    if all(each is None for each in (new, metadata, importance, mark)):
        raise typer.BadParameter("name what to change: a text, or one of the options")
    with work.memory() as memory:
        changed = memory.update(
            memory_id, new, metadata=object_in("--metadata", metadata), importance=importance,
            marks=mark, version=version,
        )  # fmt: skip
    work.screen.show(changed.to_dict(), memory_fields(changed))


@on(app, name="delete")
def delete(
    work: Work,
    ids: Annotated[
        list[str] | None, typer.Argument(help="The ids of memories.", metavar="ID")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(help="Delete this conversation, with all that belongs to it.", metavar="NAME"),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Erase all of the user.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete memories, with everything derived from them."""
    if sum((bool(ids), session is not None, everything)) != 1:
        raise typer.BadParameter("name ids, or --session, or --everything")
    user = work.user()
    with work.memory() as memory:
        if everything:
            confirm(f"Erase everything of {user!r} in {memory.address}?", yes=yes)
            erased = memory.delete_user(user)
            done: Any = erased
            deleted = erased.deleted
        elif session is not None:
            confirm(f"Delete the conversation {session!r} of {user!r}?", yes=yes)
            done = deleted = memory.delete_session(session)
        else:
            number = f"{len(ids or ())} memories" if len(ids or ()) != 1 else "1 memory"
            confirm(f"Delete {number} of {user!r}, with what was derived?", yes=yes)
            done = deleted = memory.delete(ids or ())
    said = f"deleted: {len(deleted.raw)} messages, {len(deleted.derived)} derived"
    work.screen.show(done.to_dict(), said)
    if ids and not deleted:
        raise NothingFound("no such memory")


@on(app, past, name="history")
def history(work: Work, memory_id: Id) -> None:
    """Show every version of a memory, oldest first."""
    from .views import versions_grid

    with work.memory() as memory:
        versions = memory.history(memory_id)
    if not versions:
        raise NothingFound(f"no memory {memory_id!r}")
    work.screen.show(versions.to_dict(), versions_grid(versions))
