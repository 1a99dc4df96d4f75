"""The contract of summarisers, and the message that replaces summarised messages.

The message holds the summary and the handles of the originals. It can be parsed from its text, so
storing the text is enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...message import Msg
from ...message.msg import peek_content
from ..archive import digest_of

MOST_HANDLES = 12  # named in one summary; older ones move to an archived index
_NOTE = "[{count} earlier messages left the context. To read them: read_memory({handles})]"
_OR = '") or ("'  # between handles, so that the note reads as calls
_SHAPE = re.compile(
    r"\[(\d{1,12}) earlier messages left the context\. To read them: "
    r'read_memory\(("[0-9a-f]{16,64}"(?:\) or \("[0-9a-f]{16,64}")*)\)\]'
)
_ENDS = re.compile(r"(?<=[.!?。！？…\n])")


class Summariser(Protocol):
    """Merges messages that leave the context into the earlier summary.

    Example::

        async def headlines(earlier, messages, max_tokens):
            return " ".join([earlier, *(str(msg.content)[:80] for msg in messages)])
        compactor = Compactor(Limits(budget=8000), summariser=headlines)
    """

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return one text that replaces both.

        Args:
            earlier: The summary so far; "" if there is none.
            messages: The messages that leave.
            max_tokens: The most tokens of the text, by estimate. A longer one is clipped.

        Raises:
            Exception: Any error; the compactor then uses ``ExtractiveSummary`` and reports it.
        """


class SummaryMessage(NamedTuple):
    """A summary, the number of messages it replaces, and their handles, oldest first."""

    body: str = ""
    messages: int = 0
    handles: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> SummaryMessage:
        """Parse a summary message; any other text becomes a body without handles."""
        start = text.rfind("[")
        note = _SHAPE.fullmatch(text, start) if start >= 0 else None
        if note is None:
            return cls(text)
        handles = re.findall(r'"([0-9a-f]+)"', note[2])
        return cls(text[:start].removesuffix("\n\n"), int(note[1]), tuple(handles))

    @property
    def text(self) -> str:
        """The body and the note with the handles; "" if nothing was summarised."""
        if not self.handles:
            return self.body
        handles = f'"{_OR.join(self.handles)}"'
        note = _NOTE.format(count=self.messages, handles=handles)
        return f"{self.body}\n\n{note}" if self.body else note

    @property
    def bare(self) -> SummaryMessage:
        """The same without a body."""
        return self._replace(body="")

    def message(self, timestamp: str) -> Msg:
        """Return the message to show. Its id depends only on the text."""
        msg = Msg("user", self.text, "user", timestamp=timestamp)
        msg.id = f"summary-{digest_of('text', self.text)[:16]}"
        return msg


def is_summary(msg: Msg) -> bool:
    """Return whether a message is a summary message, not one of the conversation."""
    content = peek_content(msg)
    return isinstance(content, str) and msg.id == SummaryMessage(content).message("").id


def clipped(text: str, length: int) -> str:
    """Return at most ``length`` characters, up to the end of a sentence if one is near."""
    if len(text) <= length:
        return text
    cut = text[: max(0, length - 1)]
    ends = [match.end() for match in _ENDS.finditer(cut)]
    if ends and ends[-1] > length // 2:
        return cut[: ends[-1]].rstrip()
    return f"{cut.rstrip()}…" if cut else ""
