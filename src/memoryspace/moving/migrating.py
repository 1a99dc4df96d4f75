"""``migrate``: everything from one store into another."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidInput
from ..store import KeepsVectors, Store
from .arrivals import Arrivals, registered_kinds
from .leaving import Leaving, total_records, users_of
from .reports import ImportReport, Moved, Progress


async def migrate(
    source: Store,
    target: Store,
    *,
    users: Sequence[str] | None = None,
    vectors: bool = True,
    progress: Progress | None = None,
) -> ImportReport:
    """Copy everything that a store keeps of its users into another store, of any backend.

    Ids, times and order stay. What the target has already stays as it is there, so a migration that
    was interrupted is completed by repeating it, and a repetition copies what came since. Nothing
    is removed from the source.

    Args:
        source: Where to read.
        target: Where to write.
        users: The users to copy; all by default.
        vectors: Also copy the embeddings, if both stores keep any.
        progress: Called with a ``Moved`` after each page.

    Raises:
        InvalidInput: Both are the same store, or a user id is reserved.

    Example::

        async with open_store("./memories") as old, open_store("postgresql://…") as new:
            report = await migrate(old, new)
    """
    if source is target:
        raise InvalidInput("a store cannot be migrated into itself; pass two stores")
    both = isinstance(source, KeepsVectors) and isinstance(target, KeepsVectors)
    leaving, arrivals = Leaving(source, vectors=vectors and both), Arrivals(target)
    total = None if progress is None else await total_records(source, users)
    await arrivals.register(await registered_kinds(source))
    async for user in users_of(source, users):
        arrivals.meet(user)
        async for page in leaving.pages(user):
            await arrivals.take(page)
            if progress is not None:
                progress(Moved("importing", arrivals.records, total, "records", arrivals.records))
    return arrivals.report(skipped=leaving.skipped)
