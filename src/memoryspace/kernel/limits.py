"""``SpaceLimits``: enforcement of quotas and of the budget, collecting before refusing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ..errors import OutOfSpace
from .gc.scheduler import GCScheduler
from .heap.drafts import NewObject
from .heap.heap import Heap
from .options import Quotas


class SpaceLimits:
    """Enforces the limits of a space besides its capacity."""

    def __init__(self, heap: Heap, quotas: Quotas, collecting: GCScheduler) -> None:
        self._heap = heap
        self._quotas = quotas
        self._collecting = collecting

    def check(self, objects: Sequence[NewObject], bodies: Sequence[bytes]) -> None:
        """Raise ``OutOfSpace`` if objects would exceed a limit, even after a collection."""
        wanted: dict[str, int] = {}
        for new, body in zip(objects, bodies, strict=True):
            wanted[new.tenant] = wanted.get(new.tenant, 0) + len(body)
        for tenant, size in wanted.items():
            self.check_quota(tenant, size)
        if self._quotas.budget is not None:
            pairs = zip(objects, bodies, strict=True)
            weights = (len(body) if new.size is None else new.size for new, body in pairs)
            self.check_budget(sum(weights))

    def allow(self, objects: Sequence[NewObject], bodies: Sequence[bytes]) -> bool:
        """Return whether quotas and the budget allow objects now, without a collection."""
        limits, used = self._quotas, Counter[str]()
        for new, body in zip(objects, bodies, strict=True):
            used[new.tenant] += len(body)
        quotas = {tenant: limits.of(tenant) for tenant in used}
        pairs = zip(objects, bodies, strict=True)
        weight = sum(len(body) if new.size is None else new.size for new, body in pairs)
        return all(
            quota is None or self._heap.tenants.used(tenant) + used[tenant] <= quota
            for tenant, quota in quotas.items()
        ) and (limits.budget is None or self._heap.weight + weight <= limits.budget)

    def check_budget(self, weight: int) -> None:
        """Raise ``OutOfSpace`` if the budget does not allow so much more weight."""
        heap, budget = self._heap, self._quotas.budget
        if budget is None:
            return
        self._collect_until(
            lambda: heap.weight + weight <= budget,
            lambda: f"the budget is {budget}, {heap.weight} of it used; {weight} more do not fit",
        )

    def check_quota(self, tenant: str, size: int) -> None:
        """Raise ``OutOfSpace`` if the tenant's quota does not allow so many more bytes."""
        quota = self._quotas.of(tenant)
        if quota is None:
            return
        used = self._heap.tenants.used
        self._collect_until(
            lambda: used(tenant) + size <= quota,
            lambda: (
                f"tenant {tenant!r} uses {used(tenant)} of {quota} bytes; {size} more do not "
                "fit: free some of its objects or raise its quota"
            ),
        )

    def _collect_until(self, fits: Callable[[], bool], why: Callable[[], str]) -> None:
        for free_some in (self._collecting.expire, self._collecting.collect):
            if fits():
                return
            free_some(fits)
        if not fits():
            raise OutOfSpace(why())
