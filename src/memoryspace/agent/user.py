"""``UserAgent``: an agent that replies with the input of a user."""

from __future__ import annotations

from typing import ClassVar

from ..errors import InvalidInput
from ..message import Msg
from ..message.msg import Content
from ..model.base import StructuredModel
from .base import AgentBase
from .user_input import TerminalUserInput, UserInputBase, UserInputData


class UserAgent(AgentBase):
    """An agent that replies with the input of a user, by default from the terminal.

    ``observe`` does nothing: the input method decides what the user sees of the conversation.

    Args:
        name: The name of the user, used as the name of the replies.
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
        """Ask the user and return the input.

        Args:
            msg: Not used; the input method shows the conversation.
            structured_model: The schema of a structured input, which becomes the metadata of the
                reply.
        """
        data = await self._input_method(self.id, self.name, structured_model=structured_model)
        said = Msg(self.name, _content(data), "user", metadata=data.structured_input)
        await self.print(said)
        return said

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Do nothing: users remember for themselves."""

    async def handle_interrupt(
        self,
        msg: Msg | list[Msg] | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Msg:
        """Raise ``NotImplementedError``: a user has no automatic reply to an interrupt."""
        raise NotImplementedError("a UserAgent has no automatic reply to an interrupt")

    def override_instance_input_method(self, input_method: UserInputBase) -> None:
        """Set the input method of this user."""
        self._own_input_method = _checked(input_method)

    @classmethod
    def override_class_input_method(cls, input_method: UserInputBase) -> None:
        """Set the input method of this class and its subclasses."""
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
