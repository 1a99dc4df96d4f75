"""Optional dependencies: a word about which extra to install, not a bare ImportError."""

from __future__ import annotations

from importlib import import_module

from .errors import MissingExtra


def need(package: str, extra: str) -> None:
    """Raise ``MissingExtra`` unless the package can be imported."""
    try:
        import_module(package)
    except ImportError as error:
        raise MissingExtra(package, extra) from error
