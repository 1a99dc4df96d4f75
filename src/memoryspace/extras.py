"""Lazy imports of optional dependencies, with errors that name the missing extra."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from .errors import MissingExtra


class Lazy(NamedTuple):
    """Where a name is defined and what it needs: submodule, required package, extra.

    If several extras install the package, ``extra`` lists all of them, separated by spaces. Without
    a package the name is only loaded lazily.
    """

    module: str
    package: str = ""
    extra: str = ""


def lazily(package: str, names: Mapping[str, Lazy]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for ``package`` that imports each name on first use."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = names[name]
        try:
            if place.package:
                import_module(place.package)
        except ImportError as error:
            raise MissingExtra(place.package, *place.extra.split()) from error
        return getattr(import_module(f"{package}.{place.module}"), name)

    return find
