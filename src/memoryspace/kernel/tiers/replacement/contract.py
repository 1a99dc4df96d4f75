"""``ReplacementPolicy``: the interface of replacement policies."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ....errors import InvalidInput


class ReplacementPolicy(ABC):
    """The residents, and the order in which they are evicted.

    A key that is not resident raises ``KeyError``. Evict first, then ``add``: some policies may
    choose a key that was just added.
    """

    @abstractmethod
    def add(self, key: int) -> None:
        """Add a resident; ``InvalidInput`` if it is already resident."""

    @abstractmethod
    def touch(self, key: int) -> None:
        """Note a use of a resident."""

    @abstractmethod
    def remove(self, key: int) -> None:
        """Remove a resident that was freed. The policy learns nothing from it."""

    @abstractmethod
    def evict(self) -> int:
        """Choose a victim, remove and return it, and remember what the policy learns from."""

    @abstractmethod
    def spare(self, key: int) -> None:
        """Take an evicted key back as just used. The policy learns nothing from it."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __contains__(self, key: object) -> bool: ...

    @abstractmethod
    def check(self) -> None:
        """Verify every invariant; raise ``AssertionError`` if one is broken."""


def already_resident(key: int) -> InvalidInput:
    """Return the error for adding a key twice."""
    return InvalidInput(f"key {key} is already resident; touch it, or remove it first")


def nothing_resident() -> KeyError:
    """Return the error for evicting when nothing is resident."""
    return KeyError("nothing is resident, so nothing can be evicted; add a key first")
