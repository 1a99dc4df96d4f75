"""The message schema of AgentScope's runtime, under its names and without pydantic."""

from __future__ import annotations

from .constants import ContentType, MessageType, Role, RunStatus
from .contents import (
    AgentContent,
    AudioContent,
    Content,
    DataContent,
    Error,
    Event,
    FileContent,
    ImageContent,
    RefusalContent,
    TextContent,
)
from .message import AgentRole, Message, SequenceNumberGenerator, Session

__all__ = [
    "AgentContent",
    "AgentRole",
    "AudioContent",
    "Content",
    "ContentType",
    "DataContent",
    "Error",
    "Event",
    "FileContent",
    "ImageContent",
    "Message",
    "MessageType",
    "RefusalContent",
    "Role",
    "RunStatus",
    "SequenceNumberGenerator",
    "Session",
    "TextContent",
]
