"""Checks of arguments shared by all services."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import InvalidInput, NotStarted
from ...record import RESERVED_PREFIX, check_id, is_number


def not_started(service: object) -> NotStarted:
    """Return the error for a call on a service that is not running."""
    return NotStarted(
        f"Service not started: call start() on this {type(service).__name__}, "
        "or use it in `async with`"
    )


def check_own(what: str, value: str) -> str:
    """Return an id that a caller may use: any valid one without the reserved prefix."""
    if check_id(what, value).startswith(RESERVED_PREFIX):
        raise InvalidInput(f"{what} {value!r} starts with {RESERVED_PREFIX!r}, which is reserved")
    return value


def as_ids(memory_ids: str | Sequence[str]) -> list[str]:
    """Return checked ids as a list; a single one is a list of one."""
    if isinstance(memory_ids, str):
        return [check_id("memory id", memory_ids)]
    if not isinstance(memory_ids, Iterable):
        raise TypeError(
            f"memory ids must be a str or a list of them, got {type(memory_ids).__name__}"
        )
    return [check_id("memory id", each) for each in memory_ids]


def check_version(version: int | None) -> None:
    """Raise ``InvalidInput`` unless ``version`` is ``None`` or a whole number from 1."""
    if version is not None and (type(version) is not int or version < 1):
        raise InvalidInput(f"version must be a whole number from 1 on, got {version!r}")


def check_relevance(value: float, what: str = "min_relevance") -> float:
    """Return a minimum relevance, from 0 to 1: a score is the chance that a hit answers."""
    if not is_number(value) or not 0 <= value <= 1:
        raise InvalidInput(
            f"{what} must be a number from 0 to 1, got {value!r}; 0 keeps every hit, "
            "0.3 keeps likely answers"
        )
    return float(value)


def least_relevance(*given: float | None) -> float | None:
    """Return the greatest of the minimum relevances that are given."""
    values = [check_relevance(value) for value in given if value is not None]
    return max(values, default=None)
