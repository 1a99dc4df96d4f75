"""Repair on write: a history that a crash or an interrupt left open is closed where it is stored.

Formatters and the context window repair what they read, each time anew. Once a result is stored
for every call, there is less to repair, and whoever else reads the memory sees the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ..message import Msg, Repair, repair
from ..message.repairing import NO_RESULT, Block, calls_in, results_in
from .base import MemoryBase


async def repair_memory(memory: MemoryBase) -> tuple[Repair, ...]:
    """Store a result for every call that has none, and return what was mended.

    The result says that there is none. It is stored at the end, where alone memories take
    something in; readers put it behind its call. What else may be wrong, such as a result without
    its call, cannot be mended by adding and is left to them too, and so are messages that are
    marked ``compressed``. Doing it again changes nothing, nor does doing it twice at once. Not
    while a tool is at work: its result is still to come.
    """
    missing = missing_results((await memory.read_pages()).messages)
    if missing:
        await memory.add([result for _, result in missing])
    return tuple(
        Repair("unanswered_call", call.id, results_in(result)[0]["id"]) for call, result in missing
    )


def missing_results(messages: Sequence[Msg]) -> list[tuple[Msg, Msg]]:
    """Return each unanswered call's message, and the result that answers it when added."""
    mended, repairs = repair(messages)
    open_calls = {
        (each.message_id, each.tool_id) for each in repairs if each.trouble == "unanswered_call"
    }
    if not open_calls:
        return []
    given = {msg.id: msg for msg in messages}
    return [
        (given[msg.id], _no_result(msg, _id_for_results(call, said), call))
        for msg in mended
        for call, said in zip(calls_in(msg), calls_in(given.get(msg.id, msg)), strict=True)
        if (msg.id, call["id"]) in open_calls
    ]


def _id_for_results(call: Block, said: Block) -> str:
    """Return what a result must name to be this call's: its id as said, if it has a usable one."""
    id = said.get("id")
    return id if isinstance(id, str) and id else str(call["id"])


def _no_result(msg: Msg, named: str, call: Block) -> Msg:
    block: Block = {"type": "tool_result", "id": named, "name": call["name"], "output": NO_RESULT}
    result = Msg("system", [block], "system")  # type: ignore[list-item]  # blocks are plain dicts
    exact = f"{len(msg.id)}:{msg.id}{call['id']}".encode("utf-8", "surrogatepass")
    result.id = hashlib.sha256(exact).hexdigest()[:32]  # the same for all who mend it
    return result
