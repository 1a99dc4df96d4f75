"""``JSONSession``: states in one JSON file per session."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ..files import safe_name, write_atomic
from ..loops import finish
from .base import SessionBase


class JSONSession(SessionBase):
    """Keeps states in ``save_dir``, as ``user@session.json`` or ``session.json``.

    A file is replaced whole or not at all, whatever happens while saving. Ids that could leave the
    folder, or be taken for others, are written safely and told apart by a hash.
    """

    def __init__(self, save_dir: str | os.PathLike[str] = "./") -> None:
        self.save_dir = Path(save_dir).absolute()

    def path_of(self, session_id: str, user_id: str = "") -> Path:
        """Return the file of a session."""
        parts = (user_id, session_id) if user_id else (session_id,)
        return self.save_dir / f"{safe_name(*parts)}.json"

    async def _write(self, session_id: str, user_id: str, text: str) -> None:
        path = self.path_of(session_id, user_id)
        self.save_dir.mkdir(parents=True, exist_ok=True)
        # To its end, even if cancelled: or it could still overwrite what is saved next.
        await finish(asyncio.to_thread(write_atomic, path, text.encode()))

    async def _read(self, session_id: str, user_id: str) -> bytes | None:
        path = self.path_of(session_id, user_id)
        try:
            return await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError:
            return None
