"""``UserAgent``: a person among the agents."""

from __future__ import annotations

from typing import ClassVar

from ..errors import InvalidInput
from ..message import Msg
from ..message.msg import Content
from ..model.base import StructuredModel
from .base import AgentBase
from .user_input import TerminalUserInput, UserInputBase, UserInputData


class UserAgent(AgentBase):
    """Replies with what a person says; by default at the terminal.

    What the person sees of the conversation is up to the input method; ``observe`` keeps nothing.
    """

    _class_input_method: ClassVar[UserInputBase] = TerminalUserInput()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._own_input_method: UserInputBase | None = None

    async def reply(
        self,
        msg: Msg | list[Msg] | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Msg:
        """Ask the person; what was given in the form asked for stands in the metadata."""
        data = await self._input_method(self.id, self.name, structured_model=structured_model)
        said = Msg(self.name, _content(data), "user", metadata=data.structured_input)
        await self.print(said)
        return said

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Keep nothing: a person remembers by themselves."""

    async def handle_interrupt(
        self,
        msg: Msg | list[Msg] | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Msg:
        """Say that nobody speaks for a person who is interrupted."""
        raise NotImplementedError("a UserAgent has no answer of its own to an interrupt")

    def override_instance_input_method(self, input_method: UserInputBase) -> None:
        """Ask this person in another way."""
        self._own_input_method = _checked(input_method)

    @classmethod
    def override_class_input_method(cls, input_method: UserInputBase) -> None:
        """Ask everybody of this class, and of its subclasses, in another way."""
        cls._class_input_method = _checked(input_method)

    @property
    def _input_method(self) -> UserInputBase:
        own = self._own_input_method
        return self._class_input_method if own is None else own


def _content(data: UserInputData) -> Content:
    blocks = data.blocks_input or []
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0].get("text", "")
    return [*blocks]


def _checked(input_method: UserInputBase) -> UserInputBase:
    if not isinstance(input_method, UserInputBase):
        raise InvalidInput(
            f"an input method must be a UserInputBase, got {type(input_method).__name__}"
        )
    return input_method
