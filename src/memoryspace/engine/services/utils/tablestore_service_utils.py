"""Compatibility: the runtime's path of the Tablestore client."""

from __future__ import annotations

from ....service import create_tablestore_client

__all__ = ["create_tablestore_client"]
