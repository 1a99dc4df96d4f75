"""Moving in and out: exports without loss, migration between stores, importers for other programs.

``export_memories`` writes everything a store keeps of its users to a file, and ``import_memories``
reads it into a store of any backend. ``migrate`` does both without a file. ``import_foreign`` reads
what other memory systems and chat programs have written; ``importers`` lists them.
"""

from .exporting import export_memories
from .foreign import Importer, import_foreign, importers
from .importing import import_memories
from .migrating import migrate
from .reports import ExportReport, ImportReport, Moved, Progress

__all__ = [
    "ExportReport",
    "ImportReport",
    "Importer",
    "Moved",
    "Progress",
    "export_memories",
    "import_foreign",
    "import_memories",
    "importers",
    "migrate",
]
