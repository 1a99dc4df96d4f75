"""Commands that move memories in and out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ..errors import InvalidInput
from .command import on
from .exits import Code
from .groups import app
from .progress import Tell, progress
from .screen import Grid
from .texts import STDIN
from .work import Work

if TYPE_CHECKING:
    from ..moving import ImportReport, Moved, Progress


@on(app, name="export")
def export(
    work: Work,
    target: Annotated[
        str,
        typer.Argument(
            help="A new file, compressed if it ends in .gz; `-` for standard output.",
            metavar="FILE",
        ),
    ],
    everyone: Annotated[
        bool, typer.Option("--all", help="Export all users, not only the one.")
    ] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Export the embeddings too.")] = False,
) -> None:
    """Write everything that a user has to a file, without loss."""
    from ..moving import export_memories
    from .views import fields_of

    to: Path | BinaryIO = sys.stdout.buffer if target == STDIN else Path(target).expanduser()
    users = None if everyone else [work.user()]
    with work.memory() as memory, progress(work.screen) as tell:
        report = work.wait(
            memory,
            lambda service: export_memories(
                service.store, to, users=users, vectors=vectors, progress=_telling(tell)
            ),
        )
        others = [] if everyone else memory.users(limit=2).users
    if target != STDIN:
        work.screen.show(report.to_dict(), fields_of(report.to_dict()))
    if any(each != work.user() for each in others):
        work.screen.note(f"only {work.user()!r} was exported; --all exports the others too")


@on(app, name="import")
def import_(
    work: Work,
    source: Annotated[
        str | None,
        typer.Argument(
            help="A file that `export` wrote, or what --from reads; `-` for standard input.",
            metavar="SOURCE",
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--from", help="The program that wrote it; see --formats.", metavar="PROGRAM"),
    ] = None,
    formats: Annotated[
        bool, typer.Option("--formats", help="Show the programs whose memories can be read.")
    ] = False,
    rename: Annotated[
        list[str] | None,
        typer.Option(help="A new name for a user of the file; may be repeated.", metavar="OLD=NEW"),
    ] = None,
    until_damage: Annotated[
        bool,
        typer.Option("--until-damage", help="Import what is before the damage of a damaged file."),
    ] = False,
) -> None:
    """Add an export, or what another program remembers.

    What is there already stays as it is: an interrupted import is completed by repeating it.
    """
    if formats:
        _show_formats(work)
        return
    if source is None:
        raise typer.BadParameter("name what to import, or pass --formats")
    with progress(work.screen) as tell:
        if program is None:
            report = _import_own(work, source, rename or [], tell, until_damage=until_damage)
        else:
            report = _import_foreign(work, program, source, tell)
    _show_report(work, report)


@on(app, name="migrate")
def migrate(
    work: Work,
    target: Annotated[
        str, typer.Argument(help="The address to copy everything to.", metavar="PLACE")
    ],
) -> None:
    """Copy everything of all users to another address, of any kind.

    What is there already stays as it is: an interrupted migration is completed by repeating it.
    """
    from ..moving import migrate as copy
    from ..store import open_store

    async def run(service: Any, tell: Tell) -> ImportReport:
        async with open_store(target) as store:
            return await copy(service.store, store, progress=_telling(tell))

    with work.memory() as memory, progress(work.screen) as tell:
        report = work.wait(memory, lambda service: run(service, tell))
    _show_report(work, report)


def _import_own(
    work: Work, source: str, rename: list[str], tell: Tell, *, until_damage: bool
) -> ImportReport:
    from ..moving import import_memories

    file: Path | BinaryIO = sys.stdin.buffer if source == STDIN else Path(source).expanduser()
    names = dict(map(_renamed, rename))
    with work.memory(makes=True) as memory:
        report = work.wait(
            memory,
            lambda service: import_memories(
                service.store, file, users=names, until_damage=until_damage,
                progress=_telling(tell),
            ),
        )  # fmt: skip
        for user in report.pending:
            memory.settle(user=user)
    return report


def _import_foreign(work: Work, program: str, source: str, tell: Tell) -> ImportReport:
    from ..moving import import_foreign, importers

    importer = importers().get(program)
    user = work.named_user
    if user is None and importer is not None and not importer.names_users:
        user = work.user()
    with work.memory(makes=True) as memory:
        return work.wait(
            memory,
            lambda service: import_foreign(
                service, program, source, user=user, progress=_telling(tell)
            ),
        )


def _show_formats(work: Work) -> None:
    from ..moving import importers

    rows = [(each.name, each.about) for each in importers().values()]
    data = [{"name": name, "about": about} for name, about in rows]
    work.screen.show({"formats": data}, Grid(("program", "reads"), rows, wide=("reads",)))


def _show_report(work: Work, report: ImportReport) -> None:
    from .views import fields_of

    work.screen.show(report.to_dict(), fields_of(report.to_dict()))
    if report.refused or report.damage is not None:
        raise typer.Exit(Code.REFUSED)


def _renamed(text: str) -> tuple[str, str]:
    old, sign, new = text.partition("=")
    if not (old and sign and new):
        raise InvalidInput(f"--rename takes OLD=NEW, got {text!r}")
    return old, new


def _telling(tell: Tell) -> Progress:
    def moved(now: Moved) -> None:
        tell(now.step, now.done, now.total)

    return moved
