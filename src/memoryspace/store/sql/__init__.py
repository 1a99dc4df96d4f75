"""Records in a relational database (needs the extra ``sql``, ``postgres`` or ``mysql``)."""

from ...errors import MissingExtra

try:
    import sqlalchemy  # noqa: F401  # only to say which extra is missing
except ImportError as error:
    raise MissingExtra("sqlalchemy", "sql") from error

from .store import SQLStore

__all__ = ["SQLStore"]
