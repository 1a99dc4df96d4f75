"""Records in a relational database (needs the extra ``sql``, ``postgres`` or ``mysql``)."""

from .store import SQLStore

__all__ = ["SQLStore"]
