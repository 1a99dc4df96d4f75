"""The verbs that move a memory, back it up and examine it.

What they stand on is imported when it is used: it takes long, and most programs never do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import NotOffered
from ..store.space import SpaceStore
from .base import Opening
from .places import at_home, file_to_read, file_to_write

if TYPE_CHECKING:
    from ..care import BackupReport, Examination
    from ..moving import ExportReport, ImportReport, Progress


class Caring(Opening):
    """The part of the door that moves a memory and keeps it safe."""

    async def export(
        self,
        target: str | PathLike[str],
        *,
        users: str | Sequence[str] | None = None,
        vectors: bool = False,
        progress: Progress | None = None,
    ) -> ExportReport:
        """Write everything that is kept of users to a file, without loss; ``import_`` reads it.

        Args:
            target: The file: JSON Lines, compressed if the name ends in ``.gz``.
            users: The users to export; all by default.
            vectors: Also export embeddings. Without them they are computed again when needed.
            progress: Called with a ``Moved`` after each page.
        """
        from ..moving import export_memories

        await self._opened()
        file = file_to_write(target)
        await self._recalls.close()
        named = [users] if isinstance(users, str) else users
        return await export_memories(
            self._store, file, users=named, vectors=vectors, progress=progress
        )

    async def import_(
        self,
        source: str | PathLike[str],
        *,
        kind: str | None = None,
        user: str | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Read an export of ``export``, or what another program remembers.

        An import that was interrupted is completed by repeating it: nothing is there twice.

        Args:
            source: The file, folder or address to read.
            kind: The program that wrote it, such as ``"mem0"`` or ``"chatgpt"``; an export of this
                package by default. ``memoryspace.moving.importers()`` lists them.
            user: Of an export, the only user that may be in it; of another program, whose memories
                they become.
            progress: Called with a ``Moved`` after each part.

        Raises:
            ImportRefused: The file is damaged, is of another kind, or holds what it must not.
        """
        from ..moving import import_foreign, import_memories

        service = await self._opened()
        if kind is not None:
            place = at_home(source)
            return await import_foreign(service, kind, place, user=user, progress=progress)
        allowed, file = None if user is None else [user], file_to_read(source)
        report = await import_memories(self._store, file, allowed=allowed, progress=progress)
        for each in report.pending:
            await service.settled(each)
        return report

    async def backup(
        self, target: str | PathLike[str], *, progress: Callable[..., None] | None = None
    ) -> BackupReport:
        """Back up a memory in a folder or in a SQLite file, while it is used.

        A second backup to the same folder adds what is new. ``memoryspace.care.restore_backup``
        restores one, also to an earlier moment; whoever was erased since stays erased.

        Raises:
            NotOffered: The memory is elsewhere; use the database's own tools, or ``export``.
        """
        from ..care import back_up

        await self._opened()
        if not isinstance(self._store, SpaceStore) and getattr(self._store, "file", None) is None:
            raise NotOffered(
                f"backup() is for a folder or a SQLite file; this memory is in {self._address}. "
                "Use the tools of its server, or export()"
            )
        return await back_up(self._store, Path(at_home(target)), progress=progress)

    async def doctor(self, *, repair: bool = False) -> Examination:
        """Examine everything that is stored, and say what to do about what is wrong.

        Args:
            repair: Repair what can be repaired safely first.
        """
        from ..care import examine
        from ..care import repair as mend

        service = await self._opened()
        embedder = service.settings.embedder
        if repair:
            return (await mend(self._store, embedder=embedder)).after
        return await examine(self._store, embedder=embedder)
