"""Arranges turns in an order that a provider accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from .turns import PromptTurn, Speaker, TextPart

# Inserted where a provider requires a turn that is missing.
NOTHING_SAID = "(Nothing has been said yet.)"
BEGINNING_LEFT_OUT = "(What was said before is not shown.)"
GO_ON = "(Please go on.)"


@dataclass(frozen=True, kw_only=True)
class TurnOrder:
    """A provider's requirements on the order of turns."""

    # Where system turns may be; elsewhere they become user turns.
    system: Literal["anywhere", "first", "never"] = "anywhere"
    user_first: bool = False
    user_last: bool = False  # or a tool result
    together: frozenset[Speaker] = frozenset()  # roles whose consecutive turns are merged
    results_by_user: bool = False  # a tool turn is merged into the user turn after it


def arranged(turns: Sequence[PromptTurn], order: TurnOrder) -> list[PromptTurn]:
    """Return the turns in an order that the provider accepts; there is at least one."""
    if not turns:
        return [_spoken(NOTHING_SAID)]
    leading = _leading_system(turns)
    system = list(turns[:leading]) if order.system != "never" else []
    rest = turns[len(system) :]
    if order.system != "anywhere":
        system = [_joined(system)] if system else []
        rest = [replace(turn, role="user") if turn.role == "system" else turn for turn in rest]
    return [*system, *_completed(list(_together(rest, order)), order)]


def _leading_system(turns: Sequence[PromptTurn]) -> int:
    speakers = [turn.role for turn in turns]
    return next((at for at, role in enumerate(speakers) if role != "system"), len(turns))


def _joined(turns: Sequence[PromptTurn]) -> PromptTurn:
    if len(turns) == 1:
        return turns[0]
    return replace(
        turns[0],
        parts=tuple(part for turn in turns for part in turn.parts),
        calls=tuple(call for turn in turns for call in turn.calls),
        results=tuple(result for turn in turns for result in turn.results),
    )


def _together(turns: Sequence[PromptTurn], order: TurnOrder) -> Iterator[PromptTurn]:
    if not order.together and not order.results_by_user:
        yield from turns
        return
    run: list[PromptTurn] = []
    for given in turns:
        is_result = order.results_by_user and given.role == "tool"
        turn = replace(given, role="user") if is_result else given
        if run and not (turn.role == run[0].role and turn.role in order.together):
            yield _joined(run)
            run = []
        run.append(turn)
    if run:
        yield _joined(run)


def _completed(turns: list[PromptTurn], order: TurnOrder) -> list[PromptTurn]:
    """Insert user turns where the provider requires them."""
    if order.user_first and (not turns or turns[0].role != "user"):
        turns.insert(0, _spoken(BEGINNING_LEFT_OUT if turns else NOTHING_SAID))
    if order.user_last and turns and turns[-1].role == "assistant":
        turns.append(_spoken(GO_ON))
    return turns


def _spoken(text: str) -> PromptTurn:
    return PromptTurn("user", parts=(TextPart(text),))
