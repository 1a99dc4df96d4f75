"""An answer that grows: pieces of text, thoughts and tool calls as they come, blocks at any time.

The arguments of a call are read again only when they have grown by a quarter, so that a long
stream of them costs no more than a few readings of the whole. Until a call is complete its
``input`` holds the members that are whole; a text that is cut off is never taken for a whole one.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, TypeAlias

from ..message import TextBlock, ThinkingBlock, ToolUseBlock, new_id
from .parsing import arguments_of

Block: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock

_LITTLE = 32  # characters of new arguments that are not worth another reading
_ALONE = -1  # the key of pieces that no index tells apart


class Gathering:
    """What a model has said so far. Blocks stand in the order in which each of them began.

    Calls of the tool ``answer`` are shown as text: nobody is to run it.
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
        """Whether the model has said what the answer took."""
        return self.input_tokens is not None or self.output_tokens is not None

    def add_text(self, text: str, key: Hashable = "text") -> None:
        """Take a piece of text."""
        self._said("text", key).text += text

    def add_thinking(self, text: str, key: Hashable = "thinking", signature: str = "") -> None:
        """Take a piece of a thought, or the signature it needs when it is sent back."""
        thought = self._said("thinking", key)
        thought.text += text
        thought.signature += signature

    def add_call(self, index: int | None, id: str, name: str, arguments: Any) -> None:
        """Take a piece of a call: an id that is new begins one, whatever its index."""
        place = _ALONE if index is None else index
        call = self._current.get(place)
        if call is None or (id and id != call.id):
            call = _Call(id or f"call_{new_id()}")
            self._parts["call", len(self._parts)] = self._current[place] = call
        call.name = call.name or name
        call.add(arguments)

    def content(self, *, is_last: bool = False) -> list[Block]:
        """Return everything so far. The last time, arguments are read to their end."""
        blocks = (self._block(part, is_last) for part in self._parts.values())
        return [block for block in blocks if block is not None]

    def _said(self, kind: str, key: Hashable) -> _Said:
        part = self._parts.setdefault(key, _Said(kind))
        assert isinstance(part, _Said)  # calls have keys of their own
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
        self._read = 0  # characters of raw that the input was read from

    def add(self, arguments: Any) -> None:
        """Take a piece; some servers give the arguments as an object at once."""
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
