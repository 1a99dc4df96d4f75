"""Conversion of turns to a prompt, shared by chat and multi-agent formatters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ..message import Msg
from .arranging import arranged
from .dialect import Dialect
from .media import Media
from .plain import plain_text
from .turns import Part, PromptTurn, TextPart, ToolResult, has_content, turns_of


def prompt_of(turns: Iterable[PromptTurn], dialect: Dialect) -> list[dict[str, Any]]:
    """Return turns as messages of a dialect, in an order that it accepts."""
    fitted = [dialect.fitted(turn) for turn in turns]
    in_order = arranged([turn for turn in fitted if has_content(turn)], dialect.order)
    return [message for turn in in_order for message in dialect.render(turn)]


def kinds_of(*, images: bool, audios: bool, videos: bool) -> frozenset[str]:
    """Return the kinds of media to promote."""
    chosen = {"image": images, "audio": audios, "video": videos}
    return frozenset(kind for kind, is_chosen in chosen.items() if is_chosen)


def turns_with_media(
    group: list[Msg], dialect: Dialect, promoted: Collection[str]
) -> list[PromptTurn]:
    """Return the turns of a group, and a user turn with the promoted media of its results.

    Media that the provider accepts in a result are not promoted.
    """
    turns = turns_of(group)
    if dialect.media_in_results or not promoted:
        return turns
    results = [result for turn in turns for result in turn.results]
    shown = [part for result in results for part in _shown(result, dialect, promoted)]
    return [*turns, PromptTurn("user", parts=tuple(shown))] if shown else turns


def _shown(result: ToolResult, dialect: Dialect, promoted: Collection[str]) -> Iterator[Part]:
    media = [part for part in result.parts if isinstance(part, Media) and dialect.takes(part)]
    media = [part for part in media if part.kind in promoted]
    if media:
        yield TextPart(f"This is what the result of {plain_text(result.name)} shows:")
        yield from media
