"""The ``memoryspace`` command line, on the verbs of the door.

Importing it loads nothing heavy: a command imports what it needs when it runs.
"""

from __future__ import annotations

from .running import main

__all__ = ["main"]
