"""Compatibility: the runtime's ``engine.schemas``."""
