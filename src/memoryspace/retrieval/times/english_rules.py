"""Rules that resolve English expressions of time: one function per kind, from match to days."""

from __future__ import annotations

import re
from functools import partial

from . import days as calendar
from .days import Days, Yearly
from .reading import DatedText, Match, Resolve, TimeMatch
from .words import (
    EDGES,
    HOLIDAYS,
    MONTH,
    MONTHS,
    PLAIN_MONTHS,
    PLAIN_WEEKDAYS,
    SEASONS,
    WEEKDAYS,
    in_words,
    year_in,
)

_SHIFTS = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1, "upcoming": 1}

# Words required before an ambiguous word, which make it a time: "in may", "over the fall".
_TIMELY = re.compile(
    r"\b(?:in|on|at|since|during|until|till|by|before|after|over|between|from|throughout|around|"
    r"early|mid|late|month of)(?:\sthe)?[\s-]$"
    rf"|\b{MONTH.replace('?P<month>', '?:')}(?:\s(?:and|or|to)\s|,\s|\s?-\s?)$"
)
_SEASONAL = re.compile(
    r"\b(?:in|since|during|until|over|throughout|early|mid|late)(?:\sthe)?[\s-]$"
)
_NEVER = re.compile(r"(?:n't|\bnot|\bnever|\bever)\s[^.!?]{0,16}$")
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\b")
_ON = re.compile(r"\b(?:on|since|until|by|dated)\s$")
_NOT_ONE = re.compile(r"\b(?:an?|every|each|any|most|some|black|good|easter)\s$")
_VERB = re.compile(r"\s(?:be|i|we|you|he|she|it|they|not|have|also|well|need|want|help|on|to)\b")


def date(match: Match, text: DatedText) -> TimeMatch | Days | None:
    """Resolve a day of a month; without a year, the last one, or one within a month from now."""
    month, number = MONTHS[match["month"]], int(match["day"])
    return _dated(match, text, lambda year: calendar.day(year, month, number))


def date_range(match: Match, text: DatedText) -> TimeMatch | Days | None:
    """Resolve November 5-6, 2022."""
    month, first, final = MONTHS[match["month"]], int(match["day"]), int(match["to"])

    def in_year(year: int) -> Days | None:
        begin, end = calendar.day(year, month, first), calendar.day(year, month, final)
        return calendar.days(begin.start, end.end) if begin and end else None

    return _dated(match, text, in_year)


def iso_date(match: Match, text: DatedText) -> Days | None:
    """Resolve 2023-05-07."""
    return calendar.day(int(match["year"]), int(match["month"]), int(match["day"]))


def numeric_date(match: Match, text: DatedText) -> Days | None:
    """Resolve 05/07/2023, the month first unless it cannot be; with dots the day comes first."""
    month, number = int(match["first"]), int(match["second"])
    if match["separator"] == "." or month > 12:
        month, number = number, month
    return calendar.day(year_in(match["year"]), month, number)


def short_date(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve "on 5/7": a fraction unless a word says that it is a date."""
    month, number = int(match["first"]), int(match["second"])
    if not _ON.search(text.before(match.start())):
        return None
    return _recent(match, text, lambda year: calendar.day(year, month, number), soon=True)


def numeric_month(match: Match, text: DatedText) -> Days | None:
    """Resolve 2023-05 and 05/2023."""
    return calendar.months(int(match["year"]), int(match["month"]))


def month_of_year(match: Match, text: DatedText) -> Days | None:
    """Resolve May 2023."""
    return calendar.months(year_in(match["year"]), MONTHS[match["month"]])


def season_of_year(match: Match, text: DatedText) -> Days | None:
    """Resolve summer of 2022."""
    return calendar.months(year_in(match["year"]), SEASONS[match["season"]], 3)


def quarter(match: Match, text: DatedText) -> Days | None:
    """Resolve Q3 2023."""
    return calendar.months(year_in(match["year"]), 3 * int(match["quarter"]) - 2, 3)


def holiday_of_year(match: Match, text: DatedText) -> Days | None:
    """Resolve Christmas 2022."""
    return HOLIDAYS[match["holiday"]](year_in(match["year"]))


def year(match: Match, text: DatedText) -> Days | None:
    """Resolve 2022."""
    return calendar.years(int(match["year"]))


def year_range(match: Match, text: DatedText) -> Days | None:
    """Resolve 2019-2021."""
    return calendar.years(int(match["year"]), int(match["to"]) - int(match["year"]) + 1)


def decade(match: Match, text: DatedText) -> Days | None:
    """Resolve the 1990s, the 90s."""
    digits = match["year"]
    return calendar.years(int(digits) if len(digits) == 4 else 1900 + int(digits), 10)


def month(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve a month alone to the last one, which may be the present one."""
    if match["month"] not in PLAIN_MONTHS and not _TIMELY.search(text.before(match.start())):
        return None
    return _recent(match, text, partial(calendar.months, month=MONTHS[match["month"]]))


def season(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve "in the fall" to the last one, which may be the present one."""
    if not _SEASONAL.search(text.before(match.start())):
        return None
    return _recent(match, text, partial(calendar.months, month=SEASONS[match["season"]], count=3))


def holiday(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve "at Christmas" to the last one."""
    if not _TIMELY.search(text.before(match.start())):
        return None
    return _recent(match, text, HOLIDAYS[match["holiday"]], soon=True)


def weekday(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve a weekday alone to the last one, which may be today."""
    name, before = match["weekday"], text.before(match.start())
    if _NOT_ONE.search(before) or (name not in PLAIN_WEEKDAYS and not _ON.search(before)):
        return None
    found = calendar.weekday_before(text.today + 1, WEEKDAYS[name])
    return TimeMatch(*match.span(), found, WEEKDAYS[name]) if found is not None else None


def weekend(match: Match, text: DatedText) -> Days | None:
    """Resolve "over the weekend" to the last one, which may be going on."""
    if not _TIMELY.search(text.before(match.start())):
        return None
    return calendar.unit("weekend", text.today, 0 if (text.today - 1) % 7 >= 5 else -1)


def which_weekday(match: Match, text: DatedText) -> Days | None:
    """Resolve last Friday (before today), this Friday (of this week), next Friday."""
    shift, number = _SHIFTS[match["which"].split()[-1]], WEEKDAYS[match["weekday"]]
    if shift > 0:
        return calendar.weekday_from(text.today + 1, number)
    if shift == 0:
        return calendar.weekday_from(text.today - (text.today - 1) % 7, number)
    return calendar.weekday_before(text.today, number)


def which_month(match: Match, text: DatedText) -> Days | None:
    """Resolve last May (the last that is over), this May, next May."""
    name, which = match["month"], match["which"]
    is_name = name in PLAIN_MONTHS or text.original[match.start("month")].isupper()
    if not is_name and (which == "this" or _VERB.match(text.lower, match.end())):
        return None  # "this may be", "what comes next may be"
    return _which(match, text, partial(calendar.months, month=MONTHS[name]))


def which_season(match: Match, text: DatedText) -> Days | None:
    """Resolve last summer (the last that is over), this summer, next summer."""
    return _which(match, text, partial(calendar.months, month=SEASONS[match["season"]], count=3))


def which_holiday(match: Match, text: DatedText) -> Days | None:
    """Resolve last Christmas."""
    return _which(match, text, HOLIDAYS[match["holiday"]])


def which_unit(match: Match, text: DatedText) -> Days | None:
    """Resolve last week, this month, next year: calendar units around the present one."""
    return calendar.unit(match["unit"], text.today, _SHIFTS[match["which"].split()[-1]])


def before_last(match: Match, text: DatedText) -> Days | None:
    """Resolve the week before last, the year after next."""
    name = "day" if match["unit"] == "night" else match["unit"]
    return calendar.unit(name, text.today, -2 if match["side"] == "before last" else 2)


def ago(match: Match, text: DatedText) -> Days | None:
    """Resolve two weeks ago: the calendar unit that many before the present one."""
    low, high = in_words(match["quantity"])
    return calendar.units(match["unit"], text.today, -high, -low)


def ahead(match: Match, text: DatedText) -> Days | None:
    """Resolve in two weeks, two weeks from now; but "not in two weeks" is a duration."""
    if _NEVER.search(text.before(match.start())):
        return None
    low, high = in_words(match["quantity"])
    return calendar.units(match["unit"], text.today, low, high)


def weekdays_ago(match: Match, text: DatedText) -> Days | None:
    """Resolve three Sundays ago."""
    nth = in_words(match["quantity"])[0]
    return calendar.weekday_before(text.today, WEEKDAYS[match["weekday"]], nth)


def decades_ago(match: Match, text: DatedText) -> Days | None:
    """Resolve two decades ago, to a year for each."""
    low, high = in_words(match["quantity"])
    return calendar.units("year", text.today, -10 * high, -10 * low)


def hours_ago(match: Match, text: DatedText) -> Days | None:
    """Resolve three hours ago, to its day."""
    return calendar.unit("day", text.today, (text.hour - in_words(match["quantity"])[1]) // 24)


def rolling(match: Match, text: DatedText) -> Days | None:
    """Resolve the last three weeks: up to today, which is included, or from today on."""
    count = in_words(match["quantity"])[1] if "quantity" in match.re.groupindex else 1
    if _SHIFTS[match["which"]] < 0:
        return calendar.days(calendar.moved(text.today, match["unit"], -count), text.today + 1)
    end = calendar.moved(text.today, match["unit"], count)
    return calendar.days(text.today, end + 1) if end is not None else None


def part_of_this(match: Match, text: DatedText) -> Days | None:
    """Resolve the end of the month."""
    whole = calendar.unit(match["unit"], text.today, 0)
    return calendar.edge(whole, EDGES[match["part"]]) if whole is not None else None


def shifted(name: str, first: int, last: int) -> Resolve:
    """Return a rule for an expression without parts: from one unit to another."""
    return lambda match, text: calendar.units(name, text.today, first, last)


def _dated(match: Match, text: DatedText, in_year: Yearly) -> TimeMatch | Days | None:
    if match["year"] is not None:
        return in_year(year_in(match["year"]))
    name = match["month"]
    is_name = name in PLAIN_MONTHS or text.original[match.start("month")].isupper()
    if is_name or _ORDINAL.search(match[0]) or _TIMELY.search(text.before(match.start())):
        return _recent(match, text, in_year, soon=True)
    return None  # "march 5 miles"


def _recent(
    match: Match, text: DatedText, in_year: Yearly, *, soon: bool = False
) -> TimeMatch | None:
    found = calendar.latest(in_year, text.today, soon=soon)
    return TimeMatch(*match.span(), found, in_year=in_year) if found is not None else None


def _which(match: Match, text: DatedText, in_year: Yearly) -> Days | None:
    shift = _SHIFTS[match["which"].split()[-1]]
    if shift == 0:
        return in_year(calendar.year_of(text.today))
    return (calendar.coming if shift > 0 else calendar.last)(in_year, text.today)
