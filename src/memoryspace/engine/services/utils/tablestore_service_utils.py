"""The client of Tablestore, where the runtime has it."""

from __future__ import annotations

from ....service import create_tablestore_client

__all__ = ["create_tablestore_client"]
