"""``ToolChooser``: a tool by which a model activates groups of tools."""

from __future__ import annotations

from ..model.schemas import Schema
from .response import ToolResponse, told
from .toolkit import Toolkit

META_TOOL = "reset_equipped_tools"


class ToolChooser:
    """Lets a model choose which groups of a toolkit are active.

    Args:
        toolkit: The toolkit whose groups the model may choose.
    """

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    @property
    def json_schema(self) -> Schema:
        """The schema of the tool, with the current groups."""
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
