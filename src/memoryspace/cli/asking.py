"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import sys

from .exits import NotConfirmed
from .plain import one_line


def confirm(question: str, *, yes: bool) -> None:
    """Return if the answer is yes, or was given beforehand.

    Raises:
        NotConfirmed: The answer is another one, or there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmed(f"{question} There is no terminal to ask on; pass --yes if so")
    sys.stderr.write(f"{one_line(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed("nothing was done")
