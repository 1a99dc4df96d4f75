"""``ReMeShortTermMemory``: a working memory that keeps itself short. No ReMe is needed for it.

Whatever is added stays in the memory behind it. What ``get_memory`` returns is what fits: big tool
results become stubs with a handle, old messages a summary with a handle, and whatever has a handle
can be had back.
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

IN_MEMORY = "inmemory"  # the store_dir that is no folder
_SESSION = "archive_session"  # in the state


class ReMeShortTermMemory(Running, MemoryWrapper):
    """Working memory within ``max_total_tokens``.

    Over that, ``working_summary_mode`` says what is done: ``compact`` takes tool results of
    ``max_tool_message_tokens`` or more out of all but the newest ``keep_recent_count`` messages;
    ``compress`` has the old messages summarised; ``auto`` compacts and, if more than
    ``compact_ratio_threshold`` of the tokens is left, compresses what it compacted. Only if that
    is not enough are recent messages touched, and never the newest user message.

    Any chat model will do, and none: then the summary is made of what was said itself. It is also
    made so if the model fails. ``group_token_threshold`` is how much a model is shown at once. A
    model that takes its provider's own messages needs that provider's ``formatter``, by which
    messages are then measured too.

    What leaves goes to ``store_dir``, into a folder of this user's session, or with "inmemory"
    stays in RAM. ``memory`` is where messages are kept; it is the caller's to close. Without it
    they are in RAM, in the session ``session_id`` or in a new one, which the state remembers.
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
        """Begin; it also works without."""
        self._app_started = True

    async def stop(self) -> None:
        """End. What was said and what left stays where it is, and it can go on."""
        self._app_started = False

    async def close(self) -> None:
        """The same as ``stop``: a memory that was passed in stays open."""
        await self.stop()

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
    ) -> list[Msg]:
        """Return what is resident of the messages without ``exclude_mark``, the summary first.

        With ``mark``, the messages that have it are returned as they are, resident or not.
        """
        if mark is not None:
            return await self.memory.get_memory(mark, exclude_mark, prepend_summary)
        return await self.window.messages(
            exclude_mark=exclude_mark, prepend_summary=prepend_summary
        )

    async def clear(self) -> None:
        """Remove all messages, the summary, and what left."""
        await self.memory.clear()
        await self.window.release()

    @property
    def report(self) -> LossReport | None:
        """What the last compaction did; None before the first."""
        return self.window.report

    @property
    def tools(self) -> list[Tool]:
        """``read_memory`` and ``search_memory``, with which a model gets back what left."""
        return self.window.tools

    async def expand(self, handle: str) -> str | list[Msg] | list[dict[str, object]]:
        """Return what left under a handle, or the message that has this id."""
        return await self.window.expand(handle)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the memory, and in which session of ``store_dir`` the rest is."""
        state = super().state_dict()
        return {**state, _SESSION: self._session} if self._is_new_session else state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Put a state back, also one of a plain memory."""
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
    """Return whose memory it is: as the memory says, as given, or nobody else's."""
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
            "reme_config_path cannot be used: there is no ReMe here; give the settings themselves"
        )
    check_model(model)
    if isinstance(memory, StoredMemory) and (user_id is not None or session_id is not None):
        raise InvalidInput("the memory knows its user and session: give it, or these")
