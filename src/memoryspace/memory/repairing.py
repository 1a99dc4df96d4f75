"""Repair on write: adds missing tool results to a stored history after a crash or interrupt.

Formatters and the context window repair histories on every read. Once every call has a stored
result, other readers of the memory see the same repaired history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ..message import Msg, Repair, repair
from ..message.repairing import NO_RESULT, Block, calls_in, results_in
from .base import MemoryBase


async def repair_memory(memory: MemoryBase) -> tuple[Repair, ...]:
    """Store a result for every tool call that has none.

    The stored result says that there is none. It is appended, since memories only append; readers
    move it behind its call. Other defects, such as a result without its call, cannot be repaired by
    appending and are left to the readers, as are messages marked ``compressed``. Repeated or
    concurrent calls change nothing. Do not call it while a tool is running.

    Args:
        memory: The memory to repair.

    Returns:
        What was repaired.

    Example::

        for repair in await repair_memory(memory):
            print(repair.trouble, repair.tool_id)
    """
    missing = missing_results((await memory.read_pages()).messages)
    if missing:
        await memory.add([result for _, result in missing])
    return tuple(
        Repair("unanswered_call", call.id, results_in(result)[0]["id"]) for call, result in missing
    )


def missing_results(messages: Sequence[Msg]) -> list[tuple[Msg, Msg]]:
    """Return the message of each unanswered call with the result to add."""
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
    """Return the id by which a result refers to a call: the original one if it is usable."""
    id = said.get("id")
    return id if isinstance(id, str) and id else str(call["id"])


def _no_result(msg: Msg, named: str, call: Block) -> Msg:
    block: Block = {"type": "tool_result", "id": named, "name": call["name"], "output": NO_RESULT}
    result = Msg("system", [block], "system")  # type: ignore[list-item]  # blocks are plain dicts
    exact = f"{len(msg.id)}:{msg.id}{call['id']}".encode("utf-8", "surrogatepass")
    result.id = hashlib.sha256(exact).hexdigest()[:32]  # deterministic, so concurrent repairs agree
    return result
