"""``examine``: check everything that is stored, and say in plain words what to do.

An examination of a folder reads its files first, which works in any state and beside a process
that uses them. Only if nothing speaks against it, the folder is then opened and its contents are
read. Nothing is repaired; opening a folder drops, as ever, a write that a crash cut short.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from typing import Literal

from ..embedding import Embedder, best_embedder
from ..errors import MemorySpaceError
from ..kernel import FolderInUse
from ..record import Scope, Where
from ..store import Store, open_store
from ..version import VERSION
from .findings import Examination, Finding, ok
from .folder_checks import examine_folder, folder_of, owner_of
from .manifest import Progress
from .server_checks import examine_server
from .store_checks import examine_jobs, examine_records, examine_vectors

_PACKAGES = (
    "msgspec", "numpy", "lmdb", "sqlalchemy", "aiosqlite", "asyncpg", "asyncmy",
    "redis",
)  # fmt: skip

EmbedderChoice = Embedder | Literal["best"] | None


async def examine(
    place: Store | str | PathLike[str],
    *,
    embedder: EmbedderChoice = "best",
    progress: Progress | None = None,
) -> Examination:
    """Examine a store, or the data at an address.

    Args:
        place: A store, which may be in use; or a folder or an address (see ``open_store``), which
            is opened and closed.
        embedder: The embedder that the kept vectors must belong to; by default the best installed.
        progress: Called with what is being done, how much of it is done, and of how much, which is
            0 if nobody knows.

    Returns:
        The findings. Whatever is wrong is a finding, not an error.

    Raises:
        InvalidInput: The address is not one.

    Example::

        examination = await examine("memory")
        print(examination)
        assert examination.is_healthy
    """
    tell: Progress = (lambda *_: None) if progress is None else progress
    chosen = best_embedder() if embedder == "best" else embedder
    store = place if isinstance(place, Store) else open_store(place)
    is_open = store is place
    findings = [_packages(), _embedder(chosen)]
    try:
        findings += [each async for each in _examine(store, chosen, tell, is_open=is_open)]
    finally:
        if store is not place:
            await store.close()
    return Examination(_name_of(store), tuple(findings))


def _name_of(store: Store) -> str:
    folder = folder_of(store)
    return repr(store) if folder is None else str(folder)


async def _examine(
    store: Store, embedder: Embedder | None, tell: Progress, *, is_open: bool
) -> AsyncIterator[Finding]:
    folder = folder_of(store)
    if folder is not None:
        if not await asyncio.to_thread(folder.is_dir):
            yield Finding("warning", "folder", f"there is none at {folder}", "check the address")
            return
        tell("files", 0, 1)
        found = await asyncio.to_thread(lambda: list(examine_folder(folder)))
        tell("files", 1, 1)
        if not is_open:
            found.append(await asyncio.to_thread(owner_of, folder))
        for each in found:
            yield each
        if not is_open and not _can_be_opened(found):
            return
    async for each in _examine_contents(store, embedder, tell):
        yield each


def _can_be_opened(found: list[Finding]) -> bool:
    """Return whether a folder can be opened, so that this changes nothing that is damaged."""
    return all(each.level == "ok" or each.check in _HARMLESS for each in found)


_HARMLESS = {"permissions", "disk", "saved index", "backups", "quarantine"}


async def _examine_contents(
    store: Store, embedder: Embedder | None, tell: Progress
) -> AsyncIterator[Finding]:
    try:
        await store.count(Scope("nobody"), Where(ids=frozenset()))
    except FolderInUse as error:
        yield Finding("warning", "owner", str(error))
        return
    except (MemorySpaceError, OSError) as error:
        yield Finding("problem", "store", f"it does not answer: {error}", "see the message")
        return
    yield ok("store", "it answers")
    for each in await examine_server(store):
        yield each
    parts = (
        examine_records(store, tell),
        examine_jobs(store),
        examine_vectors(store, embedder),
    )
    for part in parts:
        try:
            async for each in part:
                yield each
        except NotImplementedError as error:
            yield Finding("warning", "store", f"not everything was examined: {error}")
        except (MemorySpaceError, OSError) as error:
            yield Finding("problem", "store", f"it failed while it was examined: {error}")


def _packages() -> Finding:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    python = ".".join(map(str, sys.version_info[:3]))
    return ok("packages", f"memoryspace {VERSION}, Python {python}, {', '.join(found)}")


def _embedder(embedder: Embedder | None) -> Finding:
    if embedder is None:
        return Finding(
            "warning", "embedder", "there is none: memories are found by words alone",
            "pip install 'memoryspace[semantic]'",
        )  # fmt: skip
    return ok("embedder", f"{embedder.name}, {embedder.dimensions} dimensions")
