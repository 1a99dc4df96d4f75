"""Commands for the settings."""

from __future__ import annotations

import os
from typing import Any

from .command import on
from .groups import config
from .screen import Grid
from .work import Work


@on(config, name="show")
def show(work: Work) -> None:
    """Show each setting, its value and where it is from.

    Secrets are not shown.
    """
    found = work.settings()
    rows = [
        {"setting": name, "value": _shown(name, getattr(found.settings, name)), "from": source}
        for name, source in found.sources.items()
    ]
    grid = Grid(
        ("setting", "value", "from"),
        [(each["setting"], _in_words(each["value"]), each["from"]) for each in rows],
        wide=("value", "from"),
    )
    work.screen.show({"settings": rows}, grid)


@on(config, name="path")
def path(work: Work) -> None:
    """Show the file of settings in use, and where the memory is."""
    from ..door.address import shown
    from ..door.config import config_file

    given = work.config_file
    file = config_file(os.environ) if given is None else given
    place = shown(work.place())
    data = {"file": None if file is None else str(file), "address": place}
    rows = [("file", "none" if file is None else str(file)), ("address", place)]
    work.screen.show(data, Grid(("", "path"), rows, wide=("path",)))


def _shown(name: str, value: Any) -> Any:
    from ..door.address import HIDDEN, shown

    if value is None:
        return None
    if name == "api_key":
        return HIDDEN
    return shown(value) if name == "address" else value


def _in_words(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
