"""Commands for messages that are held back."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import on
from .exits import NothingFound
from .groups import review
from .options import Session
from .screen import Grid
from .work import Work

Ids = Annotated[list[str], typer.Argument(help="The ids of memories.", metavar="ID")]


@on(review, name="quarantined")
def quarantined(work: Work) -> None:
    """Show the messages that are held back.

    They look like instructions to a model.
    """
    from .views import quarantined_grid

    with work.memory() as memory:
        held_back = memory.review.quarantined()
    work.screen.show(held_back.to_dict(), quarantined_grid(held_back))


@on(review, name="release")
def release(work: Work, ids: Ids, session: Session = None) -> None:
    """Let messages be found that were held back."""
    with work.memory() as memory:
        released = memory.review.release(ids, session=session)
    work.screen.show({"ids": released}, Grid(("id",), [(each,) for each in released]))
    if not released:
        raise NothingFound("none of them was held back")
