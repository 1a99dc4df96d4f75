"""Ops: the changes of a space as values, which are journalled first and applied afterwards.

The ops of one journal frame happen together or not at all. An op holds everything that is needed
to repeat the change, so recovery applies the same ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from ...errors import CorruptData

MAX_OPS = 1 << 20  # in one frame; the number of an op in its frame fits into a stamp


class StoreOp(Struct, frozen=True, array_like=True, tag="s", gc=False):
    """Put a new object into the slot of its handle."""

    handle: int
    body: bytes
    weight: int
    created: float
    expires: float
    importance: float
    flags: int
    tenant: str
    tags: tuple[str, ...]


class FreeOp(Struct, frozen=True, array_like=True, tag="f", gc=False):
    """Free objects, for one reason."""

    handles: list[int]
    reason: str


class RewriteOp(Struct, frozen=True, array_like=True, tag="w", gc=False):
    """Give an object another body."""

    handle: int
    body: bytes
    weight: int


class TuneOp(Struct, frozen=True, array_like=True, tag="t", gc=False):
    """Set the importance, expiry and tags of an object."""

    handle: int
    importance: float
    expires: float
    tags: tuple[str, ...]


class FlagOp(Struct, frozen=True, array_like=True, tag="g", gc=False):
    """Make an object a root or pinned, or no longer."""

    handle: int
    flag: int
    on: bool


class LinkOp(Struct, frozen=True, array_like=True, tag="l", gc=False):
    """Add or remove a reference."""

    source: int
    target: int
    on: bool


Op: TypeAlias = StoreOp | FreeOp | RewriteOp | TuneOp | FlagOp | LinkOp

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
            f"journal frame {lsn} is intact but its ops cannot be decoded ({error}); "
            "was it written by a newer version?"
        ) from error
