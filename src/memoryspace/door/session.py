"""``AsyncSession``: one conversation's working memory, behind the door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ..context import Compactor, Limits, LossReport
from ..context.limits import big_result
from ..errors import InvalidInput
from ..memory import ContextWindow, StoredMemory
from ..memory.archiving import StoreArchive
from ..message import Msg
from ..record import Scope, as_marks
from ..service.reading.arguments import as_ids
from ..store import Store
from .messages import Addable, as_msgs

DEFAULT_BUDGET = 8000  # tokens
_LEAST_BUDGET = 100


class AsyncSession:
    """The messages of one conversation, read within a budget of tokens.

    Whatever does not fit is paged out, not lost: ``expand`` returns it. Made by
    ``AsyncMemory.session``.

    Example::

        session = memory.session("garden", user="alice")
        await session.add("Plan a garden of 12 m².")
        prompt = await session.messages(max_tokens=2000)
    """

    def __init__(self, opens: Callable[[], Awaitable[object]], store: Store, scope: Scope) -> None:
        self._opens = opens
        self._memory = StoredMemory(store, scope)
        self._archive = StoreArchive(store, scope)
        self._windows: dict[int, ContextWindow] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, user={self.user!r})"

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._memory.session_id

    @property
    def user(self) -> str:
        """The user whose conversation it is."""
        return self._memory.user_id

    async def add(
        self, messages: Addable | Sequence[Addable], *, marks: str | Sequence[str] | None = None
    ) -> list[str]:
        """Append messages and return their ids.

        Args:
            messages: Texts said by the user, dicts with ``role`` and ``content``, or ``Msg``.
            marks: Labels for all of them; ``"pinned"`` keeps a message within the budget,
                ``"hint"`` lets it leave first.
        """
        await self._opens()
        added = as_msgs(messages)
        await self._memory.add(added, sorted(as_marks(marks)) or None)
        return [msg.id for msg in added]

    async def messages(
        self, *, max_tokens: int = DEFAULT_BUDGET, mark: str | None = None
    ) -> list[Msg]:
        """Return the conversation within a budget, older parts summarised.

        Args:
            max_tokens: The budget.
            mark: Return only messages with this mark.
        """
        await self._opens()
        with StoreArchive.reached_from_here():
            return await self._window(max_tokens).messages(mark)

    async def all_messages(self) -> list[Msg]:
        """Return every message, whatever the budget."""
        await self._opens()
        return await self._memory.all_messages()

    async def expand(self, handle: str) -> str:
        """Return what was paged out under a handle, or the message with this id, as text.

        Raises:
            UnknownHandle: There is neither.
        """
        await self._opens()
        with StoreArchive.reached_from_here():
            found = await self._window(DEFAULT_BUDGET).expand(handle)
        return found if isinstance(found, str) else "\n".join(map(_text_of, found))

    async def mark(self, mark: str, ids: str | Sequence[str]) -> int:
        """Add a mark to messages and return how many got it."""
        await self._opens()
        return await self._memory.update_messages_mark(mark, msg_ids=as_ids(ids))

    async def unmark(self, mark: str, ids: str | Sequence[str] | None = None) -> int:
        """Remove a mark from messages, or from all, and return how many lost it."""
        await self._opens()
        named = None if ids is None else as_ids(ids)
        return await self._memory.update_messages_mark(None, old_mark=mark, msg_ids=named)

    async def delete(self, ids: str | Sequence[str]) -> int:
        """Delete messages, with what was paged out of them; return how many were there."""
        await self._opens()
        deleted = await self._memory.delete(as_ids(ids))
        with StoreArchive.reached_from_here():
            await self._window(DEFAULT_BUDGET).release()
        return deleted

    async def clear(self) -> None:
        """Delete the whole conversation, with its summary and what was paged out of it."""
        await self._opens()
        await self._memory.clear()
        with StoreArchive.reached_from_here():
            await self._window(DEFAULT_BUDGET).release()

    async def size(self) -> int:
        """Return the number of messages."""
        await self._opens()
        return await self._memory.size()

    def report(self) -> LossReport | None:
        """Return what the last compaction left out, and why; ``None`` before the first."""
        reports = [each.report for each in self._windows.values() if each.report is not None]
        return reports[-1] if reports else None

    def _window(self, max_tokens: int) -> ContextWindow:
        if type(max_tokens) is not int or max_tokens < _LEAST_BUDGET:
            raise InvalidInput(
                f"max_tokens must be a whole number of at least {_LEAST_BUDGET}, got {max_tokens!r}"
            )
        if max_tokens not in self._windows:
            limits = Limits(budget=max_tokens, tool_result=big_result(max_tokens))
            compactor = Compactor(limits, archive=self._archive)
            self._windows[max_tokens] = ContextWindow(self._memory, compactor)
        return self._windows[max_tokens]


def _text_of(part: object) -> str:
    if isinstance(part, Msg):
        return f"{part.name}: {part.get_text_content() or ''}"
    return str(part)
