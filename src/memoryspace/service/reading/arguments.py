"""What every service checks of its arguments, whatever it stands on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import InvalidInput, NotStarted
from ...record import RESERVED_PREFIX, check_id, is_number


def not_started(service: object) -> NotStarted:
    """Return the error of a service that is used while it is not running."""
    return NotStarted(
        f"Service not started: call start() on this {type(service).__name__}, "
        "or use it in `async with`"
    )


def check_own(what: str, value: str) -> str:
    """Return an id that is a user's to give: any that a store holds, but for our own."""
    if check_id(what, value).startswith(RESERVED_PREFIX):
        raise InvalidInput(f"{what} {value!r} begins with {RESERVED_PREFIX!r}, which is reserved")
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
    """Refuse what can be no memory's version: no memory would ever be at it."""
    if version is not None and (type(version) is not int or version < 1):
        raise InvalidInput(f"version must be a whole number from 1 on, got {version!r}")


def check_relevance(value: float, what: str = "min_relevance") -> float:
    """Return a least relevance, from 0 to 1: a hit's score is the chance that it answers."""
    if not is_number(value) or not 0 <= value <= 1:
        raise InvalidInput(
            f"{what} must be a number from 0 to 1, got {value!r}; 0 keeps every hit, "
            "0.3 those that are likely an answer"
        )
    return float(value)


def least_relevance(*given: float | None) -> float | None:
    """Return the greatest of several least relevances, as far as they are given."""
    values = [check_relevance(value) for value in given if value is not None]
    return max(values, default=None)
