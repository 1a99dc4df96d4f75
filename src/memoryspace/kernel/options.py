"""``Options``: how a space is managed, decided once by whoever opens it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import InvalidInput
from .gc.collectors import GarbageCollector
from .gc.policies import GCPolicy


@dataclass(frozen=True)
class Options:
    """How a space is managed."""

    collectors: tuple[GarbageCollector, ...] = ()
    policies: tuple[GCPolicy, ...] = ()
    quotas: dict[str, int] = field(default_factory=dict)
    default_quota: int | None = None
    budget: int | None = None
    checkpoint_bytes: int | None = None
    pause: float = 0.001

    def __post_init__(self) -> None:
        if not self.pause > 0:
            raise InvalidInput(f"pause must be above 0 seconds, got {self.pause}")

    @property
    def has_limits(self) -> bool:
        """Whether there is anything to refuse but what does not fit."""
        return bool(self.quotas or self.default_quota is not None or self.budget is not None)
