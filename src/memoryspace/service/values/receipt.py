"""``Receipt``: the result of adding messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from msgspec import field

from ...portable import Portable


class _ReceiptFields(Portable, frozen=True):
    """A receipt as ``to_dict`` writes it."""

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
    """A list of the ids of new memories, with what happened to every message.

    Attributes:
        ids: The ids of all messages, in order.
        new: The ids of new memories, as in the list itself.
        known: The ids that were already there; these messages were skipped.
        held_back: The new memories in quarantine, each id with the reason.
        is_durable: Whether the new memories survive the end of the process and a crash of the
            machine; ``None`` if only the server knows.
        is_indexed: Whether a search that begins now finds them.
        derived: The derivers that are done with them.
        pending: The derivers that still have work to do.
        failed: The derivers that gave up. A deriver that they do not concern is in none of these.

    Example::

        receipt = await service.add_memory("ann", ["I live in Oslo"])
        [memory_id] = receipt
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
        """The ids of new memories, as in the list itself."""
        return tuple(self)

    @property
    def known(self) -> tuple[str, ...]:
        """The ids that were already there; these messages were skipped."""
        return tuple(each for each in self.ids if each not in self)

    @property
    def is_settled(self) -> bool:
        """Whether no deriver has work left to do."""
        return not self.pending

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON types."""
        names = _ReceiptFields.__struct_fields__
        fields = _ReceiptFields(**{name: getattr(self, name) for name in names})
        return {**fields.to_dict(), "is_settled": self.is_settled}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the receipt that ``to_dict`` wrote."""
        read = _ReceiptFields.from_dict(data)
        kept = ("ids", "held_back", "is_durable", "is_indexed", "derived", "pending", "failed")
        return cls(read.new, **{name: getattr(read, name) for name in kept})
