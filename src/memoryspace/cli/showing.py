"""Commands that show what the package does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .command import on
from .groups import app
from .work import Work


@on(app, name="demo")
def demo(
    work: Work,
    folder: Annotated[
        Path, typer.Argument(help="Where to keep the demo's memory.", metavar="FOLDER")
    ] = Path("memoryspace-demo"),
) -> None:
    """Fill a small memory and ask it a few questions."""
    from .demonstration import run

    run(work.screen, folder, work.settings().settings)


@app.command("tour")
def tour(
    folder: Annotated[
        str | None,
        typer.Option(
            help="Where to keep the tour's files (default: a temporary folder).", metavar="FOLDER"
        ),
    ] = None,
) -> None:
    """See working memory in action; needs no server and no key."""
    from ..tour import run

    run(folder)


@app.command(
    "bench",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True,
                      "allow_interspersed_args": False, "help_option_names": []},
)  # fmt: skip
def bench(ctx: typer.Context) -> None:
    """Run an experiment or a benchmark; `bench list` shows them."""
    from ..bench.command import main

    main(ctx.args)  # each experiment parses its own flags
