"""Where things go that leave the context: content-addressed, one session's own, counted.

An ``Archive`` belongs to one session: no handle reaches anything of another one. The same content
is kept once, however often it leaves, and stays as long as anybody holds it.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from msgspec import Struct

from ...errors import UnknownHandle
from ..rendering import Kind, count_lines, shown

SHORTEST_HANDLE = 16  # hexadecimal digits; more where two contents share them
_HANDLE = re.compile(r"[0-9a-f]{16,64}")


class Parcel(Struct, frozen=True):
    """Something that leaves: text as it is, or blocks or messages as JSON; and who holds it."""

    data: str
    kind: Kind
    holder: str  # the id of the message it left, or any other name


class Kept(Struct, frozen=True):
    """Something that is in an archive."""

    handle: str
    kind: Kind
    lines: int  # as a reader sees it
    characters: int


class Archive(ABC):
    """What left the context of one session. Synchronous; callers with a loop use a thread."""

    @abstractmethod
    def put(self, parcels: Sequence[Parcel]) -> list[Kept]:
        """Keep each parcel for its holder, durably where there is a disk, before returning."""

    @abstractmethod
    def get(self, handle: str) -> Parcel:
        """Return what was kept, byte for byte (any one holder); ``UnknownHandle`` if nothing."""

    @abstractmethod
    def release(self, holders: Sequence[str]) -> list[str]:
        """Let holders go; return the handles of what nobody held any more and is gone."""

    @abstractmethod
    def holders(self) -> set[str]:
        """Return everybody who holds something."""

    @abstractmethod
    def list(self) -> list[Kept]:
        """Return everything that is kept, oldest first."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything of this session."""

    @abstractmethod
    def check(self) -> None:
        """Verify that all content is there, is what its handle says, and is held by somebody."""

    def holds(self, handle: str) -> bool:
        """Tell whether something is kept under a handle."""
        return any(kept.handle == handle for kept in self.list())

    def digest(self, kind: Kind, data: str) -> str:
        """Return the 64 hexadecimal digits whose beginning is the handle of a content."""
        return digest_of(kind, data)


def digest_of(kind: Kind, data: str) -> str:
    """Return the digest that handles are cut from, the same in every archive."""
    return hashlib.sha256(f"{kind}\n{data}".encode("utf-8", "surrogatepass")).hexdigest()


def described(kind: Kind, data: str, handle: str) -> Kept:
    """Return how a content is listed."""
    text = shown(kind, data)
    return Kept(handle, kind, count_lines(text), len(data if kind == "text" else text))


def checked_handle(handle: object) -> str:
    """Return a handle that may be looked up; ``UnknownHandle`` for anything that is none."""
    if not isinstance(handle, str) or not _HANDLE.fullmatch(handle):
        raise UnknownHandle(
            f"a handle is {SHORTEST_HANDLE} or more hexadecimal digits, as shown where it left"
        )
    return handle


def unknown(handle: str) -> UnknownHandle:
    """Return the error for a handle under which nothing is kept."""
    return UnknownHandle(f"nothing is kept under {handle!r}: it was never there, or was released")
