"""Atomic groups: messages that only leave a conversation together."""

from __future__ import annotations

from collections.abc import Sequence

from .msg import Msg, peek_content
from .tool_blocks import calls_in, results_in


def groups_of(messages: Sequence[Msg]) -> list[list[Msg]]:
    """Split a repaired history into atomic groups.

    A message with tool calls and all their results form one group; every other message is its own
    group. Concatenated, the groups are the history.

    Args:
        messages: A history in which every call is followed by its results; see ``repair``.

    Returns:
        The groups, in order.
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
