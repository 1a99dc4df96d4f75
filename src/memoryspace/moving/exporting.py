"""``export_memories``: everything a store keeps of its users, as JSON Lines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO

from ..errors import InvalidInput
from ..store import KeepsVectors, Store
from .arrivals import registered_kinds
from .leaving import Leaving, total_records, users_of
from .lines import FORMAT, Header
from .reports import ExportReport, Moved, Progress
from .target import LineWriter, written


async def export_memories(
    store: Store,
    target: Path | BinaryIO,
    *,
    users: Sequence[str] | None = None,
    vectors: bool = False,
    progress: Progress | None = None,
) -> ExportReport:
    """Write everything that a store keeps of its users to a file, without loss.

    That is every record: messages, derived memories and what they were derived from, old versions,
    marks, times, pending jobs, working memory and its summaries. ``import_memories`` reads it into
    any store.

    A file appears under its name only when it is complete; an interrupted export leaves the old
    one. What is written to the store during the export may be missing from it.

    Args:
        store: Where to read.
        target: A path, compressed if it ends in ``.gz``; or a binary file, which stays open.
        users: The users to export; all by default.
        vectors: Also export the embeddings. Without them they are computed again when needed.
        progress: Called with a ``Moved`` after each page.

    Raises:
        InvalidInput: A user id is reserved, or a record holds what is not plain data.
        OSError: The file cannot be written.

    Example::

        report = await export_memories(store, Path("everything.jsonl.gz"))
    """
    if vectors and not isinstance(store, KeepsVectors):
        raise InvalidInput(
            f"a {type(store).__name__} keeps no vectors; export without vectors=True"
        )
    if isinstance(target, str):
        target = Path(target)
    leaving = Leaving(store, vectors=vectors)
    total = None if progress is None else await total_records(store, users)
    header = Header(FORMAT, _made_by(), store.clock(), await registered_kinds(store))
    with written(target) as file:
        writer = LineWriter(file, header)
        done = 0
        async for user in users_of(store, users):
            writer.begin(user)
            async for page in leaving.pages(user):
                await asyncio.to_thread(writer.write, page)
                done += len(page)
                if progress is not None:
                    progress(Moved("exporting", done, total, "records", done))
            writer.done()
        checksum = writer.end()
    return ExportReport(writer.users, writer.records, writer.vectors, leaving.skipped, checksum)


def _made_by() -> str:
    try:
        return f"memoryspace {version('memoryspace')}"
    except PackageNotFoundError:  # run from its sources
        return "memoryspace"
