"""Records in a relational database (needs the extra ``sql``, ``postgres`` or ``mysql``)."""

from .migration import Step, migrate
from .purger import Purger
from .store import SQLStore

__all__ = ["Purger", "SQLStore", "Step", "migrate"]
