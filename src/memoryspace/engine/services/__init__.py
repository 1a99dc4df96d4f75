"""Compatibility: the runtime's ``engine.services``."""
