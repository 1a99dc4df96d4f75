"""The tools of one agent: those of the program's toolkit, and its own beside them.

The toolkit is only read. Several agents may share it, and yet each remembers with its own memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

from ..message import ToolUseBlock
from ..model.schemas import Schema
from ..tool import ToolChooser, Toolkit, ToolResponse


class AgentTools:
    """An agent's own tools. Of two with the same name, the agent's own counts."""

    def __init__(self, *, chooses: bool = False) -> None:
        self._own = Toolkit()
        self._chooses = chooses

    def add(self, functions: Iterable[Callable[..., Any]]) -> None:
        """Let the agent call functions of its own; one of the same name is replaced."""
        for function in functions:
            self._own.register_tool_function(function, namesake_strategy="override")

    def json_schemas(self, toolkit: Toolkit) -> list[Schema]:
        """Return the schemas of all tools that are at hand, a toolkit's first."""
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
