"""``repair``: fixes histories that a crash, an interrupt or a broken stream left incomplete.

Providers reject a conversation in which a tool call has no result, a result has no call, or other
content separates the two. ``repair`` returns a history they accept and lists the repairs. Nothing
is lost: a result without its call becomes text, and a call without a result gets one that says so.
Repair is deterministic and idempotent. A prefix is repaired as if nothing followed, except that a
result that arrives later replaces the note that there was none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from .block_repair import (
    as_block,
    blocks_of_output,
    is_block,
    named_id,
    whole_call,
    whole_result,
    with_content,
)
from .msg import Msg, peek_content
from .pairing import OpenCalls, PairedCall, UniqueNames
from .tool_blocks import TOOL_TYPES, Block, calls_in, results_in
from .wholeness import is_whole

__all__ = [
    "NO_RESULT",
    "Block",
    "Repair",
    "Repaired",
    "Trouble",
    "calls_in",
    "repair",
    "results_in",
]

Trouble: TypeAlias = Literal[
    "unanswered_call",  # got a result that says there is none
    "orphan_result",  # became text: its call is missing, or already has a result
    "moved_result",  # now follows its call directly, in a message without other content
    "repeated_id",  # an earlier call had the same id; this call and its result got a new one
    "broken_call",  # id, name or arguments were missing or unreadable
    "broken_result",  # name or output was missing or unreadable
    "broken_block",  # became text
]

NO_RESULT = "There is no result: the call was interrupted, or its result was lost."
_ORPHAN = "Result of an earlier call of {name}, which is no longer part of this conversation:"


class Repair(Struct, frozen=True):
    """One repair: what was wrong, in which message, and for which tool call."""

    trouble: Trouble
    message_id: str
    tool_id: str = ""


class Repaired(NamedTuple):
    """A history that every provider accepts, and the repairs that were made."""

    messages: list[Msg]
    repairs: tuple[Repair, ...]


def repair(messages: Sequence[Msg]) -> Repaired:
    """Return the history with every tool call directly followed by its result.

    The given messages are not changed. Messages that need no repair are returned as the same
    objects.

    Args:
        messages: The history, in order.

    Returns:
        The repaired messages, and the repairs that were made.

    Examples:
        >>> repair([Msg("ann", "Hello!", "user")]).repairs
        ()
    """
    if is_whole(messages):
        return Repaired(list(messages), ())
    return _Repairer(messages).run()


def _may_need_repair(msg: Msg) -> bool:
    content = peek_content(msg)
    if isinstance(content, str):
        return False
    return any(not is_block(block) or block["type"] in TOOL_TYPES for block in content)


class _Repairer:
    """One repair. ``kept`` are the messages without results; results are kept by their call."""

    def __init__(self, messages: Sequence[Msg]) -> None:
        self.messages = messages
        self.repairs: list[Repair] = []
        self.kept: list[Msg] = []
        self.results: dict[int, list[Msg]] = {}  # position of the call's message → its results
        self.calls: dict[int, list[PairedCall]] = {}
        self.open = OpenCalls()
        self.call_ids = UniqueNames()
        self.message_ids = UniqueNames(msg.id for msg in messages)

    def run(self) -> Repaired:
        for msg in self.messages:
            self._take(msg)
        return Repaired(self._in_order(), tuple(self.repairs))

    def _take(self, msg: Msg) -> None:
        if not _may_need_repair(msg):
            self.kept.append(msg)
            return
        blocks = [self._whole(msg, block) for block in peek_content(msg)]
        results = [block for block in blocks if block["type"] == "tool_result"]
        others = [block for block in blocks if block["type"] != "tool_result"]
        if others:
            self._keep(msg, others)
        if results:
            self._pair(msg, results, is_all=not others)

    def _whole(self, msg: Msg, block: object) -> Block:
        if is_block(block):
            return block  # type: ignore[return-value]  # as of the line above
        self._note("broken_block", msg)
        return as_block(block)

    def _keep(self, msg: Msg, blocks: list[Block]) -> None:
        place = len(self.kept)
        repaired = [self._call(msg, block, place, at) for at, block in enumerate(blocks)]
        self.kept.append(msg if _is_all_of(repaired, msg) else with_content(msg, repaired))

    def _call(self, msg: Msg, block: Block, place: int, at: int) -> Block:
        """Register a tool call under a unique id; return the block, repaired if necessary."""
        if block["type"] != "tool_use":
            return block
        whole = whole_call(block, f"call-{msg.id}-{at}")
        if whole is not block:
            self._note("broken_call", msg, whole["id"])
        named = whole["id"]
        id = self.call_ids.fresh(named)
        if id != named:
            self._note("repeated_id", msg, named)
            whole = {**whole, "id": id}
        call = PairedCall(whole, place)
        self.calls.setdefault(place, []).append(call)
        self.open.add(named, call)
        return whole

    def _pair(self, msg: Msg, results: list[Block], is_all: bool) -> None:
        """Move results to their calls; a message stays whole if all its results go to one place."""
        answers: dict[int, list[Block]] = {}
        orphans: list[Block] = []
        for result in results:
            call = self.open.take(named_id(result))
            if call is None:
                orphans.append(result)
            else:
                answer = self._answer(msg, result, call, is_all)
                answers.setdefault(call.place, []).append(answer)
        is_whole = is_all and len(answers) + bool(orphans) == 1
        for number, (place, blocks) in enumerate(answers.items(), 1):
            is_same = is_whole and _is_all_of(blocks, msg)
            id = msg.id if is_whole else self.message_ids.fresh(f"{msg.id}.result-{number}")
            self.results.setdefault(place, []).append(
                msg if is_same else with_content(msg, blocks, id=id)
            )
        if orphans:
            id = msg.id if is_whole else self.message_ids.fresh(f"{msg.id}.text")
            self.kept.append(self._as_text(msg, orphans, id))

    def _answer(self, msg: Msg, result: Block, call: PairedCall, is_all: bool) -> Block:
        call.is_answered = True
        if not is_all or call.place + 1 != len(self.kept):
            self._note("moved_result", msg, call.id)
        whole = whole_result(result, call.block)
        if any(whole[key] is not result.get(key) for key in ("name", "output")):
            self._note("broken_result", msg, call.id)
        return whole

    def _as_text(self, msg: Msg, orphans: list[Block], id: str) -> Msg:
        content: list[Block] = []
        for result in orphans:
            self._note("orphan_result", msg, named_id(result))
            content.append(as_block(_ORPHAN.format(name=result.get("name") or "a tool")))
            content += blocks_of_output(result.get("output", ""))
        return with_content(msg, content, "user", id)

    def _in_order(self) -> list[Msg]:
        ordered: list[Msg] = []
        for place, msg in enumerate(self.kept):
            ordered.append(msg)
            ordered += self.results.get(place, [])
            missing = [call for call in self.calls.get(place, []) if not call.is_answered]
            ordered += [self._no_result(msg, call) for call in missing]
        return ordered

    def _no_result(self, msg: Msg, call: PairedCall) -> Msg:
        self._note("unanswered_call", msg, call.id)
        name = call.block["name"]
        block = {"type": "tool_result", "id": call.id, "name": name, "output": NO_RESULT}
        id = self.message_ids.fresh(f"{msg.id}.no-result.{call.id}")
        return with_content(msg, [block], "system", id)

    def _note(self, trouble: Trouble, msg: Msg, tool_id: str = "") -> None:
        self.repairs.append(Repair(trouble, msg.id, tool_id))


def _is_all_of(blocks: list[Block], msg: Msg) -> bool:
    """Return whether these blocks are exactly those of the message."""
    content = peek_content(msg)
    return len(blocks) == len(content) and all(
        new is old for new, old in zip(blocks, content, strict=True)
    )
