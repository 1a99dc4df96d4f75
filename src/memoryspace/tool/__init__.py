"""Tools: functions that a model may call, and what they answer."""

from .meta import ToolChooser
from .response import ToolResponse, as_response, failed, told
from .toolkit import ToolGroup, Toolkit

__all__ = [
    "ToolChooser",
    "ToolGroup",
    "ToolResponse",
    "Toolkit",
    "as_response",
    "failed",
    "told",
]
