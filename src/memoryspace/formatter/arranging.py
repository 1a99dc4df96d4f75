"""Who may speak when: turns in an order that a provider takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from .turns import Speaker, Text, Turn

# What is said where a provider wants somebody to speak who did not.
NOTHING_SAID = "(Nothing has been said yet.)"
BEGINNING_LEFT_OUT = "(What was said before is not shown.)"
GO_ON = "(Please go on.)"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a provider demands of the order of turns."""

    system: Literal["anywhere", "first", "never"] = "anywhere"  # elsewhere it is a user's turn
    user_first: bool = False
    user_last: bool = False  # or a tool
    together: frozenset[Speaker] = frozenset()  # turns of theirs in a row are one
    results_by_user: bool = False  # a tool's turn is part of the user's behind it


def arranged(turns: Sequence[Turn], order: Order) -> list[Turn]:
    """Return the turns in the order a provider takes; there is at least one."""
    if not turns:
        return [_spoken(NOTHING_SAID)]
    leading = _leading_system(turns)
    system = list(turns[:leading]) if order.system != "never" else []
    rest = turns[len(system) :]
    if order.system != "anywhere":
        system = [_joined(system)] if system else []
        rest = [replace(turn, role="user") if turn.role == "system" else turn for turn in rest]
    return [*system, *_completed(list(_together(rest, order)), order)]


def _leading_system(turns: Sequence[Turn]) -> int:
    speakers = [turn.role for turn in turns]
    return next((at for at, role in enumerate(speakers) if role != "system"), len(turns))


def _joined(turns: Sequence[Turn]) -> Turn:
    if len(turns) == 1:
        return turns[0]
    return replace(
        turns[0],
        parts=tuple(part for turn in turns for part in turn.parts),
        calls=tuple(call for turn in turns for call in turn.calls),
        results=tuple(result for turn in turns for result in turn.results),
    )


def _together(turns: Sequence[Turn], order: Order) -> Iterator[Turn]:
    if not order.together and not order.results_by_user:
        yield from turns
        return
    run: list[Turn] = []
    for given in turns:
        is_result = order.results_by_user and given.role == "tool"
        turn = replace(given, role="user") if is_result else given
        if run and not (turn.role == run[0].role and turn.role in order.together):
            yield _joined(run)
            run = []
        run.append(turn)
    if run:
        yield _joined(run)


def _completed(turns: list[Turn], order: Order) -> list[Turn]:
    """Let the user speak where it must."""
    if order.user_first and (not turns or turns[0].role != "user"):
        turns.insert(0, _spoken(BEGINNING_LEFT_OUT if turns else NOTHING_SAID))
    if order.user_last and turns and turns[-1].role == "assistant":
        turns.append(_spoken(GO_ON))
    return turns


def _spoken(text: str) -> Turn:
    return Turn("user", parts=(Text(text),))
