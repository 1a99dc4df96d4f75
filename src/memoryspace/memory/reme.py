"""``ReMeShortTermMemory``: a context window in the form of a memory. It does not need ReMe.

Every message stays in the memory behind it. ``get_memory`` returns what fits: big tool results
become stubs, and old messages a summary. Both name a handle by which the originals can be read.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..context import Archive, FileArchive, LossReport, Meter, ModelSummary, RAMArchive
from ..errors import InvalidInput
from ..formatter import FormatterBase
from ..lifecycle import Running
from ..message import Msg, new_id
from ..model import ChatModel
from ..model.contract import check_model
from ..record import Scope
from ..token import TokenCounterBase
from ..tool import ToolResponse
from .base import MemoryBase
from .chat_messages import from_chat_messages
from .in_memory import DEFAULT_USER, InMemoryMemory
from .short_term import ShortTermSettings, WorkingSummaryMode
from .stored import StoredMemory
from .window import ContextWindow
from .wrapping import MemoryWrapper

Tool: TypeAlias = Callable[..., Awaitable[ToolResponse]]

IN_MEMORY = "inmemory"  # the store_dir that means RAM
_SESSION = "archive_session"  # key in the state


class ReMeShortTermMemory(Running, MemoryWrapper):
    """Working memory within a token limit.

    Recent messages are changed only if nothing else is left, and the newest user message never.

    Args:
        model: Any chat model, for summaries. Without one, or if it fails, summaries are extracted
            from the messages.
        reme_config_path: Not supported; must be ``None``.
        working_summary_mode: What happens over the limit. ``compact`` off-loads big tool results.
            ``compress`` summarises old messages. ``auto`` compacts first, and compresses the result
            if too much is left.
        compact_ratio_threshold: In ``auto``, the share of tokens from which too much is left.
        max_total_tokens: The limit.
        max_tool_message_tokens: The tokens from which a tool result counts as big.
        group_token_threshold: How many tokens the model sees at once.
        keep_recent_count: The number of newest messages that count as recent.
        store_dir: The folder for what leaves, with a sub-folder per user and session; "inmemory"
            for RAM.
        memory: Where messages are stored; the caller closes it. In RAM by default.
        user_id: The user, unless ``memory`` knows it.
        session_id: The session, unless ``memory`` knows it. A new one by default, which is part of
            the state.
        formatter: The formatter of the model's provider, for a model that takes its provider's
            message format. It is also used to measure messages.
        token_counter: Counts tokens; an estimate by default.
        preview_char_length: The characters of a big tool result that stay.

    Raises:
        InvalidInput: An argument is of the wrong type, out of range or not supported.

    Example::

        memory = ReMeShortTermMemory(model, max_total_tokens=20_000, store_dir="./store")
        messages = await memory.get_memory()
    """

    def __init__(
        self,
        model: ChatModel | None = None,
        reme_config_path: None = None,
        working_summary_mode: WorkingSummaryMode = "auto",
        compact_ratio_threshold: float = 0.75,
        max_total_tokens: int = 20000,
        max_tool_message_tokens: int = 2000,
        group_token_threshold: int | None = None,
        keep_recent_count: int = 10,
        store_dir: str | os.PathLike[str] = IN_MEMORY,
        *,
        memory: MemoryBase | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        formatter: FormatterBase | None = None,
        token_counter: TokenCounterBase | None = None,
        preview_char_length: int = 400,
    ) -> None:
        _check(model, reme_config_path, memory, user_id, session_id)
        self.settings = ShortTermSettings(
            working_summary_mode=working_summary_mode,
            compact_ratio_threshold=compact_ratio_threshold,
            max_total_tokens=max_total_tokens,
            max_tool_message_tokens=max_tool_message_tokens,
            group_token_threshold=group_token_threshold,
            keep_recent_count=keep_recent_count,
            preview_char_length=preview_char_length,
        )
        scope = _scope(memory, user_id, session_id)
        own = InMemoryMemory(user_id=scope.user, session_id=str(scope.session))
        super().__init__(own if memory is None else memory)
        self.model, self.formatter, self.store_dir = model, formatter, store_dir
        self._user = scope.user
        self._is_new_session = session_id is None and not isinstance(memory, StoredMemory)
        self._meter = Meter(token_counter, formatter)
        self._app_started = False
        self._open(str(scope.session))

    def _open(self, session: str) -> None:
        self._session = session
        archive = _archive(self.store_dir, self._user, session)
        compactor = self.settings.compactor(archive, self._meter, self._summariser())
        self.window = ContextWindow(self.memory, compactor)

    def _summariser(self) -> ModelSummary | None:
        if self.model is None:
            return None
        if not self.settings.group_token_threshold:
            return ModelSummary(self.model, formatter=self.formatter)
        parts = self.settings.group_token_threshold
        return ModelSummary(self.model, formatter=self.formatter, part_tokens=parts)

    async def start(self) -> None:
        """Mark the memory as started. It works without this, too."""
        self._app_started = True

    async def stop(self) -> None:
        """Mark the memory as stopped. Messages and archived content stay; it can be used again."""
        self._app_started = False

    async def close(self) -> None:
        """Do the same as ``stop``. A memory passed in stays open."""
        await self.stop()

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
    ) -> list[Msg]:
        """Return the resident messages without ``exclude_mark``, the summary first.

        With ``mark``, return the messages that have it unchanged, resident or not.
        """
        if mark is not None:
            return await self.memory.get_memory(mark, exclude_mark, prepend_summary)
        return await self.window.messages(
            exclude_mark=exclude_mark, prepend_summary=prepend_summary
        )

    async def clear(self) -> None:
        """Remove all messages, the summary, and archived content."""
        await self.memory.clear()
        await self.window.release()

    @property
    def report(self) -> LossReport | None:
        """The report of the last compaction; None before the first."""
        return self.window.report

    @property
    def tools(self) -> list[Tool]:
        """The tools ``read_memory`` and ``search_memory``, to give to a model."""
        return self.window.tools

    async def expand(self, handle: str) -> str | list[Msg] | list[dict[str, object]]:
        """Return the archived content of a handle, or the message with this id."""
        return await self.window.expand(handle)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the memory, and the session of its archive if that is a new one."""
        state = super().state_dict()
        return {**state, _SESSION: self._session} if self._is_new_session else state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state, also one of a plain memory."""
        session = state_dict.get(_SESSION, self._session)
        Scope(self._user, session)
        super().load_state_dict(state_dict, strict)
        if self._is_new_session and session != self._session:
            self._open(session)

    @staticmethod
    def list_to_msg(messages: Sequence[Mapping[str, Any]]) -> list[Msg]:
        """Return messages of a chat API as ``Msg``; see ``memoryspace.memory.chat_messages``."""
        return from_chat_messages(messages)


def _archive(store_dir: str | os.PathLike[str], user: str, session: str) -> Archive:
    if store_dir == IN_MEMORY:
        return RAMArchive()
    return FileArchive(store_dir, user, session)


def _scope(memory: MemoryBase | None, user_id: str | None, session_id: str | None) -> Scope:
    """Return the scope: that of the memory, the one given, or a new session."""
    if isinstance(memory, StoredMemory):
        return Scope(memory.user_id, memory.session_id)
    user = DEFAULT_USER if user_id is None else user_id
    return Scope(user, new_id() if session_id is None else session_id)


def _check(
    model: object,
    reme_config_path: object,
    memory: MemoryBase | None,
    user_id: str | None,
    session_id: str | None,
) -> None:
    if reme_config_path is not None:
        raise InvalidInput(
            "reme_config_path is not supported: pass the settings as arguments instead"
        )
    check_model(model)
    if isinstance(memory, StoredMemory) and (user_id is not None or session_id is not None):
        raise InvalidInput("pass `memory=` or `user_id=`/`session_id=`, not both")
