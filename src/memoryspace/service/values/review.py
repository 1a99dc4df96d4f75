"""Results of a review: proposals, pages of them, and what became of a decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct

from ...portable import Portable, read_as
from .memory import MemoryItem


class Proposal(Portable, frozen=True):
    """A derived memory that waits for approval.

    Attributes:
        memory: What would be believed.
        sources: What it was derived from, as far as it still exists: what was said.
        retires: What holds now and would be superseded.
        superseded_by: The id of an approved memory by which it would be superseded at once.
    """

    memory: MemoryItem
    sources: tuple[MemoryItem, ...] = ()
    retires: tuple[MemoryItem, ...] = ()
    superseded_by: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the proposal that ``to_dict`` wrote."""
        return cls._built(read_as(_ProposalFields, data, cls.__name__))

    @classmethod
    def _built(cls, read: _ProposalFields) -> Self:
        return cls(
            MemoryItem.built(read.memory),
            tuple(map(MemoryItem.built, read.sources)),
            tuple(map(MemoryItem.built, read.retires)),
            read.superseded_by,
        )


class _ProposalFields(Struct):
    """A proposal as ``to_dict`` writes it."""

    memory: dict[str, Any]
    sources: list[dict[str, Any]] = []
    retires: list[dict[str, Any]] = []
    superseded_by: str | None = None


class Proposals(Portable, frozen=True):
    """One page of proposals, oldest first.

    Attributes:
        proposals: The proposals on the page.
        cursor: Pass it on for the next page; ``None`` on the last page.
    """

    proposals: tuple[Proposal, ...]
    cursor: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the page that ``to_dict`` wrote."""
        read = read_as(_ProposalsFields, data, cls.__name__)
        return cls(tuple(map(Proposal._built, read.proposals)), read.cursor)


class _ProposalsFields(Struct):
    """A page of proposals as ``to_dict`` writes it."""

    proposals: list[_ProposalFields]
    cursor: str | None = None


class Decided(Portable, frozen=True):
    """What became of a decision about some memories. True if this call decided any.

    Attributes:
        ids: Decided by this call.
        already: Decided the same way before.
        otherwise: Decided another way before, or deleted meanwhile; unchanged by this call.
    """

    ids: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ids)
