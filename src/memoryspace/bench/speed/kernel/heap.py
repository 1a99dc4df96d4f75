"""The heap alone, against a dict."""

from __future__ import annotations

import random
import statistics
from typing import Any

from ....kernel import (
    BestFitAllocator,
    FirstFitAllocator,
    MemorySpace,
    SegregatedFitAllocator,
)
from .spaces import ROUNDS, SEED, cpu


def heap(n: int) -> dict[str, Any]:
    """Time allocate and free at 75 % fill against dict put and del; measure fragmentation."""
    rng = random.Random(SEED)
    sizes = [min(20_000, max(50, int(rng.lognormvariate(6, 0.9)))) for _ in range(n)]
    total = sum(MemorySpace.block_size(size) for size in sizes)
    swaps = [(rng.randrange(n), rng.choice(sizes)) for _ in range(2 * n)]
    reference = dict.fromkeys(range(n), 0)
    found: dict[str, Any] = {}
    makers = (SegregatedFitAllocator, BestFitAllocator, FirstFitAllocator)
    for maker in makers:
        ratios = []
        for _ in range(ROUNDS if maker is SegregatedFitAllocator else 1):
            with cpu() as limit:
                for number, size in swaps:
                    del reference[number]
                    reference[number] = size
            space = MemorySpace(int(total / 0.75), maker())
            addresses = [space.allocate(size) for size in sizes]
            with cpu() as taken:
                for number, size in swaps:
                    space.deallocate(addresses[number])
                    addresses[number] = space.allocate(size)
            ratios.append(taken() / limit())
        found[maker.__name__] = {
            "pairs_per_s": 2 * n / taken(),
            "vs_dict": statistics.median(ratios),
            "high_water": space.high_water() / space.allocated(),
        }
        space.close()
    return found
