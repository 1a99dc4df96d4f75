"""Addresses as they may be shown."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit

HIDDEN = "•••"

# A parameter whose name says that it is secret, and its value.
_SECRET = re.compile(r"([?&][^=&#]*(?:pass|pwd|secret|token|key)[^=&#]*=)[^&#]*", re.IGNORECASE)


def shown(address: str | PathLike[str]) -> str:
    """Return an address as it may be shown: without a password."""
    text = str(address)
    if "://" not in text:
        return text if text.endswith(":") else str(Path(text).expanduser())
    try:
        parts = urlsplit(text)
        password = parts.password
    except ValueError:  # not an address; what of it is a password cannot be told
        return f"{text.partition('://')[0]}://{HIDDEN}"
    if password is not None:
        host = parts.netloc.rpartition("@")[2]
        text = text.replace(parts.netloc, f"{parts.username or ''}:{HIDDEN}@{host}", 1)
    return _SECRET.sub(rf"\1{HIDDEN}", text)
