"""A parser for Google-style docstrings: summary, description and arguments."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_SECTION = re.compile(
    r"^(Args?|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?|Attributes|Warnings?|"
    r"See Also|Todo|References):\s*$"
)
_ARGUMENTS = ("Arg", "Args", "Arguments", "Parameters")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)$")


class Doc(NamedTuple):
    """A parsed docstring: the summary, the description, and a text per argument."""

    short: str = ""
    long: str = ""
    arguments: dict[str, str] = {}  # noqa: RUF012  # never changed


def read_docstring(docstring: str | None) -> Doc:
    """Parse a docstring; missing parts are empty."""
    if not docstring:
        return Doc()
    sections = _sections(inspect.cleandoc(docstring).splitlines())
    short, _, long = "\n".join(sections[""]).strip().partition("\n\n")
    lines = [line for name in _ARGUMENTS for line in sections.get(name, [])]
    return Doc(_one_line(short), long.strip(), _entries(lines))


def _sections(lines: list[str]) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {"": []}
    name = ""
    for line in lines:
        heading = _SECTION.match(line)
        if heading is not None:
            name = heading.group(1)
            sections.setdefault(name, [])
        else:
            sections[name].append(line)
    return sections


def _entries(lines: list[str]) -> dict[str, str]:
    """Entries have the first line's indentation; deeper lines continue the last entry."""
    found: dict[str, list[str]] = {}
    depth, name = None, ""
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        depth = indent if depth is None and text else depth
        entry = _ENTRY.match(text) if indent == depth else None
        if entry is not None:
            name = entry.group(1)
            found[name] = [entry.group(2)]
        elif name and text:
            found[name].append(text)
    return {name: _one_line(" ".join(texts)) for name, texts in found.items()}


def _one_line(text: str) -> str:
    return " ".join(text.split())
