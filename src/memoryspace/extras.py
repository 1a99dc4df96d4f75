"""Optional dependencies: imported when first used, with a word about which extra is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from .errors import MissingExtra


class Lazy(NamedTuple):
    """Where a name stands and what it needs: a submodule, a package, the extra that brings it.

    Of several extras that bring it, ``extra`` names all, with a space between. Without a package
    the name is only loaded late.
    """

    module: str
    package: str = ""
    extra: str = ""


def lazily(package: str, names: Mapping[str, Lazy]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__`` that imports each name from its submodule when asked."""

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
