"""How well a cache does, and how well it would do at another size.

``HitRate`` is what happened: hits and misses in windows over time. ``MissRatioCurve`` is what would
have happened to an LRU cache of any size, from a small sample of the keys. Both take bounded memory
for any number of accesses. Not thread-safe: the owner's lock guards them.
"""

from __future__ import annotations

from .hit_rate import HitRate, Window
from .miss_ratio import MissRatioCurve

__all__ = ["HitRate", "MissRatioCurve", "Window"]
