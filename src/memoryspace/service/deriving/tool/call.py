"""``ToolCallResult``: one tool call and its outcome, validated and identified by a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ....errors import InvalidInput
from ....record import check_id, is_number
from ...values.memory import MemoryItem

UNKNOWN_COST = -1  # tokens were not counted

_FIELDS = ("tool_name", "input", "output")  # required
_MAX_NAME = 128


class ToolCallResult(Struct, frozen=True, kw_only=True):
    """The result of one tool call.

    Attributes:
        tool_name: The name of the tool, at most 128 characters.
        input: Its arguments, as a dict or as JSON text.
        output: What it returned.
        success: Whether it succeeded.
        time_cost: Its duration in seconds.
        token_cost: The tokens it used; -1 if unknown.
        score: Its quality from 0 to 1, if rated.
        create_time: When it was made: seconds since 1970, or ISO 8601.

    Raises:
        InvalidInput: A value is out of range.

    Example::

        call = ToolCallResult(tool_name="search", input={"q": "Oslo"}, output="3 hits")
        await service.add_tool_call_results("agent", [call])
    """

    tool_name: str
    input: dict[str, Any] | str
    output: Any
    success: bool = True
    time_cost: float = 0.0
    token_cost: int = UNKNOWN_COST
    score: float | None = None
    create_time: str | float | None = None

    def __post_init__(self) -> None:
        check_id("tool_name", self.tool_name)
        if len(self.tool_name) > _MAX_NAME:
            raise InvalidInput(
                f"tool_name has {len(self.tool_name)} characters; at most {_MAX_NAME} are allowed"
            )
        if not is_number(self.time_cost) or self.time_cost < 0:
            raise InvalidInput(f"time_cost must be 0 seconds or more, got {self.time_cost!r}")
        if self.token_cost < UNKNOWN_COST:
            raise InvalidInput(f"token_cost must be 0 or more, or -1, got {self.token_cost!r}")
        if self.score is not None and not 0 <= self.score <= 1:
            raise InvalidInput(f"score must be from 0 to 1, got {self.score!r}")

    @property
    def call_hash(self) -> str:
        """A hash that identifies the call, so that one recorded twice counts once."""
        same = [self.tool_name, self.input, self.output, self.success, self.create_time]
        text = json.dumps(same, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name; empty if the input is not a JSON object."""
        if isinstance(self.input, dict):
            return self.input
        try:
            given = json.loads(self.input)
        except (ValueError, RecursionError):
            return {}
        return given if isinstance(given, dict) else {}

    @property
    def output_text(self) -> str:
        """The output as text."""
        if isinstance(self.output, str):
            return self.output
        return json.dumps(self.output, ensure_ascii=False, default=str)

    def message(self) -> dict[str, Any]:
        """Return the call as a message to store; its id contains the hash."""
        details = {
            name: value for name, value in msgspec.to_builtins(self).items() if value is not None
        }
        return {
            "id": f"call-{self.call_hash}",
            "role": "tool",
            "name": self.tool_name,
            "content": self.output_text,
            "metadata": details,
        }


def call_from(data: object) -> ToolCallResult:
    """Return a call from a dict or JSON text. Unknown members are ignored.

    Raises:
        InvalidInput: A required member is missing or a value is invalid.
    """
    if isinstance(data, ToolCallResult):
        return data
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            raise InvalidInput("a tool call result must be a JSON object") from None
    if not isinstance(data, Mapping):
        raise InvalidInput(f"a tool call result must be a dict, got {type(data).__name__}")
    missing = [name for name in _FIELDS if data.get(name) in (None, "")]
    if missing:
        raise InvalidInput(f"a tool call result lacks {', '.join(missing)}")
    known = {name: data[name] for name in ToolCallResult.__struct_fields__ if name in data}
    try:
        return msgspec.convert(known, ToolCallResult)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"invalid tool call result: {error}") from None


def call_of(memory: MemoryItem) -> ToolCallResult | None:
    """Return the call stored in a raw memory's details, metadata or text; ``None`` if none."""
    value = memory.value if isinstance(memory.value, dict) else {}
    for place in (memory.details, memory.metadata, value, memory.text):
        try:
            return call_from(place)
        except InvalidInput:
            continue
    return None
