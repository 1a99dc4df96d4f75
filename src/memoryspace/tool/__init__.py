"""Tools: Python functions that a model can call, and their responses."""

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
