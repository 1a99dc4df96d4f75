"""The default compression of ``MemoryWithCompress``: a configuration of the compactor.

Old messages become one message in ``<compressed_memory>`` tags, merged with earlier ones. These
stay as they are: system messages at the beginning, the newest user message, the newest group, and
the groups before it that fit in half of the limit. A tool call and its results stay together.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ..context import (
    Compactor,
    Draft,
    ExtractiveSummary,
    Leave,
    Limits,
    Meter,
    ModelSummary,
    Pages,
    Summariser,
)
from ..context.summaries.summary import SummaryMessage, is_summary
from ..errors import ModelFailed, ModelUnavailable
from ..formatter import FormatterBase
from ..message import Msg
from ..message.msg import peek_content, peek_metadata
from ..model import ChatModel, ask, data_block
from ..model.ask import schema_of
from ..model.calling import completed
from ..token import TokenCounterBase

CompressFunc: TypeAlias = Callable[[list[Msg]], Awaitable[list[Msg]] | list[Msg]]
TriggerFunc: TypeAlias = Callable[[list[Msg]], Awaitable[bool] | bool]

OPEN, CLOSE = "<compressed_memory>", "</compressed_memory>"
_FLAG = "compressed_memory"  # metadata key of a compressed message

_KEPT_SHARE = 2  # half of the limit is kept as it is
_SUMMARY_SHARE = 4  # and a quarter may go to the summary
_AMPLE = 5  # a summary takes at most a fifth of the budget
_SHORT_SUMMARY = Msg("assistant", "word " * 20, "assistant")  # the least it may take
_SAMPLE = {"role": "user", "content": "word"}


class CompressedText(Struct, frozen=True):
    """The structured answer a model is asked for: everything still needed, in short."""

    compressed_text: str


class ContentMeter(Meter):
    """Measures role and content of messages: in tokens, or in JSON characters without a counter."""

    def __init__(self, counter: TokenCounterBase | None) -> None:
        super().__init__()
        self._counter = counter
        self._frame: int | None = None

    async def length(self, messages: Sequence[Msg]) -> int:
        """Return the length of messages together."""
        return await self._count(format_msgs(messages))

    async def frame(self) -> int:
        """Return what the counter adds to any list of messages."""
        if self._frame is None:
            once, twice = await self._count([_SAMPLE]), await self._count([_SAMPLE, _SAMPLE])
            self._frame = 2 * once - twice
        return self._frame

    async def measure(self, group: Sequence[Msg]) -> list[int]:
        """Return the length of each message, without the frame."""
        frame = await self.frame()
        return [max(0, await self.length([msg]) - frame) for msg in group]

    async def _count(self, formatted: list[dict[str, Any]]) -> int:
        if self._counter is not None:
            return await self._counter.count(formatted)
        return len(json.dumps(formatted, ensure_ascii=False, default=str))


class SummariseAllButNewest:
    """A compaction step: everything leaves but the newest groups, up to ``kept`` tokens of them."""

    name, is_last_resort = "compress", False

    def __init__(self, kept: int) -> None:
        self._kept = kept

    def choose(self, draft: Draft) -> Iterator[Leave]:
        """Yield all but the newest groups, oldest first; the newest one always stays."""
        left, staying = self._kept, 0
        for group in reversed(draft.groups):
            left -= group.cost
            if left < 0:
                break
            staying += 1
        for group in draft.groups[: len(draft.groups) - max(1, staying)]:
            yield Leave("summarise", group, "older than what is kept")


class DefaultCompressor:
    """Compresses old messages into one assistant message. Kept messages follow it."""

    def __init__(self, summarise: Summariser, meter: ContentMeter, limit: int) -> None:
        self._summarise = summarise
        self._meter = meter
        self._limit = limit

    async def __call__(self, messages: list[Msg]) -> list[Msg]:
        """Return a shorter list, or ``messages`` if compression would not shorten it.

        Raises:
            ModelFailed: The summariser failed, or returned nothing.
        """
        earlier = "\n\n".join(text_of_compressed(msg) for msg in messages if is_compressed(msg))
        said = [msg for msg in messages if not is_compressed(msg)]
        length = await self._meter.length(messages)
        compactor = await self._compactor(length)
        done = await compactor.compact(said, pages=Pages(summary=earlier), force=True)
        if done.report.troubles:
            raise ModelFailed("; ".join(done.report.troubles))
        summary = SummaryMessage.read(done.pages.summary).body
        if not done.pages.summarised or not summary:
            return messages
        made = _with_compressed(said, done.messages, summary)
        return made if await self._meter.length(made) < length else messages

    async def _compactor(self, length: int) -> Compactor:
        """Return a compactor for one use: what it archives is in the chat history anyway.

        Its budget never binds. The step alone decides what stays.
        """
        least = await self._meter.length([_SHORT_SUMMARY])
        limits = Limits(
            budget=_AMPLE * max(self._limit, length, least),
            low_water=0,
            summary=max(self._limit // _SUMMARY_SHARE, least),
        )
        steps = [SummariseAllButNewest(self._limit // _KEPT_SHARE)]
        return Compactor(limits, meter=self._meter, summariser=self._summarise, steps=steps)


class PromptedSummary:
    """A summary by a custom prompt.

    ``{max_token}``, ``{messages_list_json}`` and ``{schema_json}`` in it are filled in.
    """

    def __init__(self, model: ChatModel, template: str) -> None:
        self._model = model
        self._template = template

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return the model's structured answer or, if it gives none, its plain text."""
        prompt = [{"role": "user", "content": self._prompt(earlier, messages, max_tokens)}]
        try:
            return (await ask(self._model, prompt, CompressedText, attempts=2)).compressed_text
        except ModelUnavailable:
            raise
        except ModelFailed:
            return (await completed(self._model, prompt)).text

    def _prompt(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        said = format_msgs(messages)
        if earlier:
            said.insert(0, {"role": "assistant", "content": f"{OPEN}{earlier}{CLOSE}"})
        filled = self._template.replace("{max_token}", str(max_tokens))
        filled = filled.replace("{schema_json}", json.dumps(schema_of(CompressedText)))
        return filled.replace("{messages_list_json}", data_block("messages", said))


def summariser_for(
    model: ChatModel | None, formatter: FormatterBase | None, template: str | None
) -> Summariser:
    """Return the summariser for these settings: extractive, prompted, or our own prompt."""
    if model is None:
        return ExtractiveSummary()
    if template is not None:
        return PromptedSummary(model, template)
    return ModelSummary(model, formatter=formatter)


def format_msgs(messages: Sequence[Msg]) -> list[dict[str, Any]]:
    """Return role and content of each message, to be read only."""
    return [{"role": msg.role, "content": peek_content(msg)} for msg in messages]


def is_compressed(msg: Msg) -> bool:
    """Return whether a message is a compressed one."""
    return peek_metadata(msg).get(_FLAG) is True


def text_of_compressed(msg: Msg) -> str:
    """Return the summary in a compressed message."""
    return (msg.get_text_content() or "").removeprefix(OPEN).removesuffix(CLOSE)


def _with_compressed(said: list[Msg], shown: Sequence[Msg], summary: str) -> list[Msg]:
    """Return the messages that stay, as they were given, with the compressed one in its place."""
    at = next(place for place, msg in enumerate(shown) if is_summary(msg))
    kept, first = _given(said, shown), len(_given(said, shown[:at]))
    text = f"{OPEN}{summary}{CLOSE}"
    compressed = Msg("assistant", text, "assistant", metadata={_FLAG: True})
    return [*kept[:first], compressed, *kept[first:]]


def _given(said: list[Msg], shown: Sequence[Msg]) -> list[Msg]:
    """Return the given messages that are shown, also those of which a repaired part is."""
    ids = {msg.id for msg in shown}
    ids |= {id.rpartition(sign)[0] for id in ids for sign in ".#"}
    return [msg for msg in said if msg.id in ids]
