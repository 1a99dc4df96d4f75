"""Input methods: how a ``UserAgent`` asks its user, at the terminal or otherwise."""

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
    """The input of a user: content blocks, and the structured input if one was requested."""

    blocks_input: list[TextBlock | ImageBlock | AudioBlock | VideoBlock] | None = None
    structured_input: dict[str, Any] | None = None


class UserInputBase(ABC):
    """Base class of input methods."""

    @abstractmethod
    async def __call__(
        self, agent_id: str, agent_name: str, *, structured_model: StructuredModel | None = None
    ) -> UserInputData:
        """Ask the user and return the input.

        Args:
            agent_id: The id of the ``UserAgent``.
            agent_name: The name of the user.
            structured_model: The schema of the structured input to ask for, if any.
        """


class TerminalUserInput(UserInputBase):
    """Reads a line from the terminal, then each field of a structured input until it is valid.

    Strings are taken as they are; enter other values as JSON. An empty line skips an optional
    field. The event loop keeps running meanwhile. Raises ``EOFError`` at the end of the input.

    Args:
        input_hint: The prompt.
    """

    def __init__(self, input_hint: str = "User Input: ") -> None:
        self.input_hint = input_hint

    async def __call__(
        self, agent_id: str, agent_name: str, *, structured_model: StructuredModel | None = None
    ) -> UserInputData:
        """Read a line, and a structured input if one is requested."""
        text = await TERMINAL.read(self.input_hint)
        blocks: list[Any] = [TextBlock(type="text", text=text)]
        if structured_model is None:
            return UserInputData(blocks)
        return UserInputData(blocks, await _asked(structured_model))


async def _asked(structured_model: StructuredModel) -> dict[str, Any]:
    """Ask for every field, and again for all of them if the document is invalid."""
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
    """Ask for one field until it is valid; return {} if an optional one is skipped."""
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
                problem = str(error)
        _say(problem)


def _readings(text: str, part: Mapping[str, Any]) -> list[Any]:
    """Return the possible values of a line: as JSON unless the field is a string, and as text."""
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
    """Return the schema with a reference at its root resolved."""
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return {**schema["$defs"][name], "$defs": schema["$defs"]} if name else schema


def _say(text: str) -> None:
    sys.stdout.write(f"  {text}\n")
