"""``Toolkit``: the functions that a model may call, in groups that can be put away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ..errors import InvalidInput
from ..message import ToolUseBlock
from ..model.schemas import Schema
from ..module import StateModule
from .calling import UNREADABLE, arguments_in, called, once
from .function import BASIC, ToolFunction, tool_function
from .response import ToolResponse, told
from .signatures import AnyFunction

NamesakeStrategy: TypeAlias = Literal["raise", "override", "skip"]


@dataclass(frozen=True, kw_only=True)
class ToolGroup:
    """Tools that are at hand together, or not. ``notes`` tell the model how to use them."""

    name: str
    description: str
    active: bool = False
    notes: str | None = None


class Toolkit(StateModule):
    """Functions by name. Its state says which groups are active; the functions are the program's.

    A function may be plain (it then runs in a thread) or async, and may yield its answer as it
    grows: each time all of it so far. It answers a ``ToolResponse``, text, or data for JSON.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tools: dict[str, ToolFunction] = {}
        self.groups: dict[str, ToolGroup] = {}
        self.register_state("active_groups")

    def register_tool_function(
        self,
        tool_func: AnyFunction,
        group_name: str = BASIC,
        preset_kwargs: Mapping[str, Any] | None = None,
        func_description: str | None = None,
        json_schema: Mapping[str, Any] | None = None,
        include_long_description: bool = True,
        *,
        func_name: str | None = None,
        namesake_strategy: NamesakeStrategy = "raise",
    ) -> None:
        """Let models call a function of a group.

        What it does and what its arguments mean is read from its signature and its docstring (in
        Google's style) unless ``json_schema`` says it. ``preset_kwargs`` are not shown to models.
        A name that is taken: an error, or the new one stands in for the old, or is left out.
        """
        if group_name != BASIC and group_name not in self.groups:
            raise InvalidInput(f"there is no tool group {group_name!r}; create_tool_group() first")
        tool = tool_function(
            tool_func,
            group=group_name,
            preset=preset_kwargs,
            name=func_name,
            description=func_description,
            json_schema=json_schema,
            is_long=include_long_description,
        )
        if tool.name in self.tools and namesake_strategy == "raise":
            raise InvalidInput(
                f"there is a tool {tool.name!r} already; remove it first, or pass func_name"
            )
        if tool.name not in self.tools or namesake_strategy == "override":
            self.tools[tool.name] = tool

    def remove_tool_function(self, tool_name: str, allow_not_exist: bool = True) -> None:
        """Take a function away from models."""
        if tool_name not in self.tools and not allow_not_exist:
            raise InvalidInput(f"there is no tool {tool_name!r}")
        self.tools.pop(tool_name, None)

    def create_tool_group(
        self, group_name: str, description: str, active: bool = False, notes: str | None = None
    ) -> None:
        """Make a group to register functions in."""
        if group_name == BASIC or group_name in self.groups:
            raise InvalidInput(f"there is a tool group {group_name!r} already")
        self.groups[group_name] = ToolGroup(
            name=group_name, description=description, active=active, notes=notes
        )

    def update_tool_groups(self, group_names: Iterable[str], active: bool) -> None:
        """Put groups at hand, or away. ``basic`` is always at hand."""
        for name in set(group_names) - {BASIC}:
            if name not in self.groups:
                raise InvalidInput(f"there is no tool group {name!r}")
            self.groups[name] = replace(self.groups[name], active=active)

    def remove_tool_groups(self, group_names: str | Iterable[str]) -> None:
        """Remove groups and the functions in them."""
        names = {group_names} if isinstance(group_names, str) else set(group_names)
        if BASIC in names:
            raise InvalidInput(f"the group {BASIC!r} cannot be removed")
        self.groups = {name: group for name, group in self.groups.items() if name not in names}
        self.tools = {name: tool for name, tool in self.tools.items() if tool.group not in names}

    @property
    def active_groups(self) -> list[str]:
        """The names of the groups that are active; ``basic`` always is and is not named."""
        return [group.name for group in self.groups.values() if group.active]

    @active_groups.setter
    def active_groups(self, names: Collection[str]) -> None:
        self.groups = {
            name: replace(group, active=name in names) for name, group in self.groups.items()
        }

    @property
    def json_schemas(self) -> list[Schema]:
        """The schemas of the functions that are at hand."""
        return [tool.json_schema for tool in self.tools.values() if self._is_active(tool)]

    def get_json_schemas(self) -> list[Schema]:
        """Return the schemas of the functions that are at hand, as a model takes them."""
        return self.json_schemas

    def get_activated_notes(self) -> str:
        """Return the notes of the active groups, for a system prompt; "" if there are none."""
        notes = [group for group in self.groups.values() if group.active and group.notes]
        return "\n".join(f"## Tools of group {group.name}\n{group.notes}" for group in notes)

    async def call_tool_function(
        self, tool_call: ToolUseBlock
    ) -> AsyncGenerator[ToolResponse, None]:
        """Return a generator of the answer as it grows.

        Whatever goes wrong is an answer in words. If the caller is cancelled, the last one is
        ``is_interrupted`` and the cancellation goes on after it.
        """
        name = str(tool_call.get("name", ""))
        tool = self.tools.get(name)
        if tool is None:
            return once(told(f"Error: there is no tool {name!r}. {self._at_hand()}"))
        if not self._is_active(tool):
            return once(
                told(
                    f"Error: tool {tool.name!r} belongs to the group {tool.group!r}, which is not "
                    f"active. {self._at_hand()}"
                )
            )
        arguments = arguments_in(tool_call)
        return once(told(UNREADABLE)) if arguments is None else called(tool, arguments)

    def _is_active(self, tool: ToolFunction) -> bool:
        return tool.group == BASIC or self.groups[tool.group].active

    def _at_hand(self) -> str:
        names = [tool.name for tool in self.tools.values() if self._is_active(tool)]
        return f"Tools at hand: {', '.join(names)}." if names else "There are no tools at hand."
