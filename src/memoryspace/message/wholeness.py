"""Whether a history is whole: the quick look before a repair, which mostly finds nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .mending import is_block, whole_call, whole_result
from .msg import Msg, peek_content
from .tool_blocks import Block


def is_whole(messages: Sequence[Msg]) -> bool:
    """Tell whether every call is answered right behind it, once, and nothing is broken."""
    look = _Look()
    return all(map(look.passes, messages)) and not look.waiting


class _Look:
    """One walk over a history; ``waiting`` are the calls that the next message has to answer."""

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
        """Whether a block is the result of a call that waits, which then waits no more."""
        id = block.get("id")
        call = self.waiting.pop(id, None) if isinstance(id, str) else None
        if call is None or block["type"] != "tool_result":
            return False
        return whole_result(block, call) is block

    def _asks(self, block: Block) -> bool:
        """Let a call wait; anything else that is a block passes, too."""
        if block["type"] != "tool_use":
            return True
        if whole_call(block, "") is not block or block["id"] in self._seen:
            return False
        self._seen.add(block["id"])
        self.waiting[block["id"]] = block
        return True
