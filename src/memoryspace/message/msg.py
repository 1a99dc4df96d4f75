"""``Msg``: the message that agents, users and tools exchange, in AgentScope v1's format."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from ..errors import InvalidMessage
from .blocks import BlockType, ContentBlock

Role: TypeAlias = Literal["user", "assistant", "system"]
Content: TypeAlias = str | list[ContentBlock]

ROLES = ("user", "assistant", "system")

# 57 characters that cannot be confused with each other; every random byte picks one of them.
_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BYTE_TO_CHARACTER = bytes(ord(_ALPHABET[byte % len(_ALPHABET)]) for byte in range(256))


def new_id() -> str:
    """Return 22 random characters, about 127 bits: unique across threads, forks and machines."""
    return os.urandom(22).translate(_BYTE_TO_CHARACTER).decode("ascii")


class Msg:
    """A message of a conversation.

    Every message gets a new random ``id``, which you may set afterwards. Two messages are equal
    only if they are the same object. You may set other attributes, but memories do not store them.

    Args:
        name: The name of the speaker.
        content: Text, or a list of content blocks.
        role: ``"user"``, ``"assistant"`` or ``"system"``.
        metadata: Data for the program, not for the model.
        timestamp: Local time with milliseconds; now by default.
        invocation_id: The id of the model call that produced the message.

    Raises:
        InvalidMessage: If the role is unknown, or the content is neither text nor a list.

    Examples:
        >>> msg = Msg("alice", "Hello!", "user")
        >>> msg.get_text_content()
        'Hello!'
    """

    __slots__ = (
        "__dict__",  # created only for attributes that users add
        "__weakref__",
        "_loan",
        "content",
        "id",
        "invocation_id",
        "metadata",
        "name",
        "role",
        "timestamp",
    )

    def __init__(
        self,
        name: str,
        content: Content,
        role: Role,
        metadata: dict[str, Any] | None = None,
        timestamp: str | None = None,
        invocation_id: str | None = None,
    ) -> None:
        _check(content, role)
        self.name = name
        self.content = content
        self.role = role
        self.metadata = metadata or {}
        self.id = new_id()
        self.timestamp = timestamp or _now()
        self.invocation_id = invocation_id

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a dict, in AgentScope v1's key order.

        ``invocation_id`` comes last, and only if it is set.
        """
        return dict_of(self, self.content, self.metadata)

    @classmethod
    def from_dict(cls, json_data: Mapping[str, Any]) -> Msg:
        """Build a message from a dict with at least name, content and role.

        Unknown keys are ignored.

        Raises:
            InvalidMessage: If a key is missing or has an invalid value.
        """
        try:
            name, content, role = json_data["name"], json_data["content"], json_data["role"]
        except KeyError as error:
            raise InvalidMessage(f"a message dict needs {error}; it has {[*json_data]}") from None
        _check(content, role)
        get = json_data.get
        msg = cls.__new__(cls)
        msg.name = name
        msg.content = content
        msg.role = role
        msg.metadata = get("metadata") or {}
        msg.id = get("id") or new_id()
        msg.timestamp = get("timestamp") or _now()
        msg.invocation_id = get("invocation_id")
        return msg

    def get_text_content(self, separator: str = "\n") -> str | None:
        """Return the text blocks joined by ``separator``, or ``None`` if there are none."""
        content = peek_content(self)
        if isinstance(content, str):
            return content
        texts = [block.get("text") for block in _blocks_of(content, "text")]
        return separator.join(text for text in texts if isinstance(text, str)) if texts else None

    def get_content_blocks(
        self, block_type: BlockType | Collection[BlockType] | None = None
    ) -> list[ContentBlock]:
        """Return the blocks of the given types, or all; plain text counts as one text block."""
        return _blocks_of(self.content, block_type)

    def has_content_blocks(
        self, block_type: BlockType | Collection[BlockType] | None = None
    ) -> bool:
        """Return whether there is a block of the given types, or any block at all."""
        return bool(_blocks_of(peek_content(self), block_type))

    def __deepcopy__(self, memo: dict[int, Any]) -> Msg:
        if type(self) is not Msg:
            return _deepcopy_of_subclass(self, memo)
        clone = memo[id(self)] = Msg.__new__(Msg)
        content, own = self.content, self.__dict__
        clone.name = self.name
        clone.content = content if type(content) is str else copy.deepcopy(content, memo)
        clone.role = self.role
        clone.metadata = copy.deepcopy(self.metadata, memo) if self.metadata else {}
        clone.id = self.id
        clone.timestamp = self.timestamp
        clone.invocation_id = self.invocation_id
        if own:
            clone.__dict__.update(copy.deepcopy(own, memo))
        return clone

    def __repr__(self) -> str:
        return (
            f"Msg(id='{self.id}', name='{self.name}', content={peek_content(self)!r}, "
            f"role='{self.role}', metadata={peek_metadata(self)!r}, "
            f"timestamp='{self.timestamp}', invocation_id='{self.invocation_id}')"
        )


# Bypass the properties of the shared message classes: no copy is made, so only read the result.
peek_content: Callable[[Msg], Content] = Msg.__dict__["content"].__get__
peek_metadata: Callable[[Msg], dict[str, Any]] = Msg.__dict__["metadata"].__get__


def dict_of(msg: Msg, content: Content, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the dict of a message with these parts."""
    data = {
        "id": msg.id,
        "name": msg.name,
        "role": msg.role,
        "content": content,
        "metadata": metadata,
        "timestamp": msg.timestamp,
    }
    if msg.invocation_id is not None:
        data["invocation_id"] = msg.invocation_id
    return data


def _deepcopy_of_subclass(msg: Msg, memo: dict[int, Any]) -> Msg:
    """Copy a subclass instance: attributes, additional slots, custom state."""
    reduced: Any = msg.__reduce_ex__(4)
    clone: Msg = reduced[0](*reduced[1])
    memo[id(msg)] = clone
    state: Any = copy.deepcopy(reduced[2], memo)
    if hasattr(clone, "__setstate__"):
        clone.__setstate__(state)
        return clone
    attributes, slots = state if isinstance(state, tuple) else (state, {})
    clone.__dict__.update(attributes or {})
    for name, value in slots.items():
        setattr(clone, name, value)
    return clone


def _check(content: object, role: object) -> None:
    if type(content) is not str and not isinstance(content, str | list):
        raise InvalidMessage(
            f"content must be a str or a list of blocks, got {type(content).__name__}"
        )
    if role not in ROLES:
        raise InvalidMessage(f"role must be one of {', '.join(ROLES)}, got {role!r}")


def _blocks_of(
    content: Content, block_type: BlockType | Collection[BlockType] | None
) -> list[ContentBlock]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if block_type is None:
        return content
    wanted = {block_type} if isinstance(block_type, str) else set(block_type)
    return [block for block in content if isinstance(block, dict) and block.get("type") in wanted]


def _now() -> str:
    return datetime.now().isoformat(" ", "milliseconds")
