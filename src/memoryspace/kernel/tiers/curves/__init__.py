"""Cache statistics: the hit rate over time, and the miss ratio at other cache sizes.

``HitRate`` counts hits and misses in windows over time. ``MissRatioCurve`` estimates the miss ratio
of an LRU cache of any size from a small sample of the keys. Both use bounded memory for any number
of accesses. Not thread-safe: the owner holds a lock.
"""

from __future__ import annotations

from .hit_rate import HitRate, Window
from .miss_ratio import MissRatioCurve

__all__ = ["HitRate", "MissRatioCurve", "Window"]
