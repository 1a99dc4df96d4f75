"""The tool by which a model chooses its tools: groups are put at hand, the others away."""

from __future__ import annotations

from ..model.schemas import Schema
from .response import ToolResponse, told
from .toolkit import Toolkit

META_TOOL = "reset_equipped_tools"


class ToolChooser:
    """Lets a model choose among the groups of a toolkit."""

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    @property
    def json_schema(self) -> Schema:
        """The schema of the tool, with the groups there are now."""
        groups = self._toolkit.groups.values()
        described = "".join(f"\n- {group.name}: {group.description}" for group in groups)
        chosen = {
            "type": "array",
            "items": {"type": "string", "enum": [group.name for group in groups]},
            "description": f"The groups you need from now on; all others are put away:{described}",
        }
        function = {
            "name": META_TOOL,
            "description": "Choose the groups of tools that you need for what you do next.",
            "parameters": {
                "type": "object",
                "properties": {"group_names": chosen},
                "required": ["group_names"],
            },
        }
        return {"type": "function", "function": function}

    async def reset_equipped_tools(self, group_names: list[str]) -> ToolResponse:
        """Choose the groups of tools that you need for what you do next."""
        self._toolkit.active_groups = group_names
        notes = self._toolkit.get_activated_notes()
        return told(f"Active groups: {', '.join(self._toolkit.active_groups) or 'none'}.\n{notes}")
