"""The folders that a memory uses if none is named."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HOME = "MEMORYSPACE_HOME"

_APPLICATION = "memoryspace"


def default_folder() -> Path:
    """Return the folder named by ``MEMORYSPACE_HOME``, else one in the user's data folder."""
    named = os.environ.get(HOME, "").strip()
    return Path(named).expanduser() if named else _data_folder() / _APPLICATION


def config_folder() -> Path:
    """Return where the user's settings are."""
    if sys.platform in ("darwin", "win32"):
        return _data_folder() / _APPLICATION
    return _from_xdg("XDG_CONFIG_HOME", ".config") / _APPLICATION


def _data_folder() -> Path:
    """Return where the platform keeps the data of a user's applications."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    return _from_xdg("XDG_DATA_HOME", ".local", "share")


def _from_xdg(variable: str, *default: str) -> Path:
    named = os.environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else Path.home().joinpath(*default)  # as XDG asks
