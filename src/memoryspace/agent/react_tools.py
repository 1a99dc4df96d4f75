"""The tools of one agent: those of its toolkit, and its own.

The toolkit is only read, so several agents can share it while each uses its own memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

from ..message import ToolUseBlock
from ..model.schemas import Schema
from ..tool import ToolChooser, Toolkit, ToolResponse


class AgentTools:
    """An agent's own tools. They take precedence over tools of the same name in a toolkit."""

    def __init__(self, *, chooses: bool = False) -> None:
        self._own = Toolkit()
        self._chooses = chooses

    def add(self, functions: Iterable[Callable[..., Any]]) -> None:
        """Add functions of the agent; one of the same name is replaced."""
        for function in functions:
            self._own.register_tool_function(function, namesake_strategy="override")

    def json_schemas(self, toolkit: Toolkit) -> list[Schema]:
        """Return the schemas of all active tools, those of the toolkit first."""
        self._describe_groups(toolkit)
        others = [each for each in toolkit.json_schemas if not self._is_own(_name(each))]
        return [*others, *self._own.json_schemas]

    async def call(
        self, tool_call: ToolUseBlock, toolkit: Toolkit
    ) -> AsyncGenerator[ToolResponse, None]:
        """Call a tool; see ``Toolkit.call_tool_function``."""
        chosen = self._own if self._is_own(tool_call["name"]) else toolkit
        return await chosen.call_tool_function(tool_call)

    def _is_own(self, name: str) -> bool:
        return name in self._own.tools

    def _describe_groups(self, toolkit: Toolkit) -> None:
        if self._chooses and toolkit.groups:
            chooser = ToolChooser(toolkit)
            self._own.register_tool_function(
                chooser.reset_equipped_tools,
                json_schema=chooser.json_schema,
                namesake_strategy="override",
            )


def _name(schema: Schema) -> str:
    return str(schema["function"]["name"])
