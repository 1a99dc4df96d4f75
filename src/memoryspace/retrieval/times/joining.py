"""Modifiers of expressions of time: "the week before", "since", ranges with "to".

This works on the expressions of all languages in reading order. It reads only a few characters
before, between and after them, so it is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import days as calendar
from .days import Days
from .reading import DatedText, TimeMatch
from .words import EDGES, ORDINALS, QUANTITY, WEEKDAY, WEEKDAYS, in_words

_REACH = 48  # characters before an expression that may modify it

_BESIDE = re.compile(
    rf"(?:(?P<many>many\s)|{QUANTITY}\s)?"
    rf"\b(?:(?P<unit>day|weekend|week|month|year|night|morning|afternoon|evening)s?|{WEEKDAY})\s"
    r"(?P<side>before|after|prior to|following)\s(?:the\s)?$",
    re.ASCII,
)
_OF = re.compile(
    r"\b(?P<unit>day|weekend|week|month|year|night|morning|afternoon|evening)\sof\s(?:the\s)?$"
)
_NTH = re.compile(
    rf"\b(?:(?P<nth>{'|'.join(ORDINALS)}|last|final)\s)"
    rf"(?:(?P<unit>day|weekend|week|half)|{WEEKDAY})\s(?:of|in)\s(?:the\s)?$"
)
_PART = re.compile(
    r"\b(?:(?P<part>early|mid|late)(?:\s(?:in|on))?|"
    r"(?P<edge>start|beginning|middle|end)\s(?:of|in))[\s-](?:the\s)?$"
)
_SINCE = re.compile(r"(?:\b(?:ever\s)?since\s(?:around\s|about\s|the\s)*|自从?)$")
_UNTIL_NOW = re.compile(r"\s?(?:以来|以來|至今|到现在)")

_TO = re.compile(r"\s?(?:-|–|—|~|～|to|until|till|through|到|至)\s?(?:the\s)?")
_AND = re.compile(r"\s?(?:and|和|与)\s?(?:the\s)?")
_BETWEEN = re.compile(r"\bbetween\s(?:the\s)?$")
_NEXT_TO = re.compile(r"[\s,(]{0,2}(?:of\s|in\s|on\s)?(?:the\s)?|'s\s|的")
_THIRDS = {"early": 0, "mid": 1, "late": 2}


def joined(found: Iterable[TimeMatch], text: DatedText) -> list[TimeMatch]:
    """Return the expressions with their modifiers applied, without overlaps."""
    result: list[TimeMatch] = []
    reached = 0
    for each in found:
        if each.at < reached:  # another language found a longer expression here
            continue
        reached = each.stop
        changed = _since(_changed(each, text), text)
        while result and result[-1].stop > changed.at:
            result.pop()  # "Friday" of "Friday before 27 July" was found as well
        pair = _paired(result[-1], changed, text) if result else None
        if pair is not None:
            result[-1] = pair
        else:
            result.append(changed)
    return result


def _changed(found: TimeMatch, text: DatedText) -> TimeMatch:
    """Apply the words right before: "the week before", "the second week of", "early"."""
    before = text.before(found.at, _REACH)
    for pattern, change in ((_BESIDE, _beside), (_NTH, _nth), (_OF, _around), (_PART, _part)):
        match = pattern.search(before)
        if match is not None:
            days = change(match, found.days)
            at = found.at - len(before) + match.start()
            return found if days is None else TimeMatch(at, found.stop, days)
    return found


def _beside(match: re.Match[str], days: Days) -> Days | None:
    if match["many"] is not None:  # "how many days before" is a question
        return None
    low, high = in_words(match["quantity"]) if match["quantity"] is not None else (1, 1)
    after = match["side"] in ("after", "following")
    if match["weekday"] is not None:
        weekday = WEEKDAYS[match["weekday"]]
        if after:
            return calendar.weekday_from(days.end, weekday, low)
        return calendar.weekday_before(days.start, weekday, low)
    if match["unit"] == "weekend":
        return _weekend_beside(days, low, after=after)
    name = match["unit"] if match["unit"] in ("week", "month", "year") else "day"
    if after:
        return _span(days.end, name, low - 1, high)
    return _span(days.start, name, -high, 1 - low)


def _weekend_beside(days: Days, nth: int, *, after: bool) -> Days | None:
    """Return a weekend that is over before the days, or begins after them."""
    if after:
        saturday = calendar.weekday_from(days.end, 5, nth)
        return calendar.days(saturday.start, saturday.end + 1) if saturday is not None else None
    sunday = calendar.weekday_before(days.start, 6, nth)
    return calendar.days(sunday.start - 1, sunday.end) if sunday is not None else None


def _span(day: int, name: str, first: int, last: int) -> Days | None:
    return calendar.days(calendar.moved(day, name, first), calendar.moved(day, name, last))


def _nth(match: re.Match[str], days: Days) -> Days | None:
    number = ORDINALS.get(match["nth"])
    if match["weekday"] is not None or match["unit"] == "weekend":
        weekday = WEEKDAYS[match["weekday"]] if match["weekday"] is not None else 5
        length = 1 if match["weekday"] is not None else 2
        if number is None:
            first = calendar.weekday_before(days.end, weekday)
        else:
            first = calendar.weekday_from(days.start, weekday, number)
        return calendar.days(first.start, first.start + length) if first is not None else None
    length = {"day": 1, "week": 7, "half": (days.end - days.start + 1) // 2}[match["unit"]]
    if number is None:
        return calendar.days(max(days.start, days.end - length), days.end)
    start = days.start + (number - 1) * length
    return calendar.days(start, min(start + length, days.end))


def _around(match: re.Match[str], days: Days) -> Days | None:
    """Return the week or weekend of a day; the night of a day is that day."""
    if match["unit"] in ("week", "weekend"):
        return calendar.unit(match["unit"], days.start, 0)
    return days


def _part(match: re.Match[str], days: Days) -> Days | None:
    if match["edge"] is not None:
        return calendar.edge(days, EDGES[match["edge"]])
    return calendar.third(days, _THIRDS[match["part"]])


def _since(found: TimeMatch, text: DatedText) -> TimeMatch:
    """Extend an expression after "since" up to today."""
    before = text.before(found.at, _REACH)
    since, until_now = _SINCE.search(before), _UNTIL_NOW.match(text.original, found.stop)
    if since is None and until_now is None:
        return found
    at = found.at - len(before) + since.start() if since is not None else found.at
    stop = until_now.end() if until_now is not None else found.stop
    days = calendar.days(found.days.start, text.today + 1)
    return TimeMatch(at, stop, days) if days is not None else found


def _paired(first: TimeMatch, second: TimeMatch, text: DatedText) -> TimeMatch | None:
    """Merge two neighbours into a range, or a weekday with its date or week."""
    gap = text.lower[first.stop : second.at]
    if _TO.fullmatch(gap) or (
        _AND.fullmatch(gap) and _BETWEEN.search(text.before(first.at, _REACH))
    ):
        days = _range(first, second)
    elif _NEXT_TO.fullmatch(gap):
        days = _same_day(first, second)
    else:
        days = None
    return TimeMatch(first.at, second.stop, days) if days is not None else None


def _range(first: TimeMatch, second: TimeMatch) -> Days | None:
    """Return the range from the first to the second; a year given for one applies to both."""
    begin: Days | None = first.days
    end: Days | None = second.days
    if first.in_year is not None and (second.in_year is None or first.days > second.days):
        begin = calendar.latest(first.in_year, second.days.start)
    elif second.in_year is not None and first.in_year is None:
        end = calendar.coming(second.in_year, first.days.start)
    return calendar.days(begin.start, end.end) if begin is not None and end is not None else None


def _same_day(first: TimeMatch, second: TimeMatch) -> Days | None:
    for weekday, other in ((first.weekday, second.days), (second.weekday, first.days)):
        length = other.end - other.start
        if weekday is not None and length == 1:
            return other
        if weekday is not None and length == 7:
            return calendar.weekday_from(other.start, weekday)
    return None
