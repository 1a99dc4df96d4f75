"""``Dialect``: how one provider wants a conversation, and how names are made to fit."""

from __future__ import annotations

import hashlib
import logging
import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

from .arranging import Order
from .media import Media
from .turns import Call, Part, Result, Speaker, Text, Thought, Turn, is_plain

logger = logging.getLogger(__name__)

Message: TypeAlias = dict[str, Any]

NO_OUTPUT = "(The tool gave no output.)"
_GIVEN_OUT = re.compile(r"id_[0-9a-f]{32}", re.ASCII)


class Dialect(ABC):
    """A provider's form of messages. A small class each; all else is written once."""

    order: ClassVar[Order]
    call_ids: ClassVar[re.Pattern[str]]  # what ids of calls look like
    name_signs: ClassVar[re.Pattern[str]] = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)  # the others
    longest_name: ClassVar[int] = 64
    media_in_results: ClassVar[bool] = False
    thinks: ClassVar[bool] = False  # takes thoughts back

    @abstractmethod
    def takes(self, media: Media) -> bool:
        """Tell whether a user can send this."""

    @abstractmethod
    def render(self, turn: Turn) -> list[Message]:
        """Return a turn as messages. All in it fits: names, ids, media."""

    def shows(self, role: Speaker) -> bool:
        """Tell whether somebody can send media at all."""
        return role == "user"

    def fitted(self, turn: Turn) -> Turn:
        """Return a turn in which all fits: other ids, other names, words in place of media."""
        if is_plain(turn):
            return turn
        parts = [self._fitted(part, turn.role) for part in self._without_thoughts(turn)]
        calls = [Call(self.id(id), self.name(name), args) for id, name, args in turn.calls]
        results = map(self._fitted_result, turn.results)
        return Turn(turn.role, turn.name, tuple(parts), tuple(calls), tuple(results))

    def id(self, id: str) -> str:
        """Return an id that fits: the same if it can be, else one that is always the same.

        No id that is kept looks like one that is made, so two never become one.
        """
        if self.call_ids.fullmatch(id) and not _GIVEN_OUT.fullmatch(id):
            return id
        return f"id_{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

    def name(self, name: str) -> str:
        """Return a tool's name as the provider takes it."""
        fitted = self.name_signs.sub("_", name)[: self.longest_name]
        return fitted if fitted.strip("_") else "unknown_tool"

    def _without_thoughts(self, turn: Turn) -> list[Part]:
        kept = [
            part
            for part in turn.parts
            if not isinstance(part, Thought) or self._keeps(part, turn.role)
        ]
        if len(kept) < len(turn.parts):
            logger.debug("%d thoughts are left out", len(turn.parts) - len(kept))
        return kept

    def _keeps(self, thought: Thought, role: Speaker) -> bool:
        return self.thinks and role == "assistant"

    def _fitted(self, part: Part, role: Speaker) -> Part:
        if isinstance(part, Media) and not (self.shows(role) and self.takes(part)):
            return Text(part.stub)
        return part

    def _fitted_result(self, result: Result) -> Result:
        parts = tuple(
            Text(part.stub)
            if isinstance(part, Media) and not (self.media_in_results and self.takes(part))
            else part
            for part in result.parts
        )
        return Result(self.id(result.id), self.name(result.name), parts or (Text(NO_OUTPUT),))


def text_of(parts: tuple[Part, ...]) -> str:
    """Return the texts among parts, one below the other."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def text_of_result(result: Result) -> str:
    """Return what a tool answered as text: one as it is, several as a list."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return texts[0] if len(texts) == 1 else "\n".join(f"- {text}" for text in texts)
