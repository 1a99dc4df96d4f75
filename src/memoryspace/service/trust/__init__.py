"""Detection of prompt injection: stored text that gives instructions to a model."""

from .sieve import Suspicion, suspicion

__all__ = ["Suspicion", "suspicion"]
