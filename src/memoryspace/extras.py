"""Optional and lazily loaded names of a package.

A package hands ``__getattr__`` to ``lazily`` and ``__dir__`` to ``listing``. A name is imported on
first use. If its extra is not installed, ``MissingExtra`` says which one to install.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from .errors import MissingExtra


class Lazy(NamedTuple):
    """Where a name is defined and what it requires: a submodule, a package, and its extra.

    ``extra`` may name several extras, separated by spaces; any of them brings the package. Without
    a ``package`` the name requires nothing and is only loaded late.
    """

    module: str
    package: str = ""
    extra: str = ""


def lazily(package: str, names: Mapping[str, Lazy]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for ``package`` that imports each of ``names`` on first use."""

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


def listing(package: str) -> Callable[[], list[str]]:
    """Return a ``__dir__`` for ``package`` that adds its ``__all__`` to the names loaded so far."""

    def names() -> list[str]:
        loaded = vars(sys.modules[package])
        return sorted({*loaded, *loaded["__all__"]})

    return names
