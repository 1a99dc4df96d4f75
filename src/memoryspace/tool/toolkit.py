"""``Toolkit``: the functions that a model can call, in groups that can be deactivated."""

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
    """A group of tools that are active together.

    Args:
        name: The name of the group.
        description: What the group is for.
        active: Whether the model can call its tools.
        notes: Instructions for the model, added to the system prompt while the group is active.
    """

    name: str
    description: str
    active: bool = False
    notes: str | None = None


class Toolkit(StateModule):
    """The functions that a model can call, by name.

    A function may be synchronous (it then runs in a thread) or async. It returns a
    ``ToolResponse``, text, or JSON-serializable data. It may also yield its response as it grows,
    each time complete so far. The state of a toolkit is the set of active groups, not the
    functions.

    Examples:
        >>> def add(a: int, b: int) -> str:
        ...     return str(a + b)
        >>> toolkit = Toolkit()
        >>> toolkit.register_tool_function(add)
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
        """Register a function as a tool.

        Args:
            tool_func: The function.
            group_name: The group it belongs to; ``"basic"`` is always active.
            preset_kwargs: Arguments that the program sets; models do not see them.
            func_description: Replaces the description in the docstring.
            json_schema: Replaces the schema made from the signature and the Google-style
                docstring.
            include_long_description: Whether to use the whole docstring, not only its summary.
            func_name: Replaces the function's name.
            namesake_strategy: What to do if the name is taken: raise an error, override the old
                tool, or skip the new one.

        Raises:
            InvalidInput: If the group is unknown, or the name is taken or invalid.
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
        """Remove a tool. An unknown name is an error unless ``allow_not_exist``."""
        if tool_name not in self.tools and not allow_not_exist:
            raise InvalidInput(f"there is no tool {tool_name!r}")
        self.tools.pop(tool_name, None)

    def create_tool_group(
        self, group_name: str, description: str, active: bool = False, notes: str | None = None
    ) -> None:
        """Create a group of tools."""
        if group_name == BASIC or group_name in self.groups:
            raise InvalidInput(f"there is a tool group {group_name!r} already")
        self.groups[group_name] = ToolGroup(
            name=group_name, description=description, active=active, notes=notes
        )

    def update_tool_groups(self, group_names: Iterable[str], active: bool) -> None:
        """Activate or deactivate groups. ``basic`` is always active."""
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
        """The names of the active groups, without ``basic``, which is always active."""
        return [group.name for group in self.groups.values() if group.active]

    @active_groups.setter
    def active_groups(self, names: Collection[str]) -> None:
        self.groups = {
            name: replace(group, active=name in names) for name, group in self.groups.items()
        }

    @property
    def json_schemas(self) -> list[Schema]:
        """The schemas of the active tools."""
        return [tool.json_schema for tool in self.tools.values() if self._is_active(tool)]

    def get_json_schemas(self) -> list[Schema]:
        """Return the schemas of the active tools, as a model takes them."""
        return self.json_schemas

    def get_activated_notes(self) -> str:
        """Return the notes of the active groups, for a system prompt; "" if there are none."""
        notes = [group for group in self.groups.values() if group.active and group.notes]
        return "\n".join(f"## Tools of group {group.name}\n{group.notes}" for group in notes)

    async def call_tool_function(
        self, tool_call: ToolUseBlock
    ) -> AsyncGenerator[ToolResponse, None]:
        """Call a tool and return a generator of its response as it grows.

        Every error becomes a response. If the caller is cancelled, the last response has
        ``is_interrupted`` set; then the cancellation is raised.

        Args:
            tool_call: The model's call: id, name and arguments.
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

    def __repr__(self) -> str:
        return f"Toolkit(tools={[*self.tools]}, active_groups={self.active_groups})"

    def _is_active(self, tool: ToolFunction) -> bool:
        return tool.group == BASIC or self.groups[tool.group].active

    def _at_hand(self) -> str:
        names = [tool.name for tool in self.tools.values() if self._is_active(tool)]
        return f"Tools at hand: {', '.join(names)}." if names else "There are no tools at hand."
