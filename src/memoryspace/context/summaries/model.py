"""``ModelSummary``: a summary by a chat model, structured if the model supports it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from ...errors import ModelFailed, ModelUnavailable, WrongForm
from ...formatter.base import FormatterBase
from ...message import Msg
from ...model import ChatModel, ChatModelBase, collected, prompt_messages, read_prompt
from ...model.ask import schema_of
from ...model.base import StructuredModel
from ...model.calling import completed
from ...model.parsing import documents_in
from ...model.structured import json_schema_of, validated
from ...token import estimate_tokens
from ..rendering import text_of_message
from .summary import clipped

logger = logging.getLogger(__name__)

_PACKAGE = "memoryspace.context.summaries"
_LENGTH = "\nUse no more than about {words} words in all.\n"
_WORDS_PER_TOKEN = 0.6
_MOST_OF_ONE = 6000  # characters of one message that the model sees
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FEWEST_SIGNS = 8  # letters and digits; a shorter answer says nothing


class SummaryFields(Struct, frozen=True):
    """The default fields of a structured summary."""

    task_overview: Annotated[str, Meta(description="What was asked for, and its conditions")] = ""
    current_state: Annotated[str, Meta(description="What has been done, and what came of it")] = ""
    important_discoveries: Annotated[str, Meta(description="Facts, decisions, errors")] = ""
    next_steps: Annotated[str, Meta(description="What is still to be done, in order")] = ""
    context_to_preserve: Annotated[str, Meta(description="Names, ids, paths, numbers, dates")] = ""


class ModelSummary:
    """Asks a chat model to merge messages into the earlier summary.

    Args:
        model: The chat model.
        schema: The fields of the answer: a pydantic class, a ``Struct`` or a JSON schema with text
            fields; ``SummaryFields`` by default.
        prompt: Instructions that replace ours. The conversation is always passed as data.
        template: The text of the summary with field names in braces. A field that the model left
            out is empty.
        formatter: The formatter of the model's provider, for a model that takes its provider's
            message format.
        timeout: Seconds allowed for the whole summary; ``None`` for no limit.
        part_tokens: A longer conversation is summarised in parts of this size.

    Raises:
        ModelFailed: When called: the model gave no usable answer.
        TimeoutError: When called: the model took longer than ``timeout``.

    Example::

        summariser = ModelSummary(model, timeout=30)
        compactor = Compactor(Limits(budget=8000), summariser=summariser)
    """

    def __init__(
        self,
        model: ChatModel,
        schema: StructuredModel | None = None,
        prompt: str | None = None,
        template: str | None = None,
        formatter: FormatterBase | None = None,
        *,
        timeout: float | None = 120.0,
        part_tokens: int = 16_000,
    ) -> None:
        self.model = model
        self.schema: StructuredModel = schema if schema is not None else SummaryFields
        self.prompt = prompt
        self.template = template
        self.formatter = formatter
        self.timeout = timeout
        self.part_tokens = part_tokens

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return one text that replaces both; see ``Summariser``."""
        async with asyncio.timeout(self.timeout):
            for part in _parts(messages, self.part_tokens):
                data = {"notes_so_far": _sendable(earlier), "conversation": part}
                earlier = await self._merged(data, max_tokens)
        return earlier

    async def _merged(self, data: Mapping[str, Any], max_tokens: int) -> str:
        try:
            text = await self._structured(data, max_tokens)
        except ModelUnavailable:
            raise
        except Exception as error:  # servers reject schemas in many ways
            logger.warning("no structured summary (%s); asking for text", type(error).__name__)
            text = ""
        return text if text else await self._in_words(data, max_tokens)

    async def _structured(self, data: Mapping[str, Any], max_tokens: int) -> str:
        instructions = self._instructions("summary.md", max_tokens)
        found = await self._asked(instructions, data, self.schema)
        documents = [found] if isinstance(found, Mapping) else documents_in(found)
        for document in documents:
            fields = self._fields(document)
            if fields:
                return self._filled(fields)
        return ""

    async def _in_words(self, data: Mapping[str, Any], max_tokens: int) -> str:
        instructions = self._instructions("summary_text.md", max_tokens)
        found = await self._asked(instructions, data, None)
        text = _once_each(_THOUGHTS.sub("", str(found)))
        if sum(map(str.isalnum, text)) < _FEWEST_SIGNS:
            raise ModelFailed(f"model {self.model.name!r} returned an empty summary")
        return text

    def _instructions(self, name: str, max_tokens: int) -> str:
        given = self.prompt if self.prompt is not None else read_prompt(_PACKAGE, name)
        return given + _LENGTH.format(words=int(max_tokens * _WORDS_PER_TOKEN))

    async def _asked(
        self, instructions: str, data: Mapping[str, Any], schema: StructuredModel | None
    ) -> str | Mapping[str, Any]:
        """Return the model's text, or its structured answer if the provider parsed one."""
        prompt = prompt_messages(instructions, data)
        if self.formatter is None or not isinstance(self.model, ChatModelBase):
            form = _closed_schema_of(schema) if schema is not None else None
            return (await completed(self.model, prompt, schema=form)).text
        said = [Msg(each["role"], each["content"], each["role"]) for each in prompt]  # type: ignore[arg-type]  # system and user
        answer = await self.model(await self.formatter.format(said), structured_model=schema)
        response = await collected(answer)
        return response.metadata if response.metadata is not None else response.text

    def _fields(self, document: Any) -> dict[str, Any]:
        """Return the non-empty fields of an answer, also of an incomplete one."""
        try:
            fields = validated(self.schema, document)
        except WrongForm:
            known = json_schema_of(self.schema).get("properties", {})
            given = document if isinstance(document, Mapping) else {}
            fields = {name: given[name] for name in known if name in given}
        return {name: value for name, value in fields.items() if value not in ("", None, [], {})}

    def _filled(self, fields: Mapping[str, Any]) -> str:
        if self.template is not None:
            try:
                return self.template.format_map(_Tolerant(fields))
            except (ValueError, TypeError, LookupError, AttributeError):
                logger.warning("the summary template could not be filled; using plain sections")
        return "\n\n".join(f"{_title(name)}\n{value}" for name, value in fields.items())


def _closed_schema_of(form: StructuredModel) -> Mapping[str, Any]:
    """Return the schema without defaults where possible: strict servers reject defaults."""
    if isinstance(form, type) and issubclass(form, Struct):
        return schema_of(form)
    return json_schema_of(form)


class _Tolerant(dict[str, Any]):
    """The fields of a template; a missing one is empty."""

    def __missing__(self, name: str) -> str:
        return ""


def _parts(messages: Sequence[Msg], most: int) -> Iterator[list[str]]:
    """Divide a conversation into parts of about ``most`` tokens, each message a text."""
    part: list[str] = []
    tokens = 0
    for msg in messages:
        text = _sendable(clipped(text_of_message(msg), _MOST_OF_ONE))
        cost = estimate_tokens(text)
        if part and tokens + cost > most:
            yield part
            part, tokens = [], 0
        part.append(text)
        tokens += cost
    if part:
        yield part


def _sendable(text: str) -> str:
    """Return a text that can be encoded: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode()


def _once_each(text: str) -> str:
    """Return a text without repeated lines: models fall into loops."""
    return "\n".join(dict.fromkeys(line.rstrip() for line in text.strip().split("\n")))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize() + ":"
