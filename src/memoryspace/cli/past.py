"""Commands for the past of a memory in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .asking import confirm
from .command import on
from .groups import app
from .moments import moment_of
from .options import Yes
from .work import Work

_MOMENT = "A time such as 2026-11-01T12:00, or the number that `snapshot` has shown."


@on(app, name="snapshot")
def snapshot(work: Work) -> None:
    """Show the number of this moment, to go back to later."""
    with work.memory() as memory:
        moment = memory.snapshot()
    work.screen.show(moment.to_dict(), str(moment.lsn))


@on(app, name="diff")
def diff(
    work: Work,
    before: Annotated[str, typer.Argument(help=_MOMENT, metavar="BEFORE")],
    after: Annotated[
        str | None, typer.Argument(help="The later moment; now by default.", metavar="AFTER")
    ] = None,
) -> None:
    """Show what changed between two moments."""
    from .views import diff_grid

    with work.memory() as memory:
        changes = memory.diff(moment_of(before), None if after is None else moment_of(after))
    work.screen.show(changes.to_dict(), diff_grid(changes))
    if not changes:
        work.screen.note("nothing changed")


@on(app, name="rewind")
def rewind(
    work: Work,
    moment: Annotated[str, typer.Argument(help=_MOMENT, metavar="MOMENT")],
    yes: Yes = False,
) -> None:
    """Make the memory what it was at a moment.

    `diff` shows beforehand what would be lost. The number that is shown is that of the moment
    before: `rewind` to it goes forward again.
    """
    with work.memory() as memory:
        lost = memory.diff(moment_of(moment))
        confirm(f"Undo {len(lost)} changes of all users since {moment}?", yes=yes)
        now = memory.restore(moment_of(moment))
    work.screen.show(now.to_dict(), str(now.lsn))


@on(app, name="fork")
def fork(
    work: Work,
    folder: Annotated[Path, typer.Argument(help="A new folder.", metavar="FOLDER")],
    moment: Annotated[
        str | None, typer.Option("--at", help=_MOMENT + " Now by default.", metavar="MOMENT")
    ] = None,
) -> None:
    """Copy the memory, as it is or was, into a new folder."""
    with work.memory() as memory:
        made = memory.fork(folder, None if moment is None else moment_of(moment))
    work.screen.show({"folder": str(made)}, str(made))
