"""The changes a space can make. Each is a value: it is journalled first and applied afterwards.

The one list of ops in a journal frame happens as a whole or not at all. Ops say everything that
is needed to make the change again, so recovery applies the very same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from ...errors import CorruptData

MAX_OPS = 1 << 20  # in one frame; the number of an op in its frame fits into a stamp


class Stored(Struct, frozen=True, array_like=True, tag="s", gc=False):
    """A new object stands in the slot of its handle."""

    handle: int
    body: bytes
    weight: int
    created: float
    expires: float
    importance: float
    flags: int
    tenant: str
    tags: tuple[str, ...]


class Freed(Struct, frozen=True, array_like=True, tag="f", gc=False):
    """Objects are gone, for one reason."""

    handles: list[int]
    reason: str


class Rewritten(Struct, frozen=True, array_like=True, tag="w", gc=False):
    """An object has another body."""

    handle: int
    body: bytes
    weight: int


class Tuned(Struct, frozen=True, array_like=True, tag="t", gc=False):
    """An object has these importance, end of life and tags."""

    handle: int
    importance: float
    expires: float
    tags: tuple[str, ...]


class Flagged(Struct, frozen=True, array_like=True, tag="g", gc=False):
    """An object is, or is no longer, a root or pinned."""

    handle: int
    flag: int
    on: bool


class Linked(Struct, frozen=True, array_like=True, tag="l", gc=False):
    """One object refers to another, or no longer does."""

    source: int
    target: int
    on: bool


Op: TypeAlias = Stored | Freed | Rewritten | Tuned | Flagged | Linked

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Op])


def encode_ops(ops: Sequence[Op]) -> bytes:
    """Return the payload of a journal frame."""
    return _encoder.encode(ops)


def decode_ops(payload: bytes, lsn: int) -> list[Op]:
    """Return the ops of a journal frame."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CorruptData(
            f"journal frame {lsn} is intact but holds no ops we know ({error}); "
            "was it written by a newer version?"
        ) from error
