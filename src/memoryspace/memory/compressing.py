"""How ``MemoryWithCompress`` makes a list of messages shorter, unless it is told another way.

What is old becomes one message in ``<compressed_memory>`` tags, merged with what earlier ones
said. The newest user message, the newest group and as many groups before it as fill half of the
limit stay as they are; a tool call and its results never part.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ..context import ExtractiveSummary, ModelSummary, Summariser
from ..errors import ModelFailed, ModelUnavailable
from ..formatter import FormatterBase
from ..message import Msg, groups_of, repair
from ..message.msg import peek_content, peek_metadata
from ..model import ChatModel, ask, data_block
from ..model.ask import schema_of
from ..model.calling import completed
from ..token import TokenCounterBase

CompressFunc: TypeAlias = Callable[[list[Msg]], Awaitable[list[Msg]] | list[Msg]]
TriggerFunc: TypeAlias = Callable[[list[Msg]], Awaitable[bool] | bool]

OPEN, CLOSE = "<compressed_memory>", "</compressed_memory>"
_FLAG = "compressed_memory"  # in the metadata of a message that stands for others

_KEPT = 2  # one part in so many of the limit is left as it is
_SUMMARY = 4  # and one in so many may be taken by the summary
_CHARACTERS_PER_TOKEN = 4  # where only characters are counted


class CompressedText(Struct, frozen=True):
    """What a model is asked for: everything of the messages that will be needed, in short."""

    compressed_text: str


class Length:
    """How long messages are: in tokens, or without a counter in characters of their JSON."""

    def __init__(self, counter: TokenCounterBase | None) -> None:
        self.counter = counter

    async def of(self, messages: Sequence[Msg]) -> int:
        """Return the length of messages together."""
        formatted = format_msgs(messages)
        if self.counter is not None:
            return await self.counter.count(formatted)
        return len(json.dumps(formatted, ensure_ascii=False, default=str))

    def in_tokens(self, length: int) -> int:
        """Return about how many tokens a length is."""
        return length if self.counter is not None else length // _CHARACTERS_PER_TOKEN


def format_msgs(messages: Sequence[Msg]) -> list[dict[str, Any]]:
    """Return role and content of each message, to be read only."""
    return [{"role": msg.role, "content": peek_content(msg)} for msg in messages]


class DefaultCompressor:
    """Compresses what is old into one assistant message; what is kept follows it."""

    def __init__(self, summarise: Summariser, length: Length, limit: int) -> None:
        self._summarise = summarise
        self._length = length
        self._limit = limit

    async def __call__(self, messages: list[Msg]) -> list[Msg]:
        """Return a shorter list, or the messages as they are where there is none."""
        earlier = "\n\n".join(said_in(msg) for msg in messages if is_compressed(msg))
        said = [msg for msg in messages if not is_compressed(msg)]
        staying = await self._staying(groups_of(repair(said).messages))
        kept = [msg for msg in said if msg.id in staying]
        if len(kept) == len(said):
            return messages
        most = max(1, self._length.in_tokens(self._limit // _SUMMARY))
        old = [msg for msg in said if msg.id not in staying]
        made = [compressed_message(await self._summarise(earlier, old, most)), *kept]
        is_shorter = await self._length.of(made) < await self._length.of(messages)
        return made if is_shorter else messages

    async def _staying(self, groups: list[list[Msg]]) -> set[str]:
        """Return the ids of the messages that stay."""
        room = self._limit // _KEPT
        asked = [place for place, group in enumerate(groups) if group[0].role == "user"]
        stays = {len(groups) - 1, *asked[-1:]}
        for place in reversed(range(len(groups))):
            room -= await self._length.of(groups[place])
            if room < 0:
                break
            stays.add(place)
        ids = {msg.id for place in stays for msg in groups[place]} if groups else set()
        return ids | {id.rpartition(".")[0] for id in ids}  # a part of a message keeps the whole


class PromptedSummary:
    """A summary by a prompt of the user's own.

    ``{max_token}``, ``{messages_list_json}`` and ``{schema_json}`` in it are filled in.
    """

    def __init__(self, model: ChatModel, template: str) -> None:
        self._model = model
        self._template = template

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return the model's summary: a structured answer or, if it gives none, its words."""
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
    """Return who makes the summaries: a model by our prompt or the user's, or none."""
    if model is None:
        return ExtractiveSummary()
    if template is not None:
        return PromptedSummary(model, template)
    return ModelSummary(model, formatter=formatter)


def compressed_message(summary: str) -> Msg:
    """Return the message that stands for others."""
    if not summary.strip():
        raise ModelFailed("the summary is empty; the messages stay as they are")
    return Msg("assistant", f"{OPEN}{summary}{CLOSE}", "assistant", metadata={_FLAG: True})


def is_compressed(msg: Msg) -> bool:
    """Tell whether a message stands for others."""
    return peek_metadata(msg).get(_FLAG) is True


def said_in(msg: Msg) -> str:
    """Return the summary that a compressed message holds."""
    return (msg.get_text_content() or "").removeprefix(OPEN).removesuffix(CLOSE)
