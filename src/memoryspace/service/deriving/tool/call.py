"""``ToolCallResult``: one call of a tool and how it went, checked, and known by its hash."""

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

UNKNOWN_COST = -1  # tokens nobody counted

_FIELDS = ("tool_name", "input", "output")  # without these it is no call
_MAX_NAME = 128


class ToolCallResult(Struct, frozen=True, kw_only=True):
    """A call. ``score`` is from 0 to 1; ``time_cost`` in seconds; ``token_cost`` -1 if unknown."""

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
            raise InvalidInput(f"tool_name has {len(self.tool_name)} characters, {_MAX_NAME} fit")
        if not is_number(self.time_cost) or self.time_cost < 0:
            raise InvalidInput(f"time_cost must be seconds from 0 on, got {self.time_cost!r}")
        if self.token_cost < UNKNOWN_COST:
            raise InvalidInput(f"token_cost must be from 0 on, or -1, got {self.token_cost!r}")
        if self.score is not None and not 0 <= self.score <= 1:
            raise InvalidInput(f"score must be from 0 to 1, got {self.score!r}")

    @property
    def call_hash(self) -> str:
        """What makes it this call and no other: recorded twice, it is counted once."""
        same = [self.tool_name, self.input, self.output, self.success, self.create_time]
        text = json.dumps(same, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name; none if the input is a text that is no JSON object."""
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
        """Return the call as a message to be remembered; its id is its hash."""
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
    """Return a call read from a dict or JSON text; ``InvalidInput`` says what is wrong with it.

    Members that mean nothing here are passed over.
    """
    if isinstance(data, ToolCallResult):
        return data
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            raise InvalidInput("a tool call's result must be a JSON object") from None
    if not isinstance(data, Mapping):
        raise InvalidInput(f"a tool call's result must be a dict, got {type(data).__name__}")
    missing = [name for name in _FIELDS if data.get(name) in (None, "")]
    if missing:
        raise InvalidInput(f"a tool call's result lacks {', '.join(missing)}")
    known = {name: data[name] for name in ToolCallResult.__struct_fields__ if name in data}
    try:
        return msgspec.convert(known, ToolCallResult)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"a tool call's result: {error}") from None


def call_of(memory: MemoryItem) -> ToolCallResult | None:
    """Return the call that a raw memory tells of: in its details, its metadata or its text."""
    value = memory.value if isinstance(memory.value, dict) else {}
    for place in (memory.details, memory.metadata, value, memory.text):
        try:
            return call_from(place)
        except InvalidInput:
            continue
    return None
