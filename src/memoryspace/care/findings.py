"""What an examination finds, as values that print as plain text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from ..portable import Portable

Level: TypeAlias = Literal["ok", "warning", "problem"]
Remedy: TypeAlias = Literal[
    "salvage", "set aside", "quarantine", "rebuild", "retry", "embed", "catch up"
]

_SIGNS: dict[Level, str] = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}


class Finding(Portable, frozen=True):
    """One thing that was checked.

    Attributes:
        level: ``"ok"``; a ``"warning"``, which can wait; or a ``"problem"``, which costs data or
            service.
        check: What was checked, such as ``"journal"``.
        what: What was found, and in which file, of which user, or where else.
        advice: What to do; "" if nothing.
        remedy: What ``repair`` would do about it; ``None`` if it can do nothing.
    """

    level: Level
    check: str
    what: str
    advice: str = ""
    remedy: Remedy | None = None

    def __str__(self) -> str:
        advice = f" -> {self.advice}" if self.advice else ""
        return f"{_SIGNS[self.level]}  {self.check}: {self.what}{advice}"


class Examination(Portable, frozen=True):
    """The findings of an examination, in the order of the checks.

    Attributes:
        place: What was examined; without a password.
        findings: What was found.
    """

    place: str
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that cost data or service."""
        return tuple(each for each in self.findings if each.level == "problem")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that can wait."""
        return tuple(each for each in self.findings if each.level == "warning")

    @property
    def is_healthy(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def remedies(self) -> frozenset[Remedy]:
        """What ``repair`` would do."""
        return frozenset(each.remedy for each in self.findings if each.remedy is not None)

    def __str__(self) -> str:
        return "\n".join([self.place, *map(str, self.findings)])


def ok(check: str, what: str) -> Finding:
    """Return a finding that all is well."""
    return Finding("ok", check, what)


def few(names: Iterable[str], most: int = 5) -> str:
    """Return some names of many, for a sentence."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(map(repr, listed[:most])) + more
