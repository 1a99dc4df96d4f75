"""Files and folders that callers name: ``~`` is the user's folder, and a wrong one is refused."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from ..errors import ImportRefused, InvalidInput

Named = str | PathLike[str]


def at_home(place: Named) -> str:
    """Return a path, or an address, with a leading ``~`` replaced."""
    return os.path.expanduser(os.fspath(place))


def file_to_write(target: Named) -> Path:
    """Return the file to export to; its folder must be there."""
    file = Path(at_home(target))
    if file.is_dir():
        raise InvalidInput(f"{file} is a folder; name a file to export to")
    if not file.parent.is_dir():
        raise InvalidInput(f"there is no folder {file.parent} to export to; make it first")
    return file


def file_to_read(source: Named) -> Path:
    """Return the file to import; it must be there."""
    file = Path(at_home(source))
    if not file.is_file():
        raise ImportRefused(
            f"there is no file {file}; for what another program wrote, pass kind= as well"
        )
    return file


def folder_to_make(folder: Named) -> Path:
    """Return the folder to make; no file may be in its place."""
    target = Path(at_home(folder))
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"{target} is a file; fork into a new folder")
    return target
