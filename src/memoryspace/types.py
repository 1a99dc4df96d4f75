"""Names for the shapes of data that cross our borders."""

from __future__ import annotations

from typing import TypeAlias

JSONPrimitive: TypeAlias = str | int | float | bool | None
JSONSerializableObject: TypeAlias = (
    JSONPrimitive | list["JSONSerializableObject"] | dict[str, "JSONSerializableObject"]
)
Embedding: TypeAlias = list[float]
