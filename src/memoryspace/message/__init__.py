"""Messages and their content blocks, tool-call groups, and the repair of broken histories."""

from .blocks import (
    AudioBlock,
    Base64Source,
    BlockType,
    ContentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
)
from .groups import groups_of
from .msg import Content, Msg, Role, new_id
from .repairing import Repair, Repaired, repair
from .sharing import freeze, thaw

__all__ = [
    "AudioBlock",
    "Base64Source",
    "BlockType",
    "Content",
    "ContentBlock",
    "ImageBlock",
    "Msg",
    "Repair",
    "Repaired",
    "Role",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "URLSource",
    "VideoBlock",
    "freeze",
    "groups_of",
    "new_id",
    "repair",
    "thaw",
]
