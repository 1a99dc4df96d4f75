"""Importers for what other memory systems, agent frameworks and chat programs have written."""

from .contract import Importer
from .importing import import_foreign, importers

__all__ = ["Importer", "import_foreign", "importers"]
