"""Commands for derived facts that wait for approval."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from .command import on
from .exits import NothingFound
from .groups import review
from .options import Cursor, Limit
from .reviewing import Ids
from .screen import Grid
from .work import Work

if TYPE_CHECKING:
    from ..service.stored import StoredMemoryService
    from ..service.values.review import Decided


@on(review, name="list")
def list_(
    work: Work,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """Show the derived facts that wait for approval, oldest first."""
    from .views import proposals_grid

    user = work.user()
    with work.memory() as memory:
        page = work.wait(memory, lambda service: service.waiting(user, cursor=cursor, limit=limit))
    work.screen.show(page.to_dict(), proposals_grid(page))
    if page.cursor is not None:
        work.screen.note("there are more; pass a larger --limit, or --cursor")


@on(review, name="approve")
def approve(work: Work, ids: Ids) -> None:
    """Approve facts that wait: they hold from now on."""
    _decide(work, lambda service: service.approve(work.user(), ids))


@on(review, name="reject")
def reject(work: Work, ids: Ids) -> None:
    """Reject facts that wait, for good."""
    _decide(work, lambda service: service.reject(work.user(), ids))


@on(review, name="undo")
def undo(work: Work, ids: Ids) -> None:
    """Undo the last decision about facts: they wait again."""
    _decide(work, lambda service: service.undo(work.user(), ids))


def _decide(
    work: Work, decision: Callable[[StoredMemoryService], Coroutine[Any, Any, Decided]]
) -> None:
    with work.memory() as memory:
        decided = work.wait(memory, decision)
    rows = [(what, each) for what, ids in decided.to_dict().items() for each in ids]
    work.screen.show(decided.to_dict(), Grid(("", "id"), rows))
    if not decided:
        raise NothingFound("nothing was decided by this call")
