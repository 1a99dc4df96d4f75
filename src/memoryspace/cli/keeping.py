"""Commands that look after a memory as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import on
from .groups import app, past
from .options import Cursor, Limit
from .screen import Grid
from .work import Work


@on(app, past, name="users")
def users(
    work: Work,
    limit: Limit = 100,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all pages; as JSON, one line for each user.")
    ] = False,
    cursor: Cursor = None,
) -> None:
    """Show the users who have memories."""
    with work.memory() as memory:
        while True:
            page = memory.users(cursor=cursor, limit=limit)
            grid = Grid(("user",), [(each,) for each in page.users])
            if not everything:
                work.screen.show(page.to_dict(), grid)
                break
            for each in page.users if work.screen.as_json else ():
                work.screen.stream({"user": each}, "")
            if not work.screen.as_json:
                work.screen.show(None, grid)
            cursor = page.cursor
            if cursor is None:
                return
    if page.cursor is not None:
        work.screen.note("there are more; pass --all, or a larger --limit")


@on(app, past, name="stats")
def stats(work: Work) -> None:
    """Show what the memory stands on and how much it holds."""
    from .views import stats_fields

    with work.memory() as memory:
        found = memory.stats()
    work.screen.show(found.to_dict(), stats_fields(found))


@on(app, name="gc")
def gc(
    work: Work,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only show what would be freed, and why.")
    ] = False,
) -> None:
    """Collect garbage now."""
    from .views import garbage_grid

    with work.memory() as memory:
        done = memory.gc(explain=explain)
    if explain:
        work.screen.show(done.to_dict(), garbage_grid(done))
        work.screen.note(f"{len(done.garbage)} objects would be freed")
        return
    reasons = ", ".join(f"{number} {reason}" for reason, number in done.reasons.items())
    said = f"freed {done.freed} objects, {done.freed_bytes} bytes, in {done.duration:.3f} s"
    work.screen.show(done.to_dict(), said + (f" ({reasons})" if reasons else ""))
