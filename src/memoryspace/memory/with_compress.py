"""``MemoryWithCompress``: a memory that compresses itself and keeps the original messages.

One list keeps every message, the other is read and compressed when it gets too long. A compression
that fails changes nothing and is only logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..errors import InvalidInput
from ..formatter import FormatterBase
from ..loops import PerLoop
from ..message import Msg
from ..model import ChatModel
from ..model.contract import check_model
from ..token import TokenCounterBase
from .arguments import as_messages, check_callable
from .compressing import CompressFunc, ContentMeter, DefaultCompressor, TriggerFunc, summariser_for
from .message_storage import MessageStorageBase
from .two_lists import TwoListMemory

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_TOKEN = 28000


class MemoryWithCompress(TwoListMemory):
    """Working memory that compresses itself.

    Args:
        model: The chat model that writes summaries. Without one, summaries are extracted from the
            messages.
        formatter: The formatter of the model's provider, for a model that takes its provider's
            message format.
        max_token: The tokens from which the memory is compressed; characters of JSON if there is
            no ``token_counter``.
        chat_history_storage: Keeps every message; in RAM by default.
        memory_storage: Holds the messages that are read and compressed; in RAM by default.
        token_counter: Counts tokens.
        compress_func: Replaces the default compression: takes and returns a list of messages. It
            may be a plain or a coroutine function.
        compression_trigger_func: Returns whether to compress a memory that is not too long. It may
            be a plain or a coroutine function.
        compression_on_add: Whether ``add`` compresses.
        compression_on_get: Whether ``get_memory`` compresses.
        customized_compression_prompt: The prompt of the model, with ``{max_token}``,
            ``{messages_list_json}`` and ``{schema_json}`` to be filled in.

    Raises:
        InvalidInput: An argument is of the wrong type or out of range.

    Example::

        memory = MemoryWithCompress(model, max_token=8000, token_counter=counter)
        messages = await memory.get_memory(recent_n=20)
    """

    def __init__(
        self,
        model: ChatModel | None = None,
        formatter: FormatterBase | None = None,
        max_token: int = MAX_TOKEN,
        chat_history_storage: MessageStorageBase | None = None,
        memory_storage: MessageStorageBase | None = None,
        token_counter: TokenCounterBase | None = None,
        compress_func: CompressFunc | None = None,
        compression_trigger_func: TriggerFunc | None = None,
        compression_on_add: bool = False,
        compression_on_get: bool = True,
        customized_compression_prompt: str | None = None,
    ) -> None:
        check_model(model)
        check_callable("compress_func", compress_func)
        check_callable("compression_trigger_func", compression_trigger_func)
        super().__init__(chat_history_storage, memory_storage)
        self.model, self.formatter = model, formatter
        self.max_token = _checked_limit(max_token)
        self.token_counter = token_counter
        self.compress_func = compress_func
        self.compression_trigger_func = compression_trigger_func
        self.compression_on_add = compression_on_add
        self.compression_on_get = compression_on_get
        self.customized_compression_prompt = customized_compression_prompt
        self._compressing = PerLoop(asyncio.Lock)  # held during a compression, one at a time

    def __repr__(self) -> str:
        return f"MemoryWithCompress(max_token={self.max_token})"

    async def add(
        self,
        memories: Msg | list[Msg] | None,
        marks: str | list[str] | None = None,
        *,
        allow_duplicates: bool | None = None,
        skip_duplicated: bool | None = None,
        compress_func: CompressFunc | None = None,
        compression_trigger_func: TriggerFunc | None = None,
    ) -> None:
        """Append messages to both lists; with ``compression_on_add``, compress if needed.

        See ``MemoryBase.add``. A message that only the history has is added to the memory again.
        The two functions replace those of the memory for this call.
        """
        await super().add(
            memories, marks, allow_duplicates=allow_duplicates, skip_duplicated=skip_duplicated
        )
        if self.compression_on_add and memories:
            await self._compress_if_due(compress_func, compression_trigger_func)

    async def get_memory(
        self,
        mark: str | None = None,
        exclude_mark: str | None = None,
        prepend_summary: bool = True,
        *,
        recent_n: int | None = None,
        filter_func: Callable[[int, Msg], bool] | None = None,
        compress_func: CompressFunc | None = None,
        compression_trigger_func: TriggerFunc | None = None,
    ) -> list[Msg]:
        """Compress if needed, unless ``compression_on_get`` is off, and return the memory.

        Args:
            mark: Return only messages with this mark.
            exclude_mark: Leave out messages with this mark.
            prepend_summary: Return the summary first, if there is one.
            recent_n: Return only the last messages, if more than 0.
            filter_func: Called with position and message; returns whether to include the message.
            compress_func: Replaces that of the memory for this call.
            compression_trigger_func: Replaces that of the memory for this call.
        """
        await self.check_health()
        if self.compression_on_get:
            await self._compress_if_due(compress_func, compression_trigger_func)
        return await super().get_memory(
            mark, exclude_mark, prepend_summary, recent_n=recent_n, filter_func=filter_func
        )

    async def direct_update_memory(self, msgs: Msg | Sequence[Msg] | None) -> None:
        """Replace the whole memory by these messages. The history stays as it is."""
        if msgs is None:
            return
        messages = as_messages(msgs if isinstance(msgs, Msg) else list(msgs))
        await self.check_health()
        async with self._writing.get():
            await self._replace(messages)

    async def check_and_compress(
        self,
        compress_func: CompressFunc | None = None,
        compression_trigger_func: TriggerFunc | None = None,
        memory: list[Msg] | None = None,
    ) -> tuple[bool, list[Msg]]:
        """Compress messages if the trigger says so, without storing the result.

        Args:
            compress_func: Replaces that of the memory for this call.
            compression_trigger_func: Replaces that of the memory for this call.
            memory: The messages; those of the memory by default.

        Returns:
            Whether they were compressed, and the messages.
        """
        await self.check_health()
        messages = await self.memory_storage.get() if memory is None else as_messages(memory)
        trigger = self._trigger(compression_trigger_func)
        made = None if trigger is None else await self._made(messages, trigger, compress_func)
        return (False, messages) if made is None else (True, made)

    def state_dict(self) -> dict[str, Any]:
        """Return the limit, the summary, the marks and the lists in RAM, as plain data.

        Lists in other storages are not included.
        """
        return {**super().state_dict(), "max_token": self.max_token}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state, all of it or nothing. Without ``strict``, missing parts are kept."""
        if strict and "max_token" not in state_dict:
            raise KeyError("the state of a MemoryWithCompress has no max_token")
        limit = _checked_limit(state_dict.get("max_token", self.max_token))
        super().load_state_dict(state_dict, strict)
        self.max_token = limit

    async def _compress_if_due(
        self, compress_func: CompressFunc | None, trigger_func: TriggerFunc | None
    ) -> None:
        """Compress the memory if it is too long or the trigger says so.

        Messages added meanwhile follow the compressed ones. If a message that was compressed has
        been removed meanwhile, the result is discarded.
        """
        async with self._compressing.get():
            before = await self.memory_storage.get()
            due = self._is_due(self._trigger(trigger_func))
            made = await self._made(before, due, compress_func)
            if made is None:
                return
            async with self._writing.get():
                now = await self.memory_storage.get()
                if _ids(now[: len(before)]) == _ids(before):
                    await self._replace([*made, *now[len(before) :]])

    async def _made(
        self, messages: list[Msg], is_due: TriggerFunc, compress_func: CompressFunc | None
    ) -> list[Msg] | None:
        """Return the compressed messages; None if compression is not due or fails."""
        compress = self.compress_func if compress_func is None else compress_func
        try:
            if not messages or not await _value(is_due(list(messages))):
                return None
            compress = self._default() if compress is None else compress
            return _checked(await _value(compress(list(messages))))
        except Exception as error:  # a model or a custom function may raise anything
            kind = type(error).__name__  # not its message, which may quote a user
            logger.warning("compressing the memory failed, it stays as it is: %s", kind)
            return None

    def _default(self) -> CompressFunc:
        prompt = self.customized_compression_prompt
        summarise = summariser_for(self.model, self.formatter, prompt)
        return DefaultCompressor(summarise, ContentMeter(self.token_counter), self.max_token)

    def _trigger(self, given: TriggerFunc | None) -> TriggerFunc | None:
        return self.compression_trigger_func if given is None else given

    def _is_due(self, trigger: TriggerFunc | None) -> TriggerFunc:
        async def is_due(messages: list[Msg]) -> bool:
            if await ContentMeter(self.token_counter).length(messages) > self.max_token:
                return True
            return trigger is not None and await _value(trigger(messages))

        return is_due


async def _value(given: Awaitable[T] | T) -> T:
    """Return the result of a plain or a coroutine function."""
    return await given if isinstance(given, Awaitable) else given


def _ids(messages: list[Msg]) -> list[str]:
    return [msg.id for msg in messages]


def _checked(made: Any) -> list[Msg]:
    if made is None:
        raise TypeError("compress_func must return a list of messages, got None")
    return as_messages(made)


def _checked_limit(max_token: Any) -> int:
    if type(max_token) is not int or max_token < 1:
        raise InvalidInput(f"max_token must be a positive whole number, got {max_token!r}")
    return max_token
