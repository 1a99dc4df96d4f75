"""How a person is asked: at the terminal, or in a way of one's own."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import WrongForm
from ..message import AudioBlock, ImageBlock, TextBlock, VideoBlock
from ..model.base import StructuredModel
from ..model.structured import json_schema_of, validated
from .terminal import TERMINAL


@dataclass(slots=True)
class UserInputData:
    """What a person gave: blocks, and what was asked for in a form."""

    blocks_input: list[TextBlock | ImageBlock | AudioBlock | VideoBlock] | None = None
    structured_input: dict[str, Any] | None = None


class UserInputBase(ABC):
    """A way to ask a person."""

    @abstractmethod
    async def __call__(
        self, agent_id: str, agent_name: str, *, structured_model: StructuredModel | None = None
    ) -> UserInputData:
        """Return what the person says; with a model also a document of its form."""


class TerminalUserInput(UserInputBase):
    """Asks for a line at the terminal, then for each field of the form, until it fits.

    A text is taken as it is; anything else is written as JSON. An optional field is skipped by an
    empty line. The event loop goes on while the person thinks. ``EOFError`` when input has ended.
    """

    def __init__(self, input_hint: str = "User Input: ") -> None:
        self.input_hint = input_hint

    async def __call__(
        self, agent_id: str, agent_name: str, *, structured_model: StructuredModel | None = None
    ) -> UserInputData:
        """Read a line, and a document if one is asked for."""
        text = await TERMINAL.read(self.input_hint)
        blocks: list[Any] = [TextBlock(type="text", text=text)]
        if structured_model is None:
            return UserInputData(blocks)
        return UserInputData(blocks, await _asked(structured_model))


async def _asked(structured_model: StructuredModel) -> dict[str, Any]:
    """Ask for every field, all over again if they do not fit together."""
    schema = _resolved(json_schema_of(structured_model))
    while True:
        document: dict[str, Any] = {}
        for name in schema.get("properties", {}):
            document.update(await _field(schema, name))
        try:
            return validated(structured_model, document)
        except WrongForm as error:
            _say(str(error))


async def _field(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Ask for one field until it is of its form; nothing for an optional one that is skipped."""
    is_required = name in schema.get("required", ())
    part = schema["properties"][name]
    alone = {**schema, "properties": {name: part}, "required": [name]}
    while True:
        text = await TERMINAL.read(_question(name, part, is_required))
        if not text and not is_required:
            return {}
        for value in _readings(text, part):
            try:
                return validated(alone, {name: value})
            except WrongForm as error:
                trouble = str(error)
        _say(trouble)


def _readings(text: str, part: Mapping[str, Any]) -> list[Any]:
    """Return what a line may mean: JSON where other things than text are wanted, or its words."""
    if part.get("type") == "string":
        return [text]
    try:
        return [json.loads(text), text]
    except ValueError:
        return [text]


def _question(name: str, part: Mapping[str, Any], is_required: bool) -> str:
    what = part.get("description") or part.get("type") or json.dumps(part, ensure_ascii=False)
    return f"  {name} ({what}{'' if is_required else '; empty to skip'}): "


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose root is not a reference to one of its parts."""
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return {**schema["$defs"][name], "$defs": schema["$defs"]} if name else schema


def _say(text: str) -> None:
    sys.stdout.write(f"  {text}\n")
