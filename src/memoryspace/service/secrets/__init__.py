"""Detection and masking of secrets in text: cards, passwords, keys, ids."""

from .finding import MASK, Secret, masked, secrets_in

__all__ = ["MASK", "Secret", "masked", "secrets_in"]
