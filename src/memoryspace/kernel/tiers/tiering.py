"""``Tiering``: the options of a tiered space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ...errors import InvalidInput
from .curves import MissRatioCurve
from .pager import PAGE_SIZE, PageTable

WritePolicy: TypeAlias = Literal["write_back", "write_through"]


@dataclass(frozen=True)
class Tiering:
    """Which objects are demoted and when, how many are promoted, when cold copies are written.

    Args:
        hot_reserve_ratio: The share of the heap that one demotion frees at least.
        max_hot_objects: The most objects in the hot tier (default: no limit but the heap).
        page_size: The size of a page in bytes; the hot tier is counted in pages.
        max_pages: The most pages in the hot tier (default: no limit but the heap).
        paging_strategy: Chooses what is demoted: ``"arc"``, ``"lru"``, ``"clock"``, ``"lfu"``,
            ``"sieve"`` or ``"s3fifo"``.
        write_policy: ``"write_back"`` writes cold copies later and in batches,
            ``"write_through"`` writes them with the store.
        promotion_batch_size: The most cold objects that one ``retrieve`` promotes.
        max_dirty: The most objects that may lack a cold copy under ``"write_back"``.
        flush_interval: Seconds between two runs of the write-back thread; ``None`` for no thread.
        curve: Records uses, to estimate the miss ratio of other hot capacities.

    Raises:
        InvalidInput: A value is out of range.

    Example::

        tiering = Tiering(paging_strategy="sieve", flush_interval=None)
        space = TieredMemoryManager(1 << 20, tiering=tiering)
    """

    hot_reserve_ratio: float = 0.25
    max_hot_objects: int | None = None
    page_size: int = PAGE_SIZE
    max_pages: int | None = None
    paging_strategy: str = "arc"
    write_policy: WritePolicy = "write_back"
    promotion_batch_size: int = 1
    max_dirty: int = 4096
    flush_interval: float | None = 1.0
    curve: MissRatioCurve | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.hot_reserve_ratio < 1:
            raise InvalidInput(
                f"hot_reserve_ratio must be from 0 to below 1, got {self.hot_reserve_ratio}"
            )
        if self.write_policy not in ("write_back", "write_through"):
            raise InvalidInput(
                f"write_policy must be 'write_back' or 'write_through', got {self.write_policy!r}"
            )
        for name in ("promotion_batch_size", "max_dirty"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be 1 or more, got {getattr(self, name)}")
        if self.flush_interval is not None and not self.flush_interval > 0:
            raise InvalidInput(f"flush_interval must be above 0 s, got {self.flush_interval}")
        self.page_table()  # validates page_size, paging_strategy and max_pages

    @property
    def most_dirty(self) -> int:
        """How many objects may lack a cold copy."""
        return self.max_dirty if self.write_policy == "write_back" else 0

    def page_table(self) -> PageTable:
        """Return an empty page table for the hot tier."""
        return PageTable(self.page_size, self.paging_strategy, self.max_pages)

    def overridden(self, **values: Any) -> Tiering:
        """Return the same options with those of these values that are not ``None``."""
        return replace(self, **{name: each for name, each in values.items() if each is not None})
