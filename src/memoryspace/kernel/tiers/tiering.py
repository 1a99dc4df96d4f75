"""``Tiering``: how two tiers share the bodies of a space, decided once by whoever opens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...errors import InvalidInput
from .pager import PAGE_SIZE, PageTable

WritePolicy: TypeAlias = Literal["write_back", "write_through"]


@dataclass(frozen=True)
class Tiering:
    """Who is demoted and when, how many are promoted, and when cold copies are written."""

    hot_reserve_ratio: float = 0.25
    max_hot_objects: int | None = None
    page_size: int = PAGE_SIZE
    max_pages: int | None = None
    paging_strategy: str = "arc"
    write_policy: WritePolicy = "write_back"
    promotion_batch_size: int = 1
    max_dirty: int = 4096

    def __post_init__(self) -> None:
        if not 0 <= self.hot_reserve_ratio < 1:
            raise InvalidInput(
                f"hot_reserve_ratio must be from 0 to below 1: {self.hot_reserve_ratio}"
            )
        if self.write_policy not in ("write_back", "write_through"):
            raise InvalidInput(
                f"write_policy must be 'write_back' or 'write_through', got {self.write_policy!r}"
            )
        for name in ("promotion_batch_size", "max_dirty"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be 1 or more, got {getattr(self, name)}")
        self.page_table()  # which refuses what it cannot be made with

    @property
    def most_dirty(self) -> int:
        """How many objects may wait for their cold copy."""
        return self.max_dirty if self.write_policy == "write_back" else 0

    def page_table(self) -> PageTable:
        """Return an empty page table for the hot tier."""
        return PageTable(self.page_size, self.paging_strategy, self.max_pages)
