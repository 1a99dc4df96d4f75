"""A Tablestore in this process: the coroutines of the asynchronous client that stores call.

It is not part of ``memoryspace.testing`` itself, because it needs the extra ``tablestore``.
"""

from __future__ import annotations

from .client import FakeTablestoreClient

__all__ = ["FakeTablestoreClient"]
