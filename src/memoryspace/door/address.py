"""Addresses as they may be shown."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "•••"


def shown(address: str | PathLike[str]) -> str:
    """Return an address as it may be shown: without a password."""
    text = str(address)
    if "://" not in text:
        return text if text.endswith(":") else str(Path(text).expanduser())
    parts = urlsplit(text)
    if parts.password is None:
        return text
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:{HIDDEN}@{host}"))
