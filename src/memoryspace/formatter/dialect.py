"""``Dialect``: the message format of one provider, and the adaptation of names and ids."""

from __future__ import annotations

import hashlib
import logging
import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

from .arranging import TurnOrder
from .media import Media
from .turns import Part, PromptTurn, Speaker, TextPart, ThoughtPart, ToolCall, ToolResult, is_plain

logger = logging.getLogger(__name__)

Message: TypeAlias = dict[str, Any]

NO_OUTPUT = "(The tool gave no output.)"
_GENERATED_ID = re.compile(r"id_[0-9a-f]{32}", re.ASCII)


class Dialect(ABC):
    """The message format of one provider. Everything else is shared by all formatters."""

    order: ClassVar[TurnOrder]
    call_ids: ClassVar[re.Pattern[str]]  # valid ids of tool calls
    # The characters that tool names must not have.
    name_signs: ClassVar[re.Pattern[str]] = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
    longest_name: ClassVar[int] = 64
    media_in_results: ClassVar[bool] = False
    thinks: ClassVar[bool] = False  # accepts thinking blocks

    @abstractmethod
    def takes(self, media: Media) -> bool:
        """Return whether a user message can contain this."""

    @abstractmethod
    def render(self, turn: PromptTurn) -> list[Message]:
        """Return an adapted turn as messages."""

    def shows(self, role: Speaker) -> bool:
        """Return whether messages of this role can contain media."""
        return role == "user"

    def fitted(self, turn: PromptTurn) -> PromptTurn:
        """Return a turn adapted to the provider: valid ids and names, text instead of media."""
        if is_plain(turn):
            return turn
        parts = [self._fitted(part, turn.role) for part in self._without_thoughts(turn)]
        calls = [ToolCall(self.id(id), self.name(name), args) for id, name, args in turn.calls]
        results = map(self._fitted_result, turn.results)
        return PromptTurn(turn.role, turn.name, tuple(parts), tuple(calls), tuple(results))

    def id(self, id: str) -> str:
        """Return a valid id: the same if possible, else a deterministic one.

        No id that is kept looks like a generated one, so two ids never become equal.
        """
        if self.call_ids.fullmatch(id) and not _GENERATED_ID.fullmatch(id):
            return id
        return f"id_{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

    def name(self, name: str) -> str:
        """Return a tool name that the provider accepts."""
        fitted = self.name_signs.sub("_", name)[: self.longest_name]
        return fitted if fitted.strip("_") else "unknown_tool"

    def _without_thoughts(self, turn: PromptTurn) -> list[Part]:
        kept = [
            part
            for part in turn.parts
            if not isinstance(part, ThoughtPart) or self._keeps(part, turn.role)
        ]
        if len(kept) < len(turn.parts):
            logger.debug("%d thinking blocks are left out", len(turn.parts) - len(kept))
        return kept

    def _keeps(self, thought: ThoughtPart, role: Speaker) -> bool:
        return self.thinks and role == "assistant"

    def _fitted(self, part: Part, role: Speaker) -> Part:
        if isinstance(part, Media) and not (self.shows(role) and self.takes(part)):
            return TextPart(part.stub)
        return part

    def _fitted_result(self, result: ToolResult) -> ToolResult:
        parts = tuple(
            TextPart(part.stub)
            if isinstance(part, Media) and not (self.media_in_results and self.takes(part))
            else part
            for part in result.parts
        )
        return ToolResult(
            self.id(result.id), self.name(result.name), parts or (TextPart(NO_OUTPUT),)
        )


def text_of(parts: tuple[Part, ...]) -> str:
    """Return the text parts, joined by newlines."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def text_of_result(result: ToolResult) -> str:
    """Return a tool result as text: one text as it is, several as a list."""
    texts = [part.text for part in result.parts if isinstance(part, TextPart)]
    return texts[0] if len(texts) == 1 else "\n".join(f"- {text}" for text in texts)
