"""Stored texts as they may be shown: a terminal must never obey what a memory contains.

Control characters, escape sequences and marks that reorder text are written out, as in ``\\x1b``.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

_JOINERS = "\u200c\u200d"  # of emoji, and of letters in Persian and in Indian scripts


def one_line(text: str) -> str:
    """Return a text on one line, with nothing in it that a terminal would obey."""
    return _safe(" ".join(text.split()), "")


def block(text: str) -> str:
    """Return a text with its lines, and nothing else in it that a terminal would obey."""
    return _safe(text.replace("\r\n", "\n"), "\n\t")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON for any reader, a terminal included; nothing of it is lost."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    return "".join(each if _is_shown(each, "\n") else json.dumps(each)[1:-1] for each in text)


def _safe(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if _is_shown(each, kept) else _written_out(each) for each in text)


def _is_shown(character: str, kept: str) -> bool:
    if character.isprintable() or character in kept or character in _JOINERS:
        return True
    return unicodedata.category(character) == "Zs"  # spaces, such as the wide one of Chinese


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
