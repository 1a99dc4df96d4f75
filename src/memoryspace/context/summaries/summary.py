"""The message that stands for those that were summarised: what they said, and where they are.

It is written so that it can be read back: whoever keeps its text keeps the whole of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...message import Msg
from ...message.msg import peek_content
from ..archive import digest_of

MOST_HANDLES = 12  # that one stand-in names; older ones are named in a list of their own
_NOTE = "[{count} earlier messages left the context. To read them: read_memory({handles})]"
_OR = '") or ("'  # between handles, so that what is named are calls
_SHAPE = re.compile(
    r"\[(\d{1,12}) earlier messages left the context\. To read them: "
    r'read_memory\(("[0-9a-f]{16,64}"(?:\) or \("[0-9a-f]{16,64}")*)\)\]'
)
_ENDS = re.compile(r"(?<=[.!?。！？…\n])")


class Summariser(Protocol):
    """Merges messages that leave into what earlier summaries said."""

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return one text that stands for both. It may raise: another one then does the work."""


class SummaryMessage(NamedTuple):
    """A summary, of how many messages, and the handles of what they were, oldest first."""

    body: str = ""
    messages: int = 0
    handles: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> SummaryMessage:
        """Read a stand-in's text; a text of anybody else is a body and nothing more."""
        start = text.rfind("[")
        note = _SHAPE.fullmatch(text, start) if start >= 0 else None
        if note is None:
            return cls(text)
        handles = re.findall(r'"([0-9a-f]+)"', note[2])
        return cls(text[:start].removesuffix("\n\n"), int(note[1]), tuple(handles))

    @property
    def text(self) -> str:
        """All of it as one text; empty if nothing was summarised."""
        if not self.handles:
            return self.body
        handles = f'"{_OR.join(self.handles)}"'
        note = _NOTE.format(count=self.messages, handles=handles)
        return f"{self.body}\n\n{note}" if self.body else note

    @property
    def bare(self) -> SummaryMessage:
        """The same without its text."""
        return self._replace(body="")

    def message(self, timestamp: str) -> Msg:
        """Return the message that is shown: the same one for the same text."""
        msg = Msg("user", self.text, "user", timestamp=timestamp)
        msg.id = f"summary-{digest_of('text', self.text)[:16]}"
        return msg


def is_summary(msg: Msg) -> bool:
    """Return whether a message is a summary message, not one of the conversation."""
    content = peek_content(msg)
    return isinstance(content, str) and msg.id == SummaryMessage(content).message("").id


def clipped(text: str, length: int) -> str:
    """Return at most so many characters of a text, up to the end of a sentence if one is near."""
    if len(text) <= length:
        return text
    cut = text[: max(0, length - 1)]
    ends = [match.end() for match in _ENDS.finditer(cut)]
    if ends and ends[-1] > length // 2:
        return cut[: ends[-1]].rstrip()
    return f"{cut.rstrip()}…" if cut else ""
