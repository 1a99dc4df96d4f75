"""Assembles a streamed answer: takes pieces of text, reasoning and tool calls, gives blocks.

The arguments of a call are parsed again only when they have grown by a quarter, so a long stream
costs no more than a few parses of the whole. Until a call is complete, its ``input`` contains the
complete members; a truncated string is never taken for a complete one.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, TypeAlias

from ..message import TextBlock, ThinkingBlock, ToolUseBlock, new_id
from .parsing import arguments_of

Block: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock

_LITTLE = 32  # characters of new arguments that are not worth another parse
_ALONE = -1  # the key of pieces without an index


class ResponseBuilder:
    """An answer so far. Blocks are in the order of their first piece.

    Calls of the tool ``answer`` are returned as text, because that tool never runs.
    """

    def __init__(self, answer: str = "", *, reads_early: bool = True) -> None:
        self.id = ""
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.is_complete = False
        self._answer = answer
        self._reads_early = reads_early
        self._parts: dict[Hashable, _Said | _Call] = {}
        self._current: dict[int, _Call] = {}

    @property
    def is_counted(self) -> bool:
        """Whether the model has reported token counts."""
        return self.input_tokens is not None or self.output_tokens is not None

    def add_text(self, text: str, key: Hashable = "text") -> None:
        """Add a piece of text."""
        self._said("text", key).text += text

    def add_thinking(self, text: str, key: Hashable = "thinking", signature: str = "") -> None:
        """Add a piece of reasoning, or its signature, which is needed to send it back."""
        thought = self._said("thinking", key)
        thought.text += text
        thought.signature += signature

    def add_call(self, index: int | None, id: str, name: str, arguments: Any) -> None:
        """Add a piece of a tool call; a new id starts a new call, whatever its index."""
        place = _ALONE if index is None else index
        call = self._current.get(place)
        if call is None or (id and id != call.id):
            call = _Call(id or f"call_{new_id()}")
            self._parts["call", len(self._parts)] = self._current[place] = call
        call.name = call.name or name
        call.add(arguments)

    def content(self, *, is_last: bool = False) -> list[Block]:
        """Return all blocks so far. With ``is_last``, arguments are parsed to their end."""
        blocks = (self._block(part, is_last) for part in self._parts.values())
        return [block for block in blocks if block is not None]

    def _said(self, kind: str, key: Hashable) -> _Said:
        part = self._parts.setdefault(key, _Said(kind))
        assert isinstance(part, _Said)  # calls have different keys
        return part

    def _block(self, part: _Said | _Call, is_last: bool) -> Block | None:
        if isinstance(part, _Said):
            return part.block()
        if self._answer and part.name == self._answer:
            return {"type": "text", "text": part.raw} if part.raw else None
        return part.block(is_last, self._reads_early)


class _Said:
    __slots__ = ("kind", "signature", "text")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.text = ""
        self.signature = ""

    def block(self) -> Block | None:
        if not self.text and not self.signature:
            return None
        if self.kind == "text":
            return {"type": "text", "text": self.text}
        thought: ThinkingBlock = {"type": "thinking", "thinking": self.text}
        if self.signature:
            thought["signature"] = self.signature
        return thought


class _Call:
    __slots__ = ("_input", "_read", "id", "name", "raw")

    def __init__(self, id: str) -> None:
        self.id = id
        self.name = ""
        self.raw = ""
        self._input: dict[str, Any] = {}
        self._read = 0  # characters of raw that the input was parsed from

    def add(self, arguments: Any) -> None:
        """Add a piece; some servers send the arguments as one object."""
        if arguments is not None:
            self.raw += arguments if isinstance(arguments, str) else json.dumps(arguments)

    def block(self, is_last: bool, reads_early: bool) -> Block:
        is_worth_it = reads_early and len(self.raw) > self._read * 1.25 + _LITTLE
        if is_last or is_worth_it:
            self._input, self._read = arguments_of(self.raw), len(self.raw)
        return {
            "type": "tool_use",
            "id": self.id,
            "name": self.name,
            "input": self._input,
            "raw_input": self.raw,
        }
