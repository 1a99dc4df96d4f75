"""Trust: which stored text gives orders to a model instead of telling something."""

from .sieve import Suspicion, suspicion

__all__ = ["Suspicion", "suspicion"]
