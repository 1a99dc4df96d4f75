"""Rules that resolve Chinese expressions of time: one function per kind, from match to days."""

from __future__ import annotations

from functools import partial

from . import days as calendar
from .days import Days, Yearly
from .reading import DatedText, Match, TimeMatch

_DIGITS = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_SEASONS = {
    "春": calendar.SPRING,
    "夏": calendar.SUMMER,
    "秋": calendar.AUTUMN,
    "冬": calendar.WINTER,
}
HOLIDAYS = {
    "国庆": (10, 1),
    "元旦": (1, 1),
    "圣诞": (12, 25),
    "平安夜": (12, 24),
    "情人节": (2, 14),
    "劳动节": (5, 1),
    "儿童节": (6, 1),
    "教师节": (9, 10),
    "双十一": (11, 11),
}
_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_YEARS = _DAYS | {"去": -1}
_STEPS = {"上上": -2, "上": -1, "本": 0, "这": 0, "下": 1, "下下": 2}
_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week"} | {
    "月": "month",
    "年": "year",
}
_EDGES = {"初": 0, "上旬": 0, "中": 1, "中旬": 1, "底": 2, "末": 2, "下旬": 2}


_NEVER = 10**6  # units: outside of the calendar


def number_of(text: str) -> int | None:
    """Return the number that digits or Han digits stand for: 二〇二三, 十, 三十一."""
    if text.isdecimal():
        return int(text)
    if "十" not in text:
        return int("".join(str(_DIGITS[char]) for char in text))
    tens, _, ones = text.partition("十")
    if len(tens) > 1 or len(ones) > 1 or ones == "十":
        return None
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)


def _number(match: Match, group: str) -> int | None:
    part = match[group]
    return number_of(part) if part is not None else None


def year(match: Match, text: DatedText) -> Days | None:
    """Resolve 2023年 and what narrows it: a month, a day, a season."""
    digits = match["year"]
    number = number_of(digits)
    if number is None:
        return None
    return _inside(match, number + 2000 if len(digits) == 2 else number)


def year_range(match: Match, text: DatedText) -> Days | None:
    """Resolve 2019-2021年."""
    first, last = int(match["year"]), int(match["to"])
    return calendar.years(first, last - first + 1)


def year_word(match: Match, text: DatedText) -> Days | None:
    """Resolve 去年 and what narrows it."""
    return _inside(match, calendar.year_of(text.today) + _YEARS[match["word"]])


def _inside(match: Match, year: int) -> Days | None:
    """Return the part of a year that is meant: a date, a month, a season, a holiday, a half."""
    if match["month"] is not None:
        return _month_of(match)(year)
    if match["season"] is not None:
        return calendar.months(year, _SEASONS[match["season"]], 3)
    if match["holiday"] is not None:
        return calendar.day(year, *HOLIDAYS[match["holiday"]])
    if match["half"] is not None:
        return calendar.months(year, 1 if match["half"] == "上" else 7, 6)
    return _narrowed(calendar.years(year), match["edge"])


def month(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve a month or a day of one to the last; a day within a month from now comes first."""
    in_year = _month_of(match)
    found = calendar.latest(in_year, text.today, soon=match["day"] is not None)
    return TimeMatch(*match.span(), found, in_year=in_year) if found is not None else None


def _month_of(match: Match) -> Yearly:
    month, day, to = _number(match, "month"), _number(match, "day"), _number(match, "to")

    def in_year(year: int) -> Days | None:
        if month is None or not 1 <= month <= 12:
            return None
        if match["day"] is None:
            return _narrowed(calendar.months(year, month), match["part"])
        return _days_of(year, month, day, day if match["to"] is None else to)

    return in_year


def _days_of(year: int, month: int, first: int | None, last: int | None) -> Days | None:
    if first is None or last is None:
        return None
    begin, end = calendar.day(year, month, first), calendar.day(year, month, last)
    return calendar.days(begin.start, end.end) if begin and end else None


def _narrowed(whole: Days | None, part: str | None) -> Days | None:
    if whole is None or part is None:
        return whole
    return calendar.edge(whole, _EDGES[part])


def step_month(match: Match, text: DatedText) -> Days | None:
    """Resolve 上个月 and what narrows it: a day, its end."""
    whole = calendar.unit("month", text.today, _STEPS[match["step"]])
    if whole is None or match["day"] is None:
        return _narrowed(whole, match["part"])
    first = _number(match, "day")
    last = first if match["to"] is None else _number(match, "to")
    if first is None or last is None or not 1 <= first <= last <= whole.end - whole.start:
        return None
    return calendar.days(whole.start + first - 1, whole.start + last)


def step_week(match: Match, text: DatedText) -> Days | None:
    """Resolve 上周, 上周五, 上周末."""
    shift, day = _STEPS[match["step"]], match["weekday"]
    if day == "末":
        return calendar.unit("weekend", text.today, shift)
    week = calendar.unit("week", text.today, shift)
    if week is None or day is None:
        return week
    start = week.start + _weekday_number(day)
    return calendar.days(start, start + 1)


def weekday(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve a weekday alone to the last one, which may be today."""
    weekday = _weekday_number(match["weekday"])
    found = calendar.weekday_before(text.today + 1, weekday)
    return TimeMatch(*match.span(), found, weekday) if found is not None else None


def _weekday_number(char: str) -> int:
    return 6 if char in "日天" else _DIGITS[char] - 1


def day_word(match: Match, text: DatedText) -> Days | None:
    """Resolve 昨天."""
    return calendar.unit("day", text.today, _DAYS[match["word"]])


def day_of_month(match: Match, text: DatedText) -> Days | None:
    """Resolve a day without its month to the last one, at most two months back."""
    number = int(match["day"])
    recent = (calendar.unit("month", text.today, -back) for back in range(3))
    for month in recent:
        if month is not None and 1 <= number <= month.end - month.start:
            start = month.start + number - 1
            if start <= text.today:
                return calendar.days(start, start + 1)
    return None


def _counted(match: Match) -> tuple[str, int, int]:
    """Return the unit, and the least and greatest number of it."""
    name, count = _UNITS[match["unit"]], match["count"]
    if count == "几":
        return name, 2, 5
    if count == "半":
        return ("month", 6, 6) if name == "year" else ("day", 12, 18)  # half a year, half a month
    number = number_of(count)
    return (name, number, number) if number is not None else (name, _NEVER, _NEVER)


def ago(match: Match, text: DatedText) -> Days | None:
    """Resolve 三天前: the calendar unit that many before the present one."""
    name, low, high = _counted(match)
    return calendar.units(name, text.today, -high, -low)


def ahead(match: Match, text: DatedText) -> Days | None:
    """Resolve 三天后."""
    name, low, high = _counted(match)
    return calendar.units(name, text.today, low, high)


def rolling(match: Match, text: DatedText) -> Days | None:
    """Resolve 最近三天: up to today, which is included."""
    name, _, high = _counted(match)
    return calendar.days(calendar.moved(text.today, name, -high), text.today + 1)


def edge_of_this(match: Match, text: DatedText) -> Days | None:
    """Resolve 月底, 年初."""
    return _narrowed(calendar.unit(_UNITS[match["unit"]], text.today, 0), match["part"])


def holiday(match: Match, text: DatedText) -> TimeMatch | None:
    """Resolve 国庆节 to the last one, or one within a month from now."""
    in_year = partial(_on, *HOLIDAYS[match["holiday"]])
    found = calendar.latest(in_year, text.today, soon=True)
    return TimeMatch(*match.span(), found, in_year=in_year) if found is not None else None


def _on(month: int, number: int, year: int) -> Days | None:
    return calendar.day(year, month, number)
