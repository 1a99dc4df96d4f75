"""How many requests a tenant may make in a minute."""

from __future__ import annotations

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from ..problems import Problem
from .keys import Caller


class Rates:
    """Counts the requests of each tenant in this process.

    A key that is bound to one user counts as that user, any other key as itself.

    Args:
        a_minute: The most requests a minute; 0 for no limit.
    """

    def __init__(self, a_minute: int) -> None:
        self._most = RateLimitItemPerMinute(a_minute) if a_minute else None
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def count(self, caller: Caller) -> None:
        """Count a request; raise a ``Problem`` if there were too many."""
        if self._most is None:
            return
        user = caller.only_user
        tenant = ("key", caller.key) if user is None else ("user", user)
        if not self._limiter.hit(self._most, *tenant):
            raise Problem(
                429,
                "too-many-requests",
                f"more than {self._most.amount} requests in a minute; try again later",
                headers={"Retry-After": "5"},
            )
