"""Many speakers, of whom the model plays one: what they say is told to it as a history."""

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
from .turns import Text, Turn, turn_of

HISTORY_PROMPT = "# Conversation history\nWhat was said so far stands between the history tags.\n"
_CLOSING = re.compile(r"</(?=\s*history)", re.IGNORECASE)


class MultiAgentFormatter(TruncatedFormatterBase):
    """Formats a conversation of many in the dialect of a provider.

    Messages in a row without tool calls become one message of the user, each with its speaker's
    name, within history tags, and the first of them with ``conversation_history_prompt``. Tool
    calls and their results stay what they are. Media in results: see ``ChatFormatter``.
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

    def _turns(self, groups: list[list[Msg]]) -> Iterator[Turn]:
        prompt = self.conversation_history_prompt
        run: list[Turn] = []
        is_beginning = True
        for group in groups:
            said = turn_of(group[0])
            is_beginning = is_beginning and said.role == "system"
            if is_beginning:
                yield Turn("system", parts=said.parts)
            elif not said.calls:
                run.append(said)
            else:
                for history in _told(run, prompt):
                    yield history
                    prompt = ""
                run = []
                yield from turns_with_media(group, self.dialect, self._promoted)
        yield from _told(run, prompt)


def _told(run: list[Turn], prompt: str) -> Iterator[Turn]:
    """Yield one turn in which the user tells what all said, if anybody said anything."""
    said = list(_lines(run))
    if said:
        tagged = [Text(f"{prompt}<history>\n"), *said, Text("\n</history>")]
        yield Turn("user", parts=tuple(_joined(tagged)))


def _lines(run: list[Turn]) -> Iterator[Text | Media]:
    """Yield what was said, with the names of those who did. Nobody tells what others think."""
    is_next_line = False
    for turn in run:
        name = " ".join(turn.name.split())
        for part in turn.parts:
            if isinstance(part, Text):
                line = _CLOSING.sub(r"<\\/", f"{name}: {part.text}")  # so nobody can end it
                yield Text(f"\n{line}" if is_next_line else line)
                is_next_line = True
            elif isinstance(part, Media):
                yield part
                is_next_line = False


def _joined(parts: list[Text | Media]) -> Iterator[Text | Media]:
    """Yield the same with texts in a row as one."""
    for is_text, run in groupby(parts, lambda part: isinstance(part, Text)):
        if is_text:
            yield Text("".join(part.text for part in run if isinstance(part, Text)))
        else:
            yield from run
