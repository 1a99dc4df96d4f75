"""``Limits``: what quotas and the budget allow. Who would exceed one makes room, or is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ..errors import OutOfSpace
from .gc.scheduler import GCScheduler
from .heap.drafts import NewObject
from .heap.heap import Heap
from .options import Options


class Limits:
    """The limits of a space besides its capacity."""

    def __init__(self, heap: Heap, options: Options, collecting: GCScheduler) -> None:
        self._heap = heap
        self._options = options
        self._collecting = collecting

    def check(self, objects: Sequence[NewObject], bodies: Sequence[bytes]) -> None:
        """Refuse what a quota or the budget does not allow, after trying to make it fit."""
        wanted: dict[str, int] = {}
        for new, body in zip(objects, bodies, strict=True):
            wanted[new.tenant] = wanted.get(new.tenant, 0) + len(body)
        for tenant, size in wanted.items():
            self.keep_quota(tenant, size)
        if self._options.budget is not None:
            pairs = zip(objects, bodies, strict=True)
            weights = (len(body) if new.size is None else new.size for new, body in pairs)
            self.keep_budget(sum(weights))

    def fit(self, objects: Sequence[NewObject], bodies: Sequence[bytes]) -> bool:
        """Tell whether quotas and the budget allow objects as things stand."""
        options, used = self._options, Counter[str]()
        for new, body in zip(objects, bodies, strict=True):
            used[new.tenant] += len(body)
        quotas = {each: options.quotas.get(each, options.default_quota) for each in used}
        pairs = zip(objects, bodies, strict=True)
        weight = sum(len(body) if new.size is None else new.size for new, body in pairs)
        return all(
            quota is None or self._heap.tenants.used(tenant) + used[tenant] <= quota
            for tenant, quota in quotas.items()
        ) and (options.budget is None or self._heap.weight + weight <= options.budget)

    def keep_budget(self, weight: int) -> None:
        """Refuse so much weight more if the budget does not allow it."""
        heap, budget = self._heap, self._options.budget
        if budget is None:
            return
        self._keep_below(
            lambda: heap.weight + weight <= budget,
            lambda: f"the budget of {budget} holds {heap.weight}; {weight} more do not fit",
        )

    def keep_quota(self, tenant: str, size: int) -> None:
        """Refuse so many bytes more if the tenant's quota does not allow them."""
        quota = self._options.quotas.get(tenant, self._options.default_quota)
        if quota is None:
            return
        used = self._heap.tenants.used
        self._keep_below(
            lambda: used(tenant) + size <= quota,
            lambda: (
                f"tenant {tenant!r} uses {used(tenant)} of {quota} bytes; {size} more do not "
                "fit: free some of its objects or raise its quota"
            ),
        )

    def _keep_below(self, fits: Callable[[], bool], why: Callable[[], str]) -> None:
        for relieve in (self._collecting.expire, self._collecting.collect):
            if fits():
                return
            relieve(fits)
        if not fits():
            raise OutOfSpace(why())
