"""``JSONSession``: one JSON file per session."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ..files import safe_name, write_atomic
from ..loops import finish
from .base import SessionBase


class JSONSession(SessionBase):
    """Stores states in ``save_dir``, as ``user@session.json`` or ``session.json``.

    Files are replaced atomically. Ids that are not safe file names are escaped and distinguished by
    a hash.

    Args:
        save_dir: The folder; created on the first save.

    Examples:
        >>> JSONSession("sessions").path_of("chat", user_id="ann").name
        'ann@chat.json'
    """

    def __init__(self, save_dir: str | os.PathLike[str] = "./") -> None:
        self.save_dir = Path(save_dir).absolute()

    def __repr__(self) -> str:
        return f"JSONSession({str(self.save_dir)!r})"

    def path_of(self, session_id: str, user_id: str = "") -> Path:
        """Return the path of a session's file."""
        parts = (user_id, session_id) if user_id else (session_id,)
        return self.save_dir / f"{safe_name(*parts)}.json"

    async def _write(self, session_id: str, user_id: str, text: str) -> None:
        path = self.path_of(session_id, user_id)
        self.save_dir.mkdir(parents=True, exist_ok=True)
        # Finish even if cancelled: a late write could overwrite the next save.
        await finish(asyncio.to_thread(write_atomic, path, text.encode()))

    async def _read(self, session_id: str, user_id: str) -> bytes | None:
        path = self.path_of(session_id, user_id)
        try:
            return await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError:
            return None
