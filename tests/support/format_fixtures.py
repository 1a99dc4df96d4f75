"""What stands in the fixtures of the stored formats, and how to read it.

Each release has a folder in tests/fixtures/formats, written by tools/make_format_fixtures.py.
``expected.json`` says what that release read from the other files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryspace.context.archive import FileArchive
from memoryspace.kernel import MemoryManager, at
from memoryspace.memory import InMemoryMemory
from memoryspace.record import Scope
from memoryspace.service import ServiceSettings
from memoryspace.service.stored import StoredMemoryService
from memoryspace.session import JSONSession
from memoryspace.store import ErasureLedger, KeepsVectors

FORMATS = Path(__file__).parents[1] / "fixtures" / "formats"
QUESTION = "Where does Ann live?"
STORES = ("lmdb", "sqlite", "memory.sqlite")  # the cold tiers of a space, and a database
DOOMED = "eve"  # erased after the backup


class Lengths:
    """An embedder whose vectors tell how long a text is, and what its letters add up to."""

    name, dimensions, scripts = "fixture-lengths-1", 8, None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [np.cos((1.0 + np.arange(8)) * (len(each) + sum(map(ord, each)))) for each in texts]
        found = np.array(rows, np.float32).reshape(len(texts), 8)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


SETTINGS = ServiceSettings(embedder=Lengths())


def address_of(folder: Path, name: str) -> str:
    """Return the address of one of ``STORES``."""
    return f"sqlite:///{folder / name}" if name.endswith(".sqlite") else str(folder / name)


async def contents(address: str) -> dict[str, Any]:
    """Return what a store holds, and what a search of it finds."""
    async with StoredMemoryService(address, settings=SETTINGS, is_personal=True) as service:
        users = (await service.users()).users
        return {
            "users": sorted(users),
            "records": {user: await _records(service, user) for user in users},
            "found": [hit.memory.id for hit in await service.search("ann", QUESTION, top_k=3)],
            "versions": await _versions(service),
            "vectors": {user: await _vectors(service, user) for user in users},
        }


async def _records(service: StoredMemoryService, user: str) -> list[list[Any]]:
    found = await service.store.select(Scope(user))
    return [
        [each.id, each.session, each.kind, each.text, each.seq, sorted(each.marks), each.importance]
        for each in found
    ]


async def _versions(service: StoredMemoryService) -> dict[str, list[str]]:
    page = await service.page("ann")
    return {
        each.id: [old.text for old in await service.history("ann", each.id)]
        for each in page.memories
    }


async def _vectors(service: StoredMemoryService, user: str) -> dict[str, int]:
    store = service.store
    assert isinstance(store, KeepsVectors)
    return {name: kept.count for name, kept in (await store.vector_spaces(user)).items()}


def kernel_contents(folder: Path) -> dict[str, Any]:
    """Return what a memory space with an index and references holds, now and before."""
    with MemoryManager(1 << 20, folder=folder) as space:
        space.check()
        return {
            "now": {each.id: each.payload for each in space.objects()},
            "references": {each: space.references(each) for each in sorted(space.ids())},
            "found": [hit.object.id for hit in space.retrieve("peanuts")],
            "lsn": space.last_lsn,
            "past": _past(space),
        }


def _past(space: MemoryManager) -> list[str]:
    with at(space, lsn=1) as past:
        return sorted(past.ids())


async def session_contents(folder: Path) -> list[Any]:
    """Return the messages of a saved session."""
    memory = InMemoryMemory()
    await JSONSession(folder).load_session_state("talk", "ann", memory=memory)
    return [[each.name, each.content] for each in await memory.get_memory()]


def archive_contents(folder: Path) -> dict[str, Any]:
    """Return what an archive of a conversation holds."""
    archive = FileArchive(folder, user_id="ann", session_id="talk")
    archive.check()
    return {each.handle: archive.get(each.handle).data for each in archive.list()}


def ledger_contents(path: Path) -> list[list[Any]]:
    """Return the erasures of a ledger."""
    erasures = ErasureLedger(path).erasures()
    return [[each.what, each.at, each.done, each.user] for each in erasures]
