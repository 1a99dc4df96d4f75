"""Commands that keep memories safe: backup, restore, and a doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .asking import confirm
from .command import on
from .exits import Code
from .groups import app
from .moments import moment_of
from .options import Yes
from .progress import progress
from .work import Work


@on(app, name="backup")
def backup(
    work: Work,
    target: Annotated[
        Path, typer.Argument(help="A folder of backups: new, or with earlier ones.", metavar="DIR")
    ],
    full: Annotated[
        bool, typer.Option("--full", help="Copy everything, even if what is new would do.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option(
            help="How many full backups to keep, with what follows each.", metavar="NUMBER"
        ),
    ] = None,
) -> None:
    """Back up a folder or a SQLite file, while it can be used."""
    from ..care import back_up
    from .views import fields_of

    with work.memory() as memory, progress(work.screen) as tell:
        report = work.wait(
            memory,
            lambda service: back_up(
                service.store, target.expanduser(), full=full, keep=keep, progress=tell
            ),
        )
    work.screen.show(report.to_dict(), fields_of(report.to_dict()))


@on(app, name="restore")
def restore(
    work: Work,
    source: Annotated[Path, typer.Argument(help="A folder of backups.", metavar="BACKUPS")],
    target: Annotated[
        Path, typer.Argument(help="A new folder, or a new SQLite file.", metavar="NEW")
    ],
    moment: Annotated[
        str | None,
        typer.Option(
            "--at", help="The moment to restore; the newest by default.", metavar="MOMENT"
        ),
    ] = None,
    erase: Annotated[
        list[str] | None,
        typer.Option(help="A user to erase from the copy; may be repeated.", metavar="NAME"),
    ] = None,
    keep_erased: Annotated[
        bool, typer.Option("--keep-erased", help="Bring back what was erased since.")
    ] = False,
) -> None:
    """Make a new folder or file from a backup.

    What was erased since the backup stays erased.
    """
    from ..care import Lsn, restore_backup
    from ..service.reading.filters import moment as time_of
    from .views import fields_of

    named = None if moment is None else moment_of(moment)
    at = Lsn(named) if isinstance(named, int) else None if named is None else time_of("--at", named)
    with progress(work.screen) as tell:
        report = restore_backup(
            source.expanduser(), target.expanduser(), at=at, erased=erase or (),
            keep_erased=keep_erased, progress=tell,
        )  # fmt: skip
    work.screen.show(report.to_dict(), fields_of(report.to_dict()))


@on(app, name="doctor")
def doctor(
    work: Work,
    repair: Annotated[
        bool, typer.Option("--repair", help="Do what can be done safely about what is wrong.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Check everything that is stored, and say what to do."""
    from ..care import examine
    from ..care import repair as mend
    from ..loops import wait_for
    from .views import examination_grid

    place, embedder = work.place(), work.settings().settings.service_settings().embedder
    with progress(work.screen) as tell:
        found = wait_for(examine(place, embedder=embedder, progress=tell))
    if repair and found.remedies:
        if not work.screen.as_json:
            work.screen.show(None, examination_grid(found))
        confirm(f"Repair {found.place}: {', '.join(sorted(found.remedies))}?", yes=yes)
        with progress(work.screen) as tell:
            repaired = wait_for(mend(place, embedder=embedder, progress=tell))
        for each in repaired.done:
            work.screen.note(each)
        found = repaired.after
        work.screen.show(repaired.to_dict(), examination_grid(found))
    else:
        work.screen.show(found.to_dict(), examination_grid(found))
    if not found.is_healthy:
        raise typer.Exit(Code.NOTHING)
