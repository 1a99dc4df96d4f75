"""A quick check whether a history needs repair at all. Most do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .block_repair import is_block, whole_call, whole_result
from .msg import Msg, peek_content
from .tool_blocks import Block


def is_whole(messages: Sequence[Msg]) -> bool:
    """Return whether every call is followed by exactly one result and no block is broken."""
    check = _Check()
    return all(map(check.passes, messages)) and not check.waiting


class _Check:
    """One pass over a history; ``waiting`` are the calls that the next messages must answer."""

    def __init__(self) -> None:
        self.waiting: dict[str, Block] = {}
        self._seen: set[str] = set()  # ids of calls

    def passes(self, msg: Msg) -> bool:
        content: Any = peek_content(msg)
        if isinstance(content, str) or not content:
            return not self.waiting
        if not all(map(is_block, content)):
            return False
        if any(block["type"] == "tool_result" for block in content):
            return all(map(self._answers, content))
        return not self.waiting and all(map(self._asks, content))

    def _answers(self, block: Block) -> bool:
        """Return whether a block is the result of a waiting call, and remove that call."""
        id = block.get("id")
        call = self.waiting.pop(id, None) if isinstance(id, str) else None
        if call is None or block["type"] != "tool_result":
            return False
        return whole_result(block, call) is block

    def _asks(self, block: Block) -> bool:
        """Add a call to the waiting ones; return False if it is broken. Other blocks pass."""
        if block["type"] != "tool_use":
            return True
        if whole_call(block, "") is not block or block["id"] in self._seen:
            return False
        self._seen.add(block["id"])
        self.waiting[block["id"]] = block
        return True
