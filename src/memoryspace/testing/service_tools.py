"""Helpers shared by the checks of the service contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from ..errors import InvalidInput
from ..message import new_id
from ..service.base import MemoryService
from ..service.schema import Message, TextContent

ServiceMaker = Callable[..., MemoryService]
ServiceCheck = Callable[[ServiceMaker], Awaitable[None]]


def fresh_user() -> str:
    """Return a new unique user."""
    return f"user-{new_id()}"


def said(text: str, role: Literal["user", "assistant"] = "user", **fields: Any) -> Message:
    """Return a message with one text."""
    return Message(role=role, content=[TextContent(text=text)], **fields)


def texts(found: list[Any]) -> list[str]:
    """Return the texts of messages."""
    return [each.get_text_content() for each in found]


async def refuses(call: Awaitable[Any], *words: str, kind: type[Exception] = InvalidInput) -> None:
    """Check that a call raises an error whose message contains these words."""
    try:
        await call
    except kind as error:
        told = str(error)
    else:
        raise AssertionError(f"no {kind.__name__} was raised")
    assert all(word in told for word in words), told
