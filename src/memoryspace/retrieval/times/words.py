"""The English vocabulary of time, as tables and as fragments of patterns over lower-case text."""

from __future__ import annotations

from collections.abc import Iterable

from . import days as calendar
from .days import Days, Yearly

_ALL_MONTHS = (
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may",),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sept", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
)
# Only in full: "may" and "march" are verbs as well, "jan" and "mar" are ambiguous.
PLAIN_MONTHS = frozenset(names[0] for names in _ALL_MONTHS) - {"march", "may"}
MONTHS = {name: number for number, names in enumerate(_ALL_MONTHS, 1) for name in names}

_ALL_WEEKDAYS = (
    ("monday", "mon"),
    ("tuesday", "tues", "tue"),
    ("wednesday", "wed"),
    ("thursday", "thurs", "thur", "thu"),
    ("friday", "fri"),
    ("saturday", "sat"),
    ("sunday", "sun"),
)
WEEKDAYS = {name: number for number, names in enumerate(_ALL_WEEKDAYS) for name in names}
PLAIN_WEEKDAYS = frozenset(names[0] for names in _ALL_WEEKDAYS)

SEASONS = {
    "spring": calendar.SPRING,
    "summer": calendar.SUMMER,
    "autumn": calendar.AUTUMN,
    "fall": calendar.AUTUMN,
    "winter": calendar.WINTER,
}


def _every(month: int, number: int) -> Yearly:
    return lambda year: calendar.day(year, month, number)


def _thanksgiving(year: int) -> Days | None:
    november = calendar.months(year, 11)
    return calendar.weekday_from(november.start, 3, nth=4) if november is not None else None


HOLIDAYS: dict[str, Yearly] = {
    "christmas eve": _every(12, 24),
    "christmas": _every(12, 25),
    "new year's eve": _every(12, 31),
    "new year's day": _every(1, 1),
    "new year's": _every(1, 1),
    "halloween": _every(10, 31),
    "valentine's day": _every(2, 14),
    "thanksgiving": _thanksgiving,
}

_WRITTEN = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_NUMBERS = {"a": 1, "an": 1, "thirty": 30} | {
    word: number for number, word in enumerate(_WRITTEN.split(), 1)
}
_VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 7)}  # from, to

ORDINALS = {
    word: number
    for number, words in enumerate(("first 1st", "second 2nd", "third 3rd", "fourth 4th"), 1)
    for word in words.split()
}
EDGES = {"start": 0, "beginning": 0, "middle": 1, "end": 2}


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


# Before a number: it is not part of a longer one, of a word, a price or a version.
FREE = r"(?<![\w.$€£¥#/:+-])(?<!\d,)(?<![$€£¥]\s)"
MONTH = rf"(?P<month>{_any_of(MONTHS)})\b(?:\.(?=\d)|(?<!\w{{5}})\.)?"  # "Oct. 5", "April.2023"
WEEKDAY = rf"(?P<weekday>{_any_of(WEEKDAYS)})\b"
SEASON = rf"(?P<season>{_any_of(SEASONS)})\b"
HOLIDAY = rf"(?P<holiday>{_any_of(HOLIDAYS)})\b"
DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b"
TO_DAY = DAY.replace("<day>", "<to>")
YEAR = r"(?P<year>(?:1[5-9]|20)\d\d(?![\w%年])|'\d\d\b)"
QUANTITY = (
    rf"(?<![\w.,$])(?P<quantity>\d{{1,4}}|(?:a\s)?couple(?:\sof)?|(?:a\s)?few|several|"
    rf"{_any_of(_NUMBERS)})"
)
UNIT = r"(?P<unit>day|weekend|week|month|year)"
DAYTIME = r"(?:\s(?:morning|afternoon|evening|night)\b)?"
DAYTIMES = r"(?!\s(?:mornings|afternoons|evenings|nights)\b)"

_OTHERS = (
    "yesterday today tonight tomorrow week weeks weekend weekends month months year years ago "
    "christmas halloween valentine thanksgiving"
)
_EVERYDAY = "may mar sat sun wed fall spring day days night morning afternoon evening"
_LEADING = (
    "in on at since during until till by before after over between from throughout around early "
    "mid late last next previous past coming upcoming this other back dated"
)

# Every match of the rules has a digit, or a trigger, or an everyday word together with a leading
# word that makes it a time.
EVERYDAY = frozenset(_EVERYDAY.split())
LEADING = frozenset(_LEADING.split())
TRIGGERS = frozenset([*MONTHS, *WEEKDAYS, *SEASONS, *_OTHERS.split()]) - EVERYDAY


def in_words(quantity: str) -> tuple[int, int]:
    """Return the least and the greatest number that a quantity means."""
    if quantity.isdigit():
        return int(quantity), int(quantity)
    if quantity in _NUMBERS:
        return _NUMBERS[quantity], _NUMBERS[quantity]
    return next(_VAGUE[word] for word in quantity.split() if word in _VAGUE)


def year_in(digits: str) -> int:
    """Return the year of four digits, or of two: 69 is 1969, 68 is 2068."""
    if len(digits) == 4:
        return int(digits)
    short = int(digits.removeprefix("'"))
    return short + (1900 if short >= 69 else 2000)
