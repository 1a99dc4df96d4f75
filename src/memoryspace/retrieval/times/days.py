"""Calendar arithmetic on whole days, for dates that may not exist.

A day is its proleptic ordinal, a plain int, so nothing here can overflow: dates outside the years 1
to 9999 are ``None``, like February 30. Weeks begin on Monday. Seasons are the meteorological ones
of the northern hemisphere: summer is June to August; a winter belongs to the year it begins in.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date
from typing import NamedTuple, TypeAlias

LAST_DAY = date.max.toordinal()
SPRING, SUMMER, AUTUMN, WINTER = 3, 6, 9, 12  # seasons, by their first month

_LEAP = 8  # years: the most between two February 29
_SOON = 31  # days
_LONG = 100  # days: the end of a month is ten days long, that of a year two months


class Days(NamedTuple):
    """A half-open range of days, as ordinals."""

    start: int
    end: int


Yearly: TypeAlias = Callable[[int], Days | None]  # a yearly event: year → its days


def day(year: int, month: int, number: int) -> Days | None:
    """Return one day, or ``None`` if there is no such date."""
    if not (1 <= year <= date.max.year and 1 <= month <= 12):
        return None
    if not 1 <= number <= monthrange(year, month)[1]:
        return None
    start = date(year, month, number).toordinal()
    return days(start, start + 1)


def months(year: int, month: int, count: int = 1) -> Days | None:
    """Return ``count`` months; a month below 1 or above 12 is in another year."""
    start, end = _first_of(year, month), _first_of(year, month + count)
    return days(start, end) if start is not None and end is not None else None


def years(year: int, count: int = 1) -> Days | None:
    """Return ``count`` whole years."""
    return months(year, 1, 12 * count)


def days(start: int | None, end: int | None) -> Days | None:
    """Return the range, or ``None`` if it is empty or outside the calendar."""
    if start is None or end is None or not 1 <= start < end <= LAST_DAY:
        return None
    return Days(start, end)


def unit(name: str, today: int, shift: int) -> Days | None:
    """Return the day, week, weekend, month or year ``shift`` after today's; negative is before."""
    monday = today - (today - 1) % 7 + 7 * shift
    if name == "day":
        return days(today + shift, today + shift + 1)
    if name == "week":
        return days(monday, monday + 7)
    if name == "weekend":
        return days(monday + 5, monday + 7)
    this = date.fromordinal(today)
    return months(this.year, this.month + shift) if name == "month" else years(this.year + shift)


def units(name: str, today: int, first: int, last: int) -> Days | None:
    """Return the range from one unit to another, both relative to today's."""
    low, high = unit(name, today, first), unit(name, today, last)
    return days(low.start, high.end) if low is not None and high is not None else None


def moved(start: int, name: str, count: int) -> int | None:
    """Return the day ``count`` units later (earlier if negative), capped at the month's end."""
    if name in _LENGTHS:
        return start + _LENGTHS[name] * count
    if not 1 <= start <= LAST_DAY:
        return None
    this = date.fromordinal(start)
    month = months(this.year, this.month + (count if name == "month" else 12 * count))
    return min(month.start + this.day, month.end) - 1 if month is not None else None


def weekday_before(start: int, weekday: int, nth: int = 1) -> Days | None:
    """Return the last such weekday (Monday is 0) before a day, or the nth last."""
    found = start - 1 - (start - 2 - weekday) % 7 - 7 * (nth - 1)
    return days(found, found + 1)


def weekday_from(start: int, weekday: int, nth: int = 1) -> Days | None:
    """Return the first such weekday (Monday is 0) from a day on, or the nth."""
    found = start + (weekday - (start - 1)) % 7 + 7 * (nth - 1)
    return days(found, found + 1)


def third(whole: Days, which: int) -> Days | None:
    """Return the early (0), the middle (1) or the late (2) third."""
    length = whole.end - whole.start
    ends = [whole.start + round(length * part / 3) for part in range(3)] + [whole.end]
    return days(ends[which], ends[which + 1])


def edge(whole: Days, which: int) -> Days | None:
    """Return the start (0), the middle (1) or the end (2): a third, of a year only a sixth."""
    length = whole.end - whole.start
    if which == 1 or length < _LONG:
        return third(whole, which)
    part = length // 6
    return (
        Days(whole.start, whole.start + part) if which == 0 else Days(whole.end - part, whole.end)
    )


def year_of(today: int) -> int:
    """Return the year a day is in."""
    return date.fromordinal(today).year


def latest(in_year: Yearly, today: int, *, soon: bool = False) -> Days | None:
    """Return the most recent occurrence of a yearly event, which may be going on.

    With ``soon``, an occurrence that begins within a month wins over the one of a year ago.
    """
    horizon = today + _SOON if soon else today
    return _first(in_year, _years_around(today), lambda found: found.start <= horizon)


def last(in_year: Yearly, today: int) -> Days | None:
    """Return the most recent occurrence of a yearly event that is over."""
    return _first(in_year, _years_around(today), lambda found: found.end <= today)


def coming(in_year: Yearly, today: int) -> Days | None:
    """Return the next occurrence of a yearly event."""
    this = year_of(today)
    return _first(in_year, range(this, this + _LEAP + 1), lambda found: found.start > today)


def _years_around(today: int) -> range:
    this = year_of(today)
    return range(this + 1, this - _LEAP - 1, -1)


def _first(in_year: Yearly, candidates: range, fits: Callable[[Days], bool]) -> Days | None:
    made = (in_year(year) for year in candidates)
    return next((found for found in made if found is not None and fits(found)), None)


def _first_of(year: int, month: int) -> int | None:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, 1).toordinal() if 1 <= year <= date.max.year else None


_LENGTHS = {"day": 1, "week": 7, "weekend": 7}
