"""Messages and the blocks they are made of."""

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
from .msg import Content, Msg, Role, new_id
from .sharing import freeze, thaw

__all__ = [
    "AudioBlock",
    "Base64Source",
    "BlockType",
    "Content",
    "ContentBlock",
    "ImageBlock",
    "Msg",
    "Role",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "URLSource",
    "VideoBlock",
    "freeze",
    "new_id",
    "thaw",
]
