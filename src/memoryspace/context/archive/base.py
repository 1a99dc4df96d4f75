"""The contract of archives: content-addressed storage for what leaves the context.

An ``Archive`` belongs to one session; no handle reaches another session's content. Equal content is
stored once and reference-counted: it is removed when its last holder is released.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from msgspec import Struct

from ...errors import UnknownHandle
from ..rendering import Kind, count_lines, shown

SHORTEST_HANDLE = 16  # hexadecimal digits; more if two contents share them
_HANDLE = re.compile(r"[0-9a-f]{16,64}")


class Parcel(Struct, frozen=True):
    """Content on its way to an archive: plain text, or blocks or messages as JSON.

    Attributes:
        data: The content itself.
        kind: How ``data`` is to be read.
        holder: The id of the message the content left, or any other name.
    """

    data: str
    kind: Kind
    holder: str


class Kept(Struct, frozen=True):
    """The listing of one archived content.

    Attributes:
        handle: The name to read it by.
        kind: How its data is to be read.
        lines: How many lines a reader sees.
        characters: How many characters a reader sees.
    """

    handle: str
    kind: Kind
    lines: int
    characters: int


class Archive(ABC):
    """Stores what left the context of one session.

    Methods are synchronous and may block; call them in a thread from an event loop.
    """

    @abstractmethod
    def put(self, parcels: Sequence[Parcel]) -> list[Kept]:
        """Store each parcel for its holder and return the listings, in the same order.

        An archive with a disk has synced everything to it before this returns.
        """

    @abstractmethod
    def get(self, handle: str) -> Parcel:
        """Return an archived content, byte for byte, with one of its holders.

        Raises:
            UnknownHandle: Nothing is archived under the handle.
        """

    @abstractmethod
    def release(self, holders: Sequence[str]) -> list[str]:
        """Release holders; return the handles of contents removed because no holder was left."""

    @abstractmethod
    def holders(self) -> set[str]:
        """Return every holder."""

    @abstractmethod
    def list(self) -> list[Kept]:
        """Return the listings of all contents, oldest first."""

    @abstractmethod
    def clear(self) -> None:
        """Remove everything in this session."""

    @abstractmethod
    def check(self) -> None:
        """Verify that every content is present, matches its handle and has a holder.

        Raises:
            CorruptData: A content is missing, changed or without a holder.
        """

    def holds(self, handle: str) -> bool:
        """Return whether a content is archived under a handle."""
        return any(kept.handle == handle for kept in self.list())

    def digest(self, kind: Kind, data: str) -> str:
        """Return the 64 hexadecimal digits that begin with the content's handle."""
        return digest_of(kind, data)


def digest_of(kind: Kind, data: str) -> str:
    """Return the digest that handles are cut from. It is the same in every archive."""
    return hashlib.sha256(f"{kind}\n{data}".encode("utf-8", "surrogatepass")).hexdigest()


def described(kind: Kind, data: str, handle: str) -> Kept:
    """Return the listing of a content."""
    text = shown(kind, data)
    return Kept(handle, kind, count_lines(text), len(data if kind == "text" else text))


def checked_handle(handle: object) -> str:
    """Return a well-formed handle; raise ``UnknownHandle`` for anything else."""
    if not isinstance(handle, str) or not _HANDLE.fullmatch(handle):
        raise UnknownHandle(
            f"a handle is {SHORTEST_HANDLE} or more hexadecimal digits, as shown in the stub"
        )
    return handle


def unknown(handle: str) -> UnknownHandle:
    """Return the error for a handle under which nothing is archived."""
    return UnknownHandle(
        f"nothing is archived under {handle!r}: it never was, or it has been released"
    )
