"""``InMemoryMemory``: working memory in RAM, with its whole content in its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..message import Msg, thaw
from ..record import EVERYTHING, MESSAGE, SUMMARY_ID, Record, Scope, Where, as_marks, text_of
from ..store import MemoryStore
from .base import checked_summary
from .resident import Resident
from .stored import StoredMemory

DEFAULT_USER = "default_user"
DEFAULT_SESSION = "default_session"


class InMemoryMemory(StoredMemory):
    """Working memory in this process.

    Messages are copied in, and what is handed out can be changed freely: it becomes the reader's
    own copy at the first change. Several memories may share one ``store``.
    """

    def __init__(
        self,
        *,
        store: MemoryStore | None = None,
        user_id: str = DEFAULT_USER,
        session_id: str = DEFAULT_SESSION,
    ) -> None:
        self._ram = MemoryStore() if store is None else store
        super().__init__(self._ram, Scope(user_id, session_id))
        self._resident = Resident(self._ram, self._scope)

    @property
    def content(self) -> list[tuple[Msg, list[str]]]:
        """A copy of every message, with its marks."""
        return [(thaw(msg), marks) for msg, marks in self._content()]

    def state_dict(self) -> dict[str, Any]:
        """Return the summary and every message with its marks, as plain data of its own."""
        return {
            "_compressed_summary": self._stored_summary(),
            "content": [[thaw(msg).to_dict(), marks] for msg, marks in self._content()],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Replace everything by a state; also by one from before messages had marks.

        Without ``content``, ``KeyError`` if ``strict``; nothing changes otherwise.
        """
        if "content" not in state_dict:
            if strict:
                raise KeyError("the state of an InMemoryMemory lacks content")
            return
        summary = checked_summary(state_dict.get("_compressed_summary", ""))
        messages = [self._record_from(item) for item in state_dict["content"]]
        self._ram.replace_now(self._scope, EVERYTHING, messages + self._summary_records(summary))
        self._compressed_summary, self._loaded_summary = summary, ""

    async def _messages(self, where: Where) -> list[Msg]:
        return self._resident.messages(where)

    def _content(self) -> list[tuple[Msg, list[str]]]:
        records = self._ram.select_now(self._scope, Where(kind=MESSAGE))
        return [
            (record.value, sorted(record.marks))
            for record in records
            if isinstance(record.value, Msg)
        ]

    def _stored_summary(self) -> str:
        stored = self._ram.select_now(self._scope, Where(ids=frozenset({SUMMARY_ID})))
        return str(stored[0].value) if stored else ""

    def _record_from(self, item: Any) -> Record:
        if isinstance(item, dict):
            item = [item, []]
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise ValueError(f"content must hold [message, marks] pairs, got {item!r}")
        msg = Msg.from_dict(item[0])
        now = self._store.clock()
        return Record(msg.id, msg, text_of(msg), as_marks(item[1]), created_at=now, pinned=True)
