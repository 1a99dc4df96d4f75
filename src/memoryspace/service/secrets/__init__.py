"""Secrets: what nobody but its owner should read, where it stands, and what becomes of it."""

from .finding import MASK, Secret, masked, secrets_in

__all__ = ["MASK", "Secret", "masked", "secrets_in"]
