"""Formatting of conversations of several agents: messages become a tagged history."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, ClassVar

from ..message import Msg, groups_of
from ..token import TokenCounterBase
from .dialect import Dialect
from .media import Media
from .prompting import kinds_of, prompt_of, turns_with_media
from .truncating import TruncatedFormatterBase
from .turns import PromptTurn, TextPart, turn_of

HISTORY_PROMPT = "# Conversation history\nWhat was said so far stands between the history tags.\n"
_CLOSING = re.compile(r"</(?=\s*history)", re.IGNORECASE)


class MultiAgentFormatter(TruncatedFormatterBase):
    """Formats a conversation of several agents for one provider.

    Consecutive messages without tool calls become one user message, in history tags and with the
    name of each speaker. Tool calls and their results stay separate messages.

    Args:
        conversation_history_prompt: Put before the first history.
        token_counter: Counts tokens; estimated by default.
        max_tokens: The largest prompt; see ``TruncatedFormatterBase``.
        promote_tool_result_images: As in ``ChatFormatter``; likewise for audios and videos.
    """

    dialect: ClassVar[Dialect]

    def __init__(
        self,
        conversation_history_prompt: str = HISTORY_PROMPT,
        token_counter: TokenCounterBase | None = None,
        max_tokens: int | None = None,
        *,
        promote_tool_result_images: bool = False,
        promote_tool_result_audios: bool = False,
        promote_tool_result_videos: bool = False,
    ) -> None:
        super().__init__(token_counter, max_tokens)
        self.conversation_history_prompt = conversation_history_prompt
        self._promoted = kinds_of(
            images=promote_tool_result_images,
            audios=promote_tool_result_audios,
            videos=promote_tool_result_videos,
        )

    async def _format(self, msgs: list[Msg]) -> list[dict[str, Any]]:
        return prompt_of(self._turns(groups_of(msgs)), self.dialect)

    def _turns(self, groups: list[list[Msg]]) -> Iterator[PromptTurn]:
        prompt = self.conversation_history_prompt
        run: list[PromptTurn] = []
        is_beginning = True
        for group in groups:
            said = turn_of(group[0])
            is_beginning = is_beginning and said.role == "system"
            if is_beginning:
                yield PromptTurn("system", parts=said.parts)
            elif not said.calls:
                run.append(said)
            else:
                for history in _history(run, prompt):
                    yield history
                    prompt = ""
                run = []
                yield from turns_with_media(group, self.dialect, self._promoted)
        yield from _history(run, prompt)


def _history(run: list[PromptTurn], prompt: str) -> Iterator[PromptTurn]:
    """Yield one user turn with all messages of a run; nothing if they are empty."""
    lines = list(_lines(run))
    if lines:
        tagged = [TextPart(f"{prompt}<history>\n"), *lines, TextPart("\n</history>")]
        yield PromptTurn("user", parts=tuple(_joined(tagged)))


def _lines(run: list[PromptTurn]) -> Iterator[TextPart | Media]:
    """Yield the texts with the names of their speakers, and the media; no thinking blocks."""
    is_next_line = False
    for turn in run:
        name = " ".join(turn.name.split())
        for part in turn.parts:
            if isinstance(part, TextPart):
                # No message can close the history tag.
                line = _CLOSING.sub(r"<\\/", f"{name}: {part.text}")
                yield TextPart(f"\n{line}" if is_next_line else line)
                is_next_line = True
            elif isinstance(part, Media):
                yield part
                is_next_line = False


def _joined(parts: list[TextPart | Media]) -> Iterator[TextPart | Media]:
    """Yield the parts with consecutive texts joined."""
    for is_text, run in groupby(parts, lambda part: isinstance(part, TextPart)):
        if is_text:
            yield TextPart("".join(part.text for part in run if isinstance(part, TextPart)))
        else:
            yield from run
