"""Atomic groups: what may only leave a conversation together."""

from __future__ import annotations

from collections.abc import Sequence

from .msg import Msg, peek_content
from .tool_blocks import calls_in, results_in


def groups_of(messages: Sequence[Msg]) -> list[list[Msg]]:
    """Divide a repaired history: a message with tool calls and all their results are one group.

    Every other message is a group of its own. The groups, one after another, are the history.
    """
    groups: list[list[Msg]] = []
    waiting = 0  # results that the last group still expects
    for msg in messages:
        if isinstance(peek_content(msg), str):
            groups.append([msg])
            waiting = 0
            continue
        results = len(results_in(msg))
        if results and waiting:
            groups[-1].append(msg)
            waiting -= results
        else:
            groups.append([msg])
            waiting = len(calls_in(msg))
    return groups
