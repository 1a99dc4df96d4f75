"""``InMemoryMemory``: working memory in RAM. Its state holds all of its content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..collector import collector_at_rest
from ..message import Msg, thaw
from ..message.sharing import FrozenMsg, freeze_own
from ..record import EVERYTHING, MESSAGE, Record, Scope, Where, as_marks
from ..store import MemoryStore
from .arguments import as_messages, checked_summary, record_of, with_fresh_ids
from .pages import COMPRESSED, WINDOW_MARKS, MemoryPages
from .session_views import SessionViews
from .stored import SUMMARY_PLACE, StoredMemory

DEFAULT_USER = "default_user"
DEFAULT_SESSION = "default_session"

_MESSAGES = Where(kind=MESSAGE)
_LEFT = frozenset({COMPRESSED})
_SHOWN = Where(kind=MESSAGE, without=_LEFT)
_MARKED = {
    mark: Where(kind=MESSAGE, marks=frozenset({mark}), without=_LEFT) for mark in WINDOW_MARKS
}


class InMemoryMemory(StoredMemory):
    """Working memory in this process.

    Messages are copied in and out: changing a message that was returned changes neither the stored
    one nor what other readers see.

    Args:
        store: A store to share between memories; a new one by default.
        user_id: The user the messages belong to.
        session_id: The session of the user.

    Example::

        memory = InMemoryMemory()
        await memory.add(Msg("Alice", "Plan a garden.", "user"))
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
        self._views = SessionViews(self._ram, self._scope)

    @property
    def content(self) -> list[tuple[Msg, list[str]]]:
        """A copy of every message with its marks. Setting it replaces all messages."""
        return [(thaw(msg), marks) for msg, marks in self._content()]

    @content.setter
    def content(self, content: Iterable[Msg | tuple[Msg, list[str]]]) -> None:
        pairs = [(item, []) if isinstance(item, Msg) else item for item in content]
        self._replace(self._checked(pairs), self._stored_summary())

    def state_dict(self) -> dict[str, Any]:
        """Return the summary and every message with its marks, as plain data."""
        with collector_at_rest():
            content = [[msg.to_dict(), marks] for msg, marks in self._content()]
        summary = self._stored_summary()
        return {**super().state_dict(), "_compressed_summary": summary, "content": content}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Replace everything by a state. States without marks, of older versions, load too.

        Args:
            state_dict: A state from ``state_dict()``.
            strict: Whether a missing ``content`` is an error; otherwise the messages stay.

        Raises:
            KeyError: ``content`` is missing and ``strict`` is true.
        """
        if "content" not in state_dict and strict:
            raise KeyError("the state of an InMemoryMemory has no 'content'")
        summary = checked_summary(state_dict.get("_compressed_summary", ""))
        with collector_at_rest():
            pairs: Iterable[tuple[Msg, list[str]]] = self._content()
            if "content" in state_dict:
                pairs = map(_pair, state_dict["content"])
            records = self._checked(pairs)
            super().load_state_dict({**state_dict, "_compressed_summary": summary}, strict)
            self._loaded_summary = ""
            self._replace(records, summary)

    async def read_pages(self) -> MemoryPages:
        """Return messages, marks and summary, without copying them."""
        summary = next(iter(self._ram.select_now(self._scope, SUMMARY_PLACE)), None)
        marked = {
            mark: frozenset(msg.id for msg in self._views.messages(where))
            for mark, where in _MARKED.items()
        }
        messages = self._views.messages(_SHOWN)
        if summary is None:
            return MemoryPages(messages, marked, "", None)
        return MemoryPages(messages, marked, str(summary.value), summary.seq)

    async def _messages(self, where: Where) -> list[Msg]:
        return self._views.messages(where)

    async def _add_all(self, messages: list[Msg], marks: frozenset[str]) -> None:
        self._ram.append_all_now(self._scope, self._records(messages, marks))

    def _content(self) -> Iterator[tuple[FrozenMsg, list[str]]]:
        for record in self._ram.select_now(self._scope, _MESSAGES):
            if isinstance(record.value, FrozenMsg):
                yield record.value, sorted(record.marks) if record.marks else []

    def _stored_summary(self) -> str:
        stored = self._ram.select_now(self._scope, SUMMARY_PLACE)
        return str(stored[0].value) if stored else ""

    def _checked(self, pairs: Iterable[tuple[Msg, list[str]]]) -> list[Record]:
        messages, marks = [], []
        for msg, names in pairs:
            messages.append(msg)
            marks.append(as_marks(names))
        messages = with_fresh_ids(as_messages(messages), set())
        now = self._ram.clock()
        return [record_of(msg, names, now) for msg, names in zip(messages, marks, strict=True)]

    def _replace(self, records: list[Record], summary: str) -> None:
        self._ram.replace_now(self._scope, EVERYTHING, records + self._summary_records(summary))


def _pair(item: Any) -> tuple[Msg, list[str]]:
    """Return a frozen message and its marks from an entry of a state."""
    if isinstance(item, dict):
        item = [item, []]
    if (type(item) is not list and type(item) is not tuple) or len(item) != 2:
        raise ValueError("content must hold [message, marks] pairs")
    return freeze_own(Msg.from_dict(item[0])), item[1]
