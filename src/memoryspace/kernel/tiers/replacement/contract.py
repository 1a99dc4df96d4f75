"""What every replacement policy can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ....errors import InvalidInput


class ReplacementPolicy(ABC):
    """The residents, and who of them goes next.

    A key that is not resident raises ``KeyError``. Make room first, then ``add``: a newcomer that
    was never used again is a fair victim to some policies, even at once.
    """

    @abstractmethod
    def add(self, key: int) -> None:
        """Note that this key is resident now. Raise ``InvalidInput`` if it already was."""

    @abstractmethod
    def touch(self, key: int) -> None:
        """Note that this resident was used."""

    @abstractmethod
    def remove(self, key: int) -> None:
        """Forget this resident: it left for a reason of its own, which teaches nothing."""

    @abstractmethod
    def evict(self) -> int:
        """Choose who goes, drop it, and remember of it what the policy learns from."""

    @abstractmethod
    def spare(self, key: int) -> None:
        """Take an evicted key back in, as just used: the choice is undone, nothing is learned."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __contains__(self, key: object) -> bool: ...

    @abstractmethod
    def check(self) -> None:
        """Verify every invariant; raise ``AssertionError`` if one is broken."""


def already_resident(key: int) -> InvalidInput:
    """The error of adding a key twice."""
    return InvalidInput(f"key {key} is already resident; touch it, or remove it first")


def nothing_resident() -> KeyError:
    """The error of evicting from nothing."""
    return KeyError("nothing is resident, so nothing can be evicted; add a key first")
