"""The page table: which objects are hot, how many pages they take, which lack a cold copy.

The table moves no bytes: it chooses victims, and ``Mover`` moves them. Sizes and capacity are
counted here; the replacement policy decides the order. Not thread-safe: the owner holds a lock.

A dirty key stays dirty until it is written or removed, even if it is evicted in between, so no
missing cold copy is ever forgotten. Demotion is therefore: ``evict``, write it if it
``is_dirty``, ``clear_dirty``, drop the hot copy; or, if the write failed, ``put_back``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass
from itertools import islice

from ...errors import InvalidInput
from .replacement import make_policy

PAGE_SIZE = 256  # bytes


@dataclass(slots=True)
class PagerStats:
    """Counters of a page table. They are live; ``dataclasses.replace`` takes a snapshot.

    Attributes:
        page_faults: Uses of objects that were not resident.
        evictions: Victims chosen and not put back.
        loads: Objects brought in from the cold tier, on a fault or ahead of one.
        writes: Dirty objects written to the cold tier.
        hits: Uses of resident objects.
    """

    page_faults: int = 0
    evictions: int = 0
    loads: int = 0
    writes: int = 0
    hits: int = 0


class PageTable:
    """The resident set of the hot tier, counted in pages. Every object takes at least one page.

    ``ensure_resident`` enforces ``max_pages``. After ``add``, ``page_in`` and ``resize`` the caller
    evicts while ``over()``, or better frees pages before.

    Args:
        page_size: The size of a page in bytes.
        strategy: The replacement policy: ``"arc"``, ``"lru"``, ``"clock"``, ``"lfu"``,
            ``"sieve"`` or ``"s3fifo"``.
        max_pages: The most pages that residents may take (default: no limit).

    Raises:
        InvalidInput: A value is out of range, or there is no such strategy.
    """

    def __init__(
        self, page_size: int = PAGE_SIZE, strategy: str = "arc", max_pages: int | None = None
    ) -> None:
        for name, number in (("page_size", page_size), ("max_pages", max_pages)):
            if number is not None and number < 1:
                raise InvalidInput(f"{name} must be 1 or more, got {number}")
        self.page_size = page_size
        self.strategy = strategy
        self.max_pages = max_pages
        self.stats = PagerStats()
        self._policy = make_policy(strategy)
        self._pages_of: dict[int, int] = {}
        self._pages = 0
        self._dirty: OrderedDict[int, None] = OrderedDict()  # oldest change first

    def empty_copy(self) -> PageTable:
        """Return an empty table with the same options."""
        return PageTable(self.page_size, self.strategy, self.max_pages)

    @property
    def pages(self) -> int:
        """How many pages the residents take."""
        return self._pages

    @property
    def dirty_count(self) -> int:
        """How many objects lack a cold copy."""
        return len(self._dirty)

    def __len__(self) -> int:
        return len(self._pages_of)

    def is_resident(self, key: int) -> bool:
        """Return whether an object is in the hot tier. This does not count as a use."""
        return key in self._pages_of

    def is_dirty(self, key: int) -> bool:
        """Return whether an object has changed since it was last written to the cold tier."""
        return key in self._dirty

    def dirty_keys(self, limit: int) -> list[int]:
        """Return up to ``limit`` dirty keys, the longest dirty first."""
        return list(islice(self._dirty, limit))

    def fits(self, size: int) -> bool:
        """Return whether an object of this size could be resident, if need be alone."""
        return self.max_pages is None or self._pages_for(size) <= self.max_pages

    def over(self) -> int:
        """Return how many pages the residents take beyond ``max_pages``."""
        return 0 if self.max_pages is None else max(0, self._pages - self.max_pages)

    def add(self, key: int, size: int, *, dirty: bool = True) -> None:
        """Note a new resident, by default one without a cold copy."""
        pages = self._pages_for(size)
        self._policy.add(key)
        self._enter(key, pages)
        if dirty:
            self._dirty.setdefault(key)

    def page_in(self, key: int, size: int, *, fault: bool = True) -> None:
        """Note a resident loaded from the cold tier; ``fault=False`` if ahead of its use."""
        self.add(key, size, dirty=False)
        self.stats.loads += 1
        self.stats.page_faults += fault

    def touch(self, key: int) -> None:
        """Note a use of a resident."""
        self._policy.touch(key)
        self.stats.hits += 1

    def resize(self, key: int, size: int) -> None:
        """Note a resident's new size."""
        pages = self._pages_for(size)
        self._pages += pages - self._pages_of[key]
        self._pages_of[key] = pages

    def remove(self, key: int) -> None:
        """Remove an object that was freed, and forget that it was dirty."""
        if key in self._pages_of:
            self._policy.remove(key)
            self._leave(key)
        elif key not in self._dirty:
            raise KeyError(key)
        self._dirty.pop(key, None)

    def mark_dirty(self, key: int) -> None:
        """Note that a resident has changed."""
        if key not in self._pages_of:
            raise KeyError(key)
        self._dirty.setdefault(key)  # changed again: it keeps its place

    def clear_dirty(self, key: int) -> None:
        """Note that a dirty object was written to the cold tier."""
        del self._dirty[key]
        self.stats.writes += 1

    def evict(self, skip: Container[int] = ()) -> int | None:
        """Choose a victim, remove and return it; ``None`` if only keys in ``skip`` are left.

        The policy treats skipped keys that it would have chosen as just used.
        """
        passed: list[int] = []
        victim = self._next_victim(skip, passed)
        for key in passed:
            self._policy.spare(key)
        if victim is not None:
            self._leave(victim)
            self.stats.evictions += 1
        return victim

    def put_back(self, key: int, size: int) -> None:
        """Undo an eviction that could not be carried out."""
        pages = self._pages_for(size)
        self._policy.spare(key)
        self._enter(key, pages)
        self.stats.evictions -= 1

    def make_room(self, size: int, skip: Container[int] = ()) -> list[int]:
        """Evict until an object of this size fits, and return the victims.

        Raise ``InvalidInput``, and evict nothing, if it does not fit even alone. Skipped residents
        may still leave too little space: check ``over()`` after the ``add``.
        """
        return self._shrink(self._fitting_pages(size), skip)

    def ensure_resident(self, key: int, size: int) -> list[int]:
        """Make an object resident and used, within ``max_pages``; return the victims.

        A resident is touched and resized; any other is a page fault and comes in clean. An object
        larger than ``max_pages`` is refused, and nothing changes: read it from the cold tier.
        """
        pages = self._fitting_pages(size)
        if key not in self._pages_of:
            victims = self._shrink(pages)
            self.page_in(key, size)
            return victims
        self.resize(key, size)
        self.touch(key)
        return self._shrink(0, (key,))

    def _next_victim(self, skip: Container[int], passed: list[int]) -> int | None:
        """Let the policy choose until a key is not to be skipped; collect the others."""
        while len(self._policy):
            key = self._policy.evict()
            if key not in skip:
                return key
            passed.append(key)
        return None

    def _shrink(self, spare_pages: int, skip: Container[int] = ()) -> list[int]:
        """Evict until this many pages are free, as far as ``skip`` allows."""
        victims: list[int] = []
        if self.max_pages is None:
            return victims
        most = self.max_pages - spare_pages
        while self._pages > most and (victim := self.evict(skip)) is not None:
            victims.append(victim)
        return victims

    def _fitting_pages(self, size: int) -> int:
        pages = self._pages_for(size)
        if self.max_pages is not None and pages > self.max_pages:
            raise InvalidInput(
                f"an object of {size} bytes takes {pages} pages of {self.page_size}, but max_pages"
                f" is {self.max_pages}; raise it, or read the object without paging it in"
            )
        return pages

    def _pages_for(self, size: int) -> int:
        if not isinstance(size, int):
            raise TypeError(f"a size must be an int, got {type(size).__name__}")
        if size < 0:
            raise InvalidInput(f"a size must be 0 or more bytes, got {size}")
        return -(-size // self.page_size) or 1

    def _enter(self, key: int, pages: int) -> None:
        self._pages_of[key] = pages
        self._pages += pages

    def _leave(self, key: int) -> None:
        self._pages -= self._pages_of.pop(key)

    def check(self) -> None:
        """Verify every invariant; raise ``AssertionError`` if one is broken."""
        self._policy.check()
        assert len(self._policy) == len(self._pages_of), "the policy has other residents"
        assert all(key in self._policy for key in self._pages_of), "a resident without an order"
        assert self._pages == sum(self._pages_of.values()), "pages do not add up"
        assert all(pages > 0 for pages in self._pages_of.values()), "a resident without a page"
        assert self.stats.evictions >= 0, "more was put back than evicted"
