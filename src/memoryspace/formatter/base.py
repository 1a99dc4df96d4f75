"""``FormatterBase``: converts messages to the dicts of one provider's API."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..message import Msg
from ..message.block_repair import blocks_of_output
from .dialect import text_of_result
from .media import KINDS, Media, media_of
from .turns import TextPart, ToolResult, parts_of_output


class FormatterBase(ABC):
    """Base class of formatters, which convert a conversation to a prompt.

    The prompt is valid for the provider whatever the input: histories are repaired first. The given
    messages are not changed.
    """

    @abstractmethod
    async def format(self, msgs: list[Msg]) -> list[dict[str, Any]]:
        """Convert messages to the format of the provider's API.

        Args:
            msgs: The conversation, in order.

        Returns:
            The prompt; empty if there are no messages.
        """

    async def format_group(self, group: list[Msg]) -> list[dict[str, Any]]:
        """Convert a part of a history without truncating it, to measure its length."""
        return await self.format(group)

    @staticmethod
    def assert_list_of_msgs(msgs: Any) -> None:
        """Raise ``TypeError`` unless this is a list of ``Msg``."""
        if not isinstance(msgs, list) or not all(isinstance(msg, Msg) for msg in msgs):
            raise TypeError("a formatter takes a list of Msg")

    @staticmethod
    def convert_tool_result_to_string(
        output: str | list[Any],
    ) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """Convert a tool's output to text, and list its media.

        The text says where media can be found, or describes inline media. No file is written. One
        text block is returned as it is; several become a list.

        Returns:
            The text, and a list of ``(url, block)``; inline media have a data URL.
        """
        blocks = blocks_of_output(output)
        media = [(media_of(block).url, block) for block in blocks if block["type"] in KINDS]
        parts = [
            TextPart(part.stub) if isinstance(part, Media) else part
            for part in parts_of_output(blocks)
        ]
        return text_of_result(ToolResult("", "", tuple(parts))), media
