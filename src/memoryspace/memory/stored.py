"""Working memory over any store: written once, the same on every shelf."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import InvalidInput
from ..message import Msg, new_id, thaw
from ..record import (
    MESSAGE,
    RESERVED_PREFIX,
    SUMMARY,
    SUMMARY_ID,
    Record,
    Scope,
    Where,
    as_marks,
    text_of,
)
from ..store import Store
from .base import MemoryBase, checked_summary, optional_mark, required_marks, summary_message

_MESSAGES = Where(kind=MESSAGE)
_SUMMARY = Where(ids=frozenset({SUMMARY_ID}))


class StoredMemory(MemoryBase):
    """The messages of one user's session on a store, and their summary beside them.

    The store is the truth: ``_compressed_summary`` is only the summary as last seen. One that is
    loaded with a state takes effect where the store has none.
    """

    def __init__(self, store: Store, scope: Scope) -> None:
        super().__init__()
        if scope.session is None:
            raise InvalidInput("working memory needs a session id")
        self._store = store
        self._scope = scope
        self._loaded_summary = ""

    @property
    def user_id(self) -> str:
        """Whose memory this is."""
        return self._scope.user

    @property
    def session_id(self) -> str:
        """Which of the user's sessions it is about."""
        assert self._scope.session is not None  # checked when made
        return self._scope.session

    async def add(
        self,
        memories: Msg | list[Msg] | None,
        marks: str | list[str] | None = None,
        *,
        allow_duplicates: bool | None = None,
        skip_duplicated: bool | None = None,
    ) -> None:
        """Append messages, with marks if given. ``None`` adds nothing.

        A message whose id is stored already is not added again; marks given with it are added to
        the stored one. ``allow_duplicates=True`` (or ``skip_duplicated=False``, its other name)
        keeps such a message once more, as a message of its own with a fresh id.
        """
        messages = as_messages(memories)
        names = as_marks(marks)
        if not messages:
            return
        if _wants_duplicates(allow_duplicates, skip_duplicated):
            await self._add_all(messages, names)
        else:
            await self._store.append(self._scope, self._records(messages, names))

    async def delete(
        self,
        msg_ids: str | Iterable[str] | int | Iterable[int] | None = None,
        *,
        index: int | Iterable[int] | None = None,
    ) -> int:
        """Remove messages by id and return how many there were; unknown ids are ignored.

        Whole numbers, or ``index``, are positions instead, as in AgentScope before 1.0.12; one
        that is out of range raises ``IndexError`` and nothing is removed.
        """
        ids, positions = _ids_or_positions(msg_ids, index)
        if positions:
            ids = await self._ids_at(positions)
        if not ids:
            return 0
        return len(await self._store.delete(self._scope, Where(kind=MESSAGE, ids=frozenset(ids))))

    async def delete_by_mark(self, mark: str | list[str]) -> int:
        """Remove the messages that carry any of the marks and return how many there were."""
        marks = required_marks(mark)
        if not marks:
            return 0
        return len(await self._store.delete(self._scope, Where(kind=MESSAGE, marks=marks)))

    async def size(self) -> int:
        """Return how many messages there are; the summary does not count."""
        return await self._store.count(self._scope, _MESSAGES)

    async def clear(self) -> None:
        """Remove all messages, and the summary of those that were left out before."""
        await self._store.delete(self._scope)
        self._compressed_summary = self._loaded_summary = ""

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
    ) -> list[Msg]:
        """Return messages in conversation order: with ``mark`` and without ``exclude_mark``.

        A summary that is not empty comes first, as a new user message, whatever the filters.
        """
        where = Where(
            kind=MESSAGE,
            marks=optional_mark("mark", mark),
            without=optional_mark("exclude_mark", exclude_mark),
        )
        messages = await self._messages(where)
        if not prepend_summary:
            return messages
        summary = await self._summary()
        return [summary_message(summary), *messages] if summary else messages

    async def update_messages_mark(
        self,
        new_mark: str | None,
        old_mark: str | None = None,
        msg_ids: Iterable[str] | None = None,
    ) -> int:
        """Add, remove or change a mark and return how many messages changed.

        ``new_mark`` alone is added, ``old_mark`` alone removed; both change one into the other.
        ``old_mark`` and ``msg_ids`` narrow the choice to messages that have it, or are among them.
        """
        new, old = optional_mark("new_mark", new_mark), optional_mark("old_mark", old_mark)
        ids = None if msg_ids is None else frozenset(_as_ids(msg_ids))
        if not new and not old:
            return 0
        where = Where(kind=MESSAGE, marks=old, ids=ids)
        return await self._store.mark(self._scope, where, add=new, remove=old - new)

    async def update_compressed_summary(self, summary: str) -> None:
        """Set the summary that ``get_memory`` puts first; an empty one removes it."""
        records = self._summary_records(checked_summary(summary))
        await self._store.replace(self._scope, _SUMMARY, records)
        self._compressed_summary, self._loaded_summary = summary, ""

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> None:
        """Load a state: its summary takes effect if the store has none."""
        if "_compressed_summary" in state_dict:
            checked_summary(state_dict["_compressed_summary"])
        super().load_state_dict(state_dict, strict)
        self._loaded_summary = self._compressed_summary

    async def close(self) -> None:
        """Give back what this memory opened; it opens it anew when used again."""
        await self._store.close()

    async def _messages(self, where: Where) -> list[Msg]:
        """Return messages of the reader's own: fresh from the wire, or else copied."""
        return [
            value if type(value) is Msg else thaw(value)
            for value in await self._store.values(self._scope, where)
            if isinstance(value, Msg)
        ]

    async def _summary(self) -> str:
        """Return the stored summary; where there is none, one that was loaded becomes it."""
        stored = await self._store.select(self._scope, _SUMMARY)
        if stored:
            self._compressed_summary, self._loaded_summary = str(stored[0].value), ""
        elif self._loaded_summary:  # kept until it is seen in the store: a host may undo this
            await self._store.append(self._scope, self._summary_records(self._loaded_summary))
            self._compressed_summary = self._loaded_summary
        else:
            self._compressed_summary = ""
        return self._compressed_summary

    def _summary_records(self, summary: str) -> list[Record]:
        if not summary:
            return []
        return [
            Record(
                SUMMARY_ID,
                summary,
                text=summary,
                kind=SUMMARY,
                created_at=self._store.clock(),
                pinned=True,
            )
        ]

    async def _ids_at(self, positions: list[int]) -> list[str]:
        records = await self._store.select(self._scope, _MESSAGES)
        wrong = [position for position in positions if not 0 <= position < len(records)]
        if wrong:
            raise IndexError(
                f"no message at {wrong}: there are {len(records)}; nothing was deleted"
            )
        return [records[position].id for position in positions]

    async def _add_all(self, messages: list[Msg], marks: frozenset[str]) -> None:
        """Add every message, under a fresh id where its own is taken."""
        ids = frozenset(msg.id for msg in messages)
        known = await self._store.select(self._scope, Where(ids=ids))
        messages = with_fresh_ids(messages, {record.id for record in known})
        while messages:
            added = set(await self._store.append(self._scope, self._records(messages, marks)))
            left = [msg for msg in messages if msg.id not in added]  # somebody else was first
            messages = with_fresh_ids(left, {msg.id for msg in left})

    def _records(self, messages: list[Msg], marks: frozenset[str]) -> list[Record]:
        now = self._store.clock()
        return [record_of(msg, marks, now) for msg in messages]


def record_of(msg: Msg, marks: frozenset[str], now: float) -> Record:
    """Return a message as a record.

    It is pinned: a collector may forget what a service keeps, never what an agent is doing now.
    """
    return Record(msg.id, msg, text_of(msg), marks, created_at=now, pinned=True)


def with_fresh_ids(messages: list[Msg], taken: set[str]) -> list[Msg]:
    """Return the messages, those whose id is taken or repeated as copies with a fresh one."""
    taken, free = set(taken), []
    for msg in messages:
        if msg.id in taken:
            msg = thaw(msg)
            msg.id = new_id()
        taken.add(msg.id)
        free.append(msg)
    return free


def as_messages(memories: Msg | list[Msg] | None) -> list[Msg]:
    """Return what was given as a list of messages with usable ids."""
    if memories is None:
        return []
    messages = [memories] if isinstance(memories, Msg) else memories
    if not isinstance(messages, list | tuple):
        raise TypeError(
            f"memories must be a Msg, a list of Msg or None, got {type(messages).__name__}"
        )
    for msg in messages:
        if not isinstance(msg, Msg):
            given = f"{type(msg).__module__}.{type(msg).__name__}"
            raise TypeError(f"memories may hold only memoryspace.message.Msg, got {given}")
        if isinstance(msg.id, str) and msg.id.startswith(RESERVED_PREFIX):
            raise InvalidInput(
                f"message id {msg.id!r} is taken: {RESERVED_PREFIX!r} is for our own"
            )
    return list(messages)


def _wants_duplicates(allow_duplicates: bool | None, skip_duplicated: bool | None) -> bool:
    if None not in (allow_duplicates, skip_duplicated) and allow_duplicates is skip_duplicated:
        raise InvalidInput(
            "allow_duplicates and skip_duplicated say the opposite of each other; give only one"
        )
    return bool(allow_duplicates) or skip_duplicated is False


def _ids_or_positions(
    msg_ids: str | Iterable[str] | int | Iterable[int] | None,
    index: int | Iterable[int] | None,
) -> tuple[list[str], list[int]]:
    if (msg_ids is None) == (index is None):
        raise TypeError("delete() takes message ids or an index, one of the two")
    if isinstance(msg_ids, str):
        return _as_ids([msg_ids]), []
    given = msg_ids if index is None else index
    items: list[Any] = [given] if isinstance(given, int) else list(given)  # type: ignore[arg-type]  # not None
    if items and all(isinstance(item, int) for item in items):
        return [], items
    return (_as_ids(items) if index is None else _no_positions(items)), []


def _as_ids(items: Iterable[Any]) -> list[str]:
    if isinstance(items, str):
        raise TypeError("message ids must come in a list, got a single str")
    ids = list(items)
    for item in ids:
        if not isinstance(item, str):
            raise TypeError(f"a message id must be a str, got {type(item).__name__}")
    return ids


def _no_positions(items: list[Any]) -> list[str]:
    if items:
        raise TypeError(f"index must be a whole number or several, got {items!r}")
    return []
