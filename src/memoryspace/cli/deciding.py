"""Commands for derived facts that wait for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .command import on
from .exits import NothingFound
from .groups import review
from .options import Cursor, Limit
from .reviewing import Ids
from .screen import Grid
from .work import Work

if TYPE_CHECKING:
    from ..service.values.review import Decided


@on(review, name="list")
def list_(work: Work, limit: Limit = 50, cursor: Cursor = None) -> None:
    """Show the derived facts that wait for approval, oldest first."""
    from .views import proposals_grid

    with work.memory() as memory:
        page = memory.review.waiting(cursor=cursor, limit=limit)
    work.screen.show(page.to_dict(), proposals_grid(page))
    if page.cursor is not None:
        work.screen.note("there are more; pass a larger --limit, or --cursor")


@on(review, name="approve")
def approve(work: Work, ids: Ids) -> None:
    """Approve facts that wait: they hold from now on."""
    with work.memory() as memory:
        _show(work, memory.review.approve(ids))


@on(review, name="reject")
def reject(work: Work, ids: Ids) -> None:
    """Reject facts that wait, for good."""
    with work.memory() as memory:
        _show(work, memory.review.reject(ids))


@on(review, name="undo")
def undo(work: Work, ids: Ids) -> None:
    """Undo the last decision about facts: they wait again."""
    with work.memory() as memory:
        _show(work, memory.review.undo(ids))


def _show(work: Work, decided: Decided) -> None:
    rows = [(what, each) for what, ids in decided.to_dict().items() for each in ids]
    work.screen.show(decided.to_dict(), Grid(("", "id"), rows))
    if not decided:
        raise NothingFound("nothing was decided by this call")
