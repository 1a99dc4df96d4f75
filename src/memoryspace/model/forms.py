"""The forms of a request, the strictest first, and how structured answers are read.

A structured answer is requested as a schema that the server guarantees, as the arguments of a tool,
or in words. A required tool call is forced, or only offered if the model does not support that
(many do not while they reason).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..errors import InvalidInput, WrongForm
from .base import StructuredModel, ToolChoice
from .parsing import documents_in
from .structured import json_schema_of, validated

ANSWER = "give_answer"  # the tool whose arguments are the structured answer; it never runs
FREE_CHOICES = ("auto", "none")

_ANSWER_IS = "Takes your answer. Call it once, with the whole answer as its arguments."
_IN_WORDS = "Give your answer as one JSON document, without any text around it, of this JSON schema"


class Form(Enum):
    """How a request is made."""

    SCHEMA = "schema"
    TOOL = "tool"
    WORDS = "words"
    FORCED = "forced"
    FREE = "free"


FORCING = (Form.FORCED, Form.FREE)


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model. With a structured answer, no tools are offered."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    tool_choice: ToolChoice | None = None
    structured_model: StructuredModel | None = None

    def __post_init__(self) -> None:
        if self.tool_choice is not None and not isinstance(self.tool_choice, str):
            raise TypeError(f"tool_choice must be a str, got {type(self.tool_choice).__name__}")
        names = [each["function"]["name"] for each in self.tools or ()]
        if self.tool_choice not in (None, *FREE_CHOICES, "required", *names):
            raise InvalidInput(
                f"tool_choice must be 'auto', 'none', 'required' or one of {names}, "
                f"got {self.tool_choice!r}"
            )

    @property
    def is_forced(self) -> bool:
        """Whether a tool must be called."""
        return bool(self.tools) and self.tool_choice not in (None, *FREE_CHOICES)

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the structured answer."""
        assert self.structured_model is not None  # used only by forms of structured answers
        return json_schema_of(self.structured_model)


def answer_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in OpenAI's format whose arguments are the answer."""
    function = {"name": ANSWER, "description": _ANSWER_IS, "parameters": schema}
    return {"type": "function", "function": function}


def in_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that asks for an answer matching the schema."""
    return {"role": "user", "content": f"{_IN_WORDS}:\n{json.dumps(schema, ensure_ascii=False)}"}


def structured_answer(
    structured_model: StructuredModel, content: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return the first document in an answer's text blocks that matches, or None."""
    texts = [block["text"] for block in content if block["type"] == "text"]
    for document in _documents(texts):
        try:
            return validated(structured_model, document)
        except WrongForm:
            continue
    return None


def _documents(texts: Sequence[str]) -> Iterator[Any]:
    """Yield exact documents first: lenient parsing could change their strings."""
    for text in texts:
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            continue
    yield from documents_in("\n".join(texts))
