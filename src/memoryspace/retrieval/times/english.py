"""English expressions of time: a table of patterns, each with the rule that resolves it.

The patterns see lower-case text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import english_rules as rules
from .reading import DatedText, Grammar, Resolve, TimeMatch
from .words import (
    DAY,
    DAYTIME,
    DAYTIMES,
    EVERYDAY,
    FREE,
    HOLIDAY,
    LEADING,
    MONTH,
    QUANTITY,
    SEASON,
    TO_DAY,
    TRIGGERS,
    UNIT,
    WEEKDAY,
    YEAR,
)

_WORD = re.compile("[a-z]+")
_DIGIT = re.compile("[0-9]")

_WHICH = r"(?P<which>last|next|previous|past|(?:up)?coming|this(?:\s(?:past|last|coming|next))?)\s"
_ROLLING = r"(?P<which>last|past|next|coming|previous)\s"
_THEN_YEAR = rf"(?:[\s,.-]{{1,3}}(?:of\s)?{YEAR})?"
_NO_TIME = r"(?![:%]|\s?[ap]\.?m\b)"  # after a number: it is not an hour
_SPAN = r"\s?(?:-|–|—|to|and|through|&)\s?(?:the\s)?"
_FULL_YEAR = r"(?P<year>(?:19|20)\d\d)"
_NO_MEASURE = (
    r"(?![\w%年]|[-/.:]\d|,\d{3}|\s(?:people|dollars|euros|usd|words|steps|calories|miles|meters|"
    r"metres|km|kg|points|pages|times|users|items|units|tokens|hours|minutes|days|years)\b)"
)

# At each position the first match wins, so more specific patterns come first.
_TABLE: tuple[tuple[str, Resolve], ...] = (
    (rf"{FREE}(?P<year>\d{{4}})[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)(?![\d/-])", rules.iso_date),
    (
        rf"{FREE}(?P<year>\d{{4}})\.(?P<month>\d\d)\.(?P<day>\d\d)(?!\w|\.\d)",
        rules.iso_date,
    ),
    (
        rf"{FREE}(?P<first>\d\d?)(?P<separator>[-/.])(?P<second>\d\d?)[-/.]"
        r"(?P<year>\d{4}|(?<=/)\d\d)(?!\w|[-/.]\d)",
        rules.numeric_date,
    ),
    (rf"{FREE}{_FULL_YEAR}[-/](?P<month>0[1-9]|1[0-2])(?![\w/-])", rules.numeric_month),
    (rf"{FREE}(?P<month>0?[1-9]|1[0-2])/{_FULL_YEAR}(?![\w/-])", rules.numeric_month),
    (rf"{FREE}(?P<first>\d\d?)/(?P<second>\d\d?)(?![\w/%-])", rules.short_date),
    (rf"\b{MONTH}[ ,-]{{1,2}}{DAY}{_SPAN}{TO_DAY}{_NO_TIME}{_THEN_YEAR}", rules.date_range),
    (rf"{FREE}{DAY}{_SPAN}{TO_DAY}(?:\sof)?\s{MONTH}{_THEN_YEAR}", rules.date_range),
    (rf"\b{MONTH}[ ,-]{{0,2}}(?:the\s)?{DAY}{_NO_TIME}{_THEN_YEAR}", rules.date),
    (rf"{FREE}{DAY}(?:\sof)?[\s-]{MONTH}{_THEN_YEAR}", rules.date),
    (rf"\b{MONTH}[ ,-]{{0,2}}(?:of\s)?{YEAR}", rules.month_of_year),
    (rf"\b{SEASON}(?:\sof|,)?\s{YEAR}", rules.season_of_year),
    (rf"\bq(?P<quarter>[1-4])(?:\sof)?\s{YEAR}", rules.quarter),
    (rf"\b{HOLIDAY}(?:\sof|,)?\s{YEAR}", rules.holiday_of_year),
    (r"\b(?:the\s)?day before yesterday\b", rules.shifted("day", -2, -2)),
    (r"\b(?:the\s)?day after tomorrow\b", rules.shifted("day", 2, 2)),
    (rf"\byesterday\b{DAYTIME}", rules.shifted("day", -1, -1)),
    (rf"\btomorrow\b{DAYTIME}", rules.shifted("day", 1, 1)),
    (r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", rules.shifted("day", 0, 0)),
    (r"\blast (?:night|evening)\b", rules.shifted("day", -1, -1)),
    (r"\bthe other day\b", rules.shifted("day", -7, -1)),
    (r"\bhalf a year (?:ago|back)\b", rules.shifted("month", -6, -6)),
    (
        rf"\b(?:in|over|during|within|for|throughout)\sthe\s{_ROLLING}{UNIT}\b",
        rules.rolling,
    ),
    (rf"\b{_ROLLING}{QUANTITY}\s{UNIT}s?\b", rules.rolling),
    (r"\b(?:the|this)\s(?P<which>past)\s(?P<unit>week|month|year)\b", rules.rolling),
    (
        r"\b(?P<unit>night|weekend|week|month|year)\s(?P<side>before last|after next)\b",
        rules.before_last,
    ),
    (rf"\b{_WHICH}(?P<unit>weekend|week|month|year)\b", rules.which_unit),
    (rf"\b{_WHICH}{WEEKDAY}{DAYTIME}", rules.which_weekday),
    (rf"\b{_WHICH}{MONTH}", rules.which_month),
    (rf"\b{_WHICH}{SEASON}", rules.which_season),
    (rf"\b{_WHICH}{HOLIDAY}", rules.which_holiday),
    (rf"{QUANTITY}\s{UNIT}s?\s(?:ago|back)\b", rules.ago),
    (rf"{QUANTITY}\s{WEEKDAY[:-2]}s?\sago\b", rules.weekdays_ago),
    (rf"{QUANTITY}\sdecades?\sago\b", rules.decades_ago),
    (rf"{QUANTITY}\s(?:hour|hr|minute|min)s?\sago\b", rules.hours_ago),
    (rf"{QUANTITY}\s{UNIT}s?\sfrom\s(?:now|today)\b", rules.ahead),
    (rf"\bin\s(?!an?\s(?:day|year)){QUANTITY}\s{UNIT}s?\b", rules.ahead),
    (
        r"\b(?P<part>end|middle|start|beginning)\sof\sthe\s(?P<unit>week|month|year)\b(?!\sof)",
        rules.part_of_this,
    ),
    (rf"{FREE}{_FULL_YEAR}\s?[-–—]\s?(?P<to>(?:19|20)\d\d){_NO_MEASURE}", rules.year_range),
    (r"\b(?:the\s)?(?P<year>(?:19|20)\d0)'?s\b", rules.decade),
    (r"\bthe '?(?P<year>[5-9]0)'?s\b", rules.decade),
    (r"\byear (?P<year>\d{4})\b", rules.year),
    (rf'{FREE}(?<![《"“]){_FULL_YEAR}{_NO_MEASURE}', rules.year),
    (rf"\b{MONTH}", rules.month),
    (rf"\b{SEASON}(?!\s(?:months|break|olympics))", rules.season),
    (rf"\b{HOLIDAY}", rules.holiday),
    (rf"\b{WEEKDAY}{DAYTIME}{DAYTIMES}", rules.weekday),
    (r"\bweekend\b", rules.weekend),
)


# How expressions can begin: a cheap test that excludes most other words.
_BEGINNING = (
    r"[0-9]|jan|feb|ma[ry]|apr|ju[nl]|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|"
    r"spri|summ|autu|fall|wint|q[1-4]|chri|new\sy|hall|half\sa|vale|than|yest|tomo|toda|toni|"
    r"day (?:be|af)|the (?:day|oth|'?[5-9]0|(?:19|20)\d0)|(?:the|this)\spast\s|"
    r"(?:last|next|past|previous|(?:up)?coming|this)\s|"
    r"(?:in|over|during|within|for|throughout)\sthe\s(?:last|past|next|coming|prev)|"
    r"in\s(?:\d|a|co|e|f|n|o|s|t[ehw])|(?:night|weekend|week|month|year)\s|weekend|"
    r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|"
    r"few|several|couple|couple\sof)\s[a-z]|(?:end|middle|start|beginning)\sof\s"
)
_GRAMMAR = Grammar(_TABLE, gate=rf"\b(?={_BEGINNING})", flags=re.ASCII)


def may_speak_of_time(lower: str) -> bool:
    """Return quickly whether a lower-case text has anything that the rules could match."""
    if _DIGIT.search(lower) is not None:
        return True
    words = _WORD.findall(lower)
    if not TRIGGERS.isdisjoint(words):
        return True
    return not EVERYDAY.isdisjoint(words) and not LEADING.isdisjoint(words)


def find(text: DatedText) -> Iterator[TimeMatch]:
    """Yield the English expressions in a text, in reading order."""
    return _GRAMMAR.find(text.lower, text)
