"""Formatting of conversations of one user and one assistant: every message is a turn."""

from __future__ import annotations

from typing import Any, ClassVar

from ..message import Msg, groups_of
from ..token import TokenCounterBase
from .dialect import Dialect
from .prompting import kinds_of, prompt_of, turns_with_media
from .truncating import TruncatedFormatterBase


class ChatFormatter(TruncatedFormatterBase):
    """Formats a conversation of a user and an assistant for one provider.

    Media in tool results are sent where the provider accepts them there. Otherwise the result says
    where they can be found.

    Args:
        token_counter: Counts tokens; estimated by default.
        max_tokens: The largest prompt; see ``TruncatedFormatterBase``.
        promote_tool_result_images: Whether to also send images in a user message after the
            results; likewise for audios and videos.
    """

    dialect: ClassVar[Dialect]

    def __init__(
        self,
        token_counter: TokenCounterBase | None = None,
        max_tokens: int | None = None,
        *,
        promote_tool_result_images: bool = False,
        promote_tool_result_audios: bool = False,
        promote_tool_result_videos: bool = False,
    ) -> None:
        super().__init__(token_counter, max_tokens)
        self._promoted = kinds_of(
            images=promote_tool_result_images,
            audios=promote_tool_result_audios,
            videos=promote_tool_result_videos,
        )

    async def _format(self, msgs: list[Msg]) -> list[dict[str, Any]]:
        turns = [
            turn
            for group in groups_of(msgs)
            for turn in turns_with_media(group, self.dialect, self._promoted)
        ]
        return prompt_of(turns, self.dialect)
