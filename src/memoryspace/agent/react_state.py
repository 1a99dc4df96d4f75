"""The state of one reply while it is worked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..formatter.truncating import IS_HINT
from ..message import Msg
from ..message.tool_blocks import calls_in
from ..model import ToolChoice
from ..model.prompting import tagged
from .react_structured import StructuredAnswer

HINT_TAG = "system-hint"
_EMPTY = "Your last answer was empty. Go on with the task, or give your answer."


@dataclass
class ReplyState:
    """The messages to answer, the memories about them, and the schema of the answer.

    ``nudge`` is a hint for the model's next step only.
    """

    asked: Sequence[Msg] = ()
    recalled: Msg | None = None
    structured: StructuredAnswer | None = None
    nudge: str = ""

    @property
    def tool_choice(self) -> ToolChoice | None:
        """Whether the model must call a tool."""
        return None if self.structured is None else "required"

    def answer(self, said: Msg) -> Msg | None:
        """Return the answer if there is one, or None if the model must continue."""
        if self.structured is not None:
            return self._structured_answer(said)
        if calls_in(said):
            return None
        if says_something(said):
            return said
        self.nudge = _EMPTY
        return None

    def _structured_answer(self, said: Msg) -> Msg | None:
        assert self.structured is not None  # the caller has checked
        text = said.get_text_content()
        has_calls = bool(calls_in(said))
        if self.structured.value is None and not has_calls and self.structured.read(text or ""):
            return Msg(said.name, text or "", "assistant", self.structured.value)
        if self.structured.value is not None:
            words = text if text else self.structured.text
            return Msg(said.name, words, "assistant", self.structured.value)
        if not has_calls:
            self.nudge = self.structured.reminder
        return None


def hint(text: str) -> Msg:
    """Return a message to the model from the program, not from a user."""
    return Msg("user", tagged(HINT_TAG, text), "user", metadata={IS_HINT: True})


def says_something(msg: Msg) -> bool:
    """Return whether a message has text, tool calls or media, not only thinking blocks."""
    words = (msg.get_text_content() or "").strip()
    return bool(words or calls_in(msg) or msg.has_content_blocks(("image", "audio", "video")))
