"""Replacement policies: six ways to choose which object leaves the hot tier next.

A policy knows residents and their order, but no sizes, capacity or bytes: the page table does. All
methods are O(1), amortised, and none scans. Not thread-safe: the owner holds a lock.
"""

from __future__ import annotations

from ....errors import InvalidInput
from .arc import ARC
from .clock import Clock
from .contract import ReplacementPolicy
from .lfu import LFU
from .lru import LRU
from .s3fifo import S3FIFO
from .sieve import SIEVE

__all__ = [
    "ARC",
    "LFU",
    "LRU",
    "POLICIES",
    "S3FIFO",
    "SIEVE",
    "Clock",
    "ReplacementPolicy",
    "make_policy",
]

POLICIES: dict[str, type[ReplacementPolicy]] = {
    "lru": LRU,
    "clock": Clock,
    "lfu": LFU,
    "sieve": SIEVE,
    "s3fifo": S3FIFO,
    "arc": ARC,
}


def make_policy(name: str) -> ReplacementPolicy:
    """Return a new, empty policy of this name."""
    policy = POLICIES.get(name)
    if policy is None:
        raise InvalidInput(f"no replacement policy is called {name!r}; use one of {[*POLICIES]}")
    return policy()
