"""``Receipt``: what became of messages that were given to be remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from msgspec import field

from ...portable import Portable


class _Told(Portable, frozen=True):
    """The fields of a receipt."""

    ids: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    held_back: dict[str, str] = field(default_factory=dict)
    is_durable: bool | None = None
    is_indexed: bool = True
    derived: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class Receipt(list[str]):
    """The ids of what is new, as a list; and what became of everything that was given.

    ``ids`` are those of all messages in their order. Of them ``known`` were there already and are
    skipped; ``held_back`` are kept but not recalled until somebody releases them, each with the
    reason. ``is_durable`` tells whether what is new outlives this process and a crash of the
    machine (``None`` where only the server knows), ``is_indexed`` whether a search that begins now
    sees it. ``derived`` names the derivers that are done with it, ``pending`` those that are still
    to think about it, ``failed`` those that gave up; whom it does not concern is in none.
    """

    def __init__(
        self,
        new: Iterable[str] = (),
        *,
        ids: Iterable[str] | None = None,
        held_back: Mapping[str, str] | None = None,
        is_durable: bool | None = None,
        is_indexed: bool = True,
        derived: Iterable[str] = (),
        pending: Iterable[str] = (),
        failed: Iterable[str] = (),
    ) -> None:
        super().__init__(new)
        self.ids = tuple(self) if ids is None else tuple(dict.fromkeys(ids))
        self.held_back = {} if held_back is None else dict(held_back)
        self.is_durable = is_durable
        self.is_indexed = is_indexed
        self.derived, self.pending, self.failed = tuple(derived), tuple(pending), tuple(failed)

    @property
    def new(self) -> tuple[str, ...]:
        """The ids of what is new, as the list itself holds them."""
        return tuple(self)

    @property
    def known(self) -> tuple[str, ...]:
        """The ids of what was there already, which was skipped."""
        return tuple(each for each in self.ids if each not in self)

    @property
    def is_settled(self) -> bool:
        """Whether everything that can be derived from it is."""
        return not self.pending

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that any JSON encoder can write."""
        told = _Told(**{name: getattr(self, name) for name in _Told.__struct_fields__})
        return {**told.to_dict(), "is_settled": self.is_settled}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the receipt that ``to_dict`` told."""
        told = _Told.from_dict(data)
        kept = ("ids", "held_back", "is_durable", "is_indexed", "derived", "pending", "failed")
        return cls(told.new, **{name: getattr(told, name) for name in kept})
