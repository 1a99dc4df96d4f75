"""Type aliases for data that enters or leaves the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

JSONPrimitive: TypeAlias = str | int | float | bool | None
JSONSerializableObject: TypeAlias = (
    JSONPrimitive | list["JSONSerializableObject"] | dict[str, "JSONSerializableObject"]
)
Embedding: TypeAlias = list[float]

AgentHookTypes: TypeAlias = Literal[
    "pre_reply", "post_reply", "pre_print", "post_print", "pre_observe", "post_observe"
]
ReActAgentHookTypes: TypeAlias = (
    AgentHookTypes | Literal["pre_reasoning", "post_reasoning", "pre_acting", "post_acting"]
)
# Returns a ``ToolResponse``, an awaitable of one, or a generator of them, plain or async.
ToolFunction: TypeAlias = Callable[..., Any]
