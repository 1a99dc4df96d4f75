"""A Tablestore in this process, behind the methods of the asynchronous client that stores call.

It is not imported by ``memoryspace.testing``, because it needs the extra ``tablestore``.
"""

from __future__ import annotations

from .client import FakeTablestoreClient

__all__ = ["FakeTablestoreClient"]
