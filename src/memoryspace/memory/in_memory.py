"""``InMemoryMemory``: working memory in RAM, with its whole content in its state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..message import Msg, thaw
from ..record import EVERYTHING, MESSAGE, Record, Scope, Where, as_marks
from ..store import MemoryStore
from .arguments import as_messages, checked_summary, record_of, with_fresh_ids
from .pages import COMPRESSED, WINDOW_MARKS, PageTable
from .resident import Resident
from .stored import SUMMARY_PLACE, StoredMemory

DEFAULT_USER = "default_user"
DEFAULT_SESSION = "default_session"

_LEFT = frozenset({COMPRESSED})
_SHOWN = Where(kind=MESSAGE, without=_LEFT)
_MARKED = {
    mark: Where(kind=MESSAGE, marks=frozenset({mark}), without=_LEFT) for mark in WINDOW_MARKS
}


class InMemoryMemory(StoredMemory):
    """Working memory in this process.

    Messages are copied in. What is handed out may be changed: it never changes what is stored, nor
    what is read later. (Until it is changed, two readers may hold the same object; copy it if
    another one's change must not reach you.) Several memories may share one ``store``.
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
        """A copy of every message, with its marks. Setting it replaces them all."""
        return [(thaw(msg), marks) for msg, marks in self._content()]

    @content.setter
    def content(self, content: Iterable[Msg | tuple[Msg, list[str]]]) -> None:
        pairs = [(item, []) if isinstance(item, Msg) else item for item in content]
        self._replace(self._checked(pairs), self._stored_summary())

    def state_dict(self) -> dict[str, Any]:
        """Return the summary and every message with its marks, as plain data of its own."""
        return {
            **super().state_dict(),
            "_compressed_summary": self._stored_summary(),
            "content": [[thaw(msg).to_dict(), marks] for msg, marks in self._content()],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Replace everything by a state; also by one from before messages had marks.

        Without ``content``: ``KeyError`` if ``strict``, else the messages stay.
        """
        if "content" not in state_dict and strict:
            raise KeyError("the state of an InMemoryMemory lacks content")
        summary = checked_summary(state_dict.get("_compressed_summary", ""))
        pairs = self._content()
        if "content" in state_dict:
            pairs = [_pair(item) for item in state_dict["content"]]
        records = self._checked(pairs)
        super().load_state_dict({**state_dict, "_compressed_summary": summary}, strict)
        self._loaded_summary = ""
        self._replace(records, summary)

    async def read_pages(self) -> PageTable:
        """Return messages, marks and summary; nothing is copied that is only read."""
        summary = next(iter(self._ram.select_now(self._scope, SUMMARY_PLACE)), None)
        marked = {
            mark: frozenset(msg.id for msg in self._resident.messages(where))
            for mark, where in _MARKED.items()
        }
        messages = self._resident.messages(_SHOWN)
        if summary is None:
            return PageTable(messages, marked, "", None)
        return PageTable(messages, marked, str(summary.value), summary.seq)

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
        stored = self._ram.select_now(self._scope, SUMMARY_PLACE)
        return str(stored[0].value) if stored else ""

    def _checked(self, pairs: list[tuple[Msg, list[str]]]) -> list[Record]:
        messages = with_fresh_ids(as_messages([msg for msg, _ in pairs]), set())
        marks = [as_marks(marks) for _, marks in pairs]
        now = self._ram.clock()
        return [record_of(*each, now) for each in zip(messages, marks, strict=True)]

    def _replace(self, records: list[Record], summary: str) -> None:
        self._ram.replace_now(self._scope, EVERYTHING, records + self._summary_records(summary))


def _pair(item: Any) -> tuple[Msg, list[str]]:
    """Return a message and its marks from an entry of a state."""
    if isinstance(item, dict):
        item = [item, []]
    if not isinstance(item, list | tuple) or len(item) != 2:
        raise ValueError("content must hold [message, marks] pairs")
    return Msg.from_dict(item[0]), item[1]
