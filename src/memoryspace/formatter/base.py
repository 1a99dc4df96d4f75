"""``FormatterBase``: messages become the dicts that one provider's API takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..message import Msg
from ..message.mending import blocks_of_output
from .dialect import text_of_result
from .media import KINDS, Media, media_of
from .turns import Result, Text, parts_of_output


class FormatterBase(ABC):
    """Turns a conversation into a prompt. What comes out is valid for the provider, whatever
    goes in: histories are repaired first, and nothing that is given is changed."""

    @abstractmethod
    async def format(self, msgs: list[Msg]) -> list[dict[str, Any]]:
        """Return the messages as the provider's API takes them; no messages make no prompt."""

    async def format_group(self, group: list[Msg]) -> list[dict[str, Any]]:
        """Return what becomes of a part of a history, for those who measure it: nothing is left
        out, however long it is."""
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
        """Return what a tool answered as text, and its media, each with where it is.

        The text says where media can be found, or what it is if it came along: such is in base64,
        its address is a data URL, and no file is written. One text stands alone, several are a
        list.
        """
        blocks = blocks_of_output(output)
        media = [(media_of(block).url, block) for block in blocks if block["type"] in KINDS]
        parts = [
            Text(part.stub) if isinstance(part, Media) else part for part in parts_of_output(blocks)
        ]
        return text_of_result(Result("", "", tuple(parts))), media
