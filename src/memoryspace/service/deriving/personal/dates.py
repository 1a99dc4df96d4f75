"""Resolution of ambiguous dates: "on Friday" is the next one, unless the text is about the past.

A weekday, a month or a date without a year may be the last one or the next one. The rest of the
sentence tells which; if it does not, there is no date.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ....retrieval.times import TimeSpan, times_in
from ..language import word_set

_WEEKDAY = re.compile(
    r"(?:on\s)?(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"(?!.*\b(?:last|next|this|ago)\b)|(?:周|星期|礼拜)[一二三四五六日天]",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?!.*(?:\d{4}|last|next|this|ago|[去今明前]年|上|下))(?:.*\b(?:jan|feb|mar|apr|may|jun|jul|aug"
    r"|sep|oct|nov|dec|summer|winter|spring|autumn)|\d{1,2}月|.*\b\d{1,2}(?:st|nd|rd|th)\b)",
    re.IGNORECASE,
)
_HAPPENED = word_set("""
    was were had did went got bought met saw took made found ate drank ran won lost left gave began
    came became grew wrote taught thought felt told said sold spent broke built caught chose drove
    fell flew heard held kept led paid rode sang sat slept spoke swam threw woke wore
""")
_COMES = re.compile(
    r"\b(?:will|'ll|going to|gonna|next|tomorrow|upcoming|plan\w*|booked|due|leaving|starting"
    r"|(?:'m|am|'re|are|is|'s) (?:\w+ )?\w+ing|(?:un)?til)\b"
    r"|[要将]|会(?!议)|打算|准备|计划|约了|订了|[改推延挪调]迟?[期到]|提前到",
    re.IGNORECASE,
)
_RESCHEDULED = re.compile(  # right before the new time: "moved to Monday", not "moved to Antwerp"
    r"\b(?:moved|pushed|postponed|rescheduled|shifted|put off|brought forward)"
    r"(?: back)? to(?: the)?$",
    re.IGNORECASE,
)
_AWAITED = re.compile(  # usually mentioned in advance, unless told as done
    r"\b(?:appointment|interview|deadline|exam|flight|wedding|starts|opens|leaves|arrives)\b"
    r"|预约|出发|报到|开学|考试|婚礼|面试|手术|复查",
    re.IGNORECASE,
)
_DONE = re.compile(r"[了过]|[刚曾]")
_WORD = re.compile(r"[a-z']+")
_WEEK, _YEAR = timedelta(days=7), timedelta(days=365)


def dated(time: TimeSpan, said: datetime, text: str) -> TimeSpan | None:
    """Return the time a text refers to, or ``None`` if it may be the last or the next one."""
    step = _step(time)
    if step is None or time.start > said or said < time.end:
        return time
    if _COMES.search(text) is not None or _is_new_time(time, text):
        return _next(time, said, step)
    if _happened(text):
        return time
    return _next(time, said, step) if _AWAITED.search(text) is not None else None


def _is_new_time(time: TimeSpan, text: str) -> bool:
    before = text.partition(time.text)[0].rstrip()
    return _RESCHEDULED.search(before.removesuffix(" on")) is not None


def _step(time: TimeSpan) -> timedelta | None:
    """Return the period after which a time expression repeats, or ``None`` if it is unambiguous."""
    if _WEEKDAY.match(time.text) is not None:
        return _WEEK
    return _YEAR if _DATE.match(time.text) is not None else None


def _next(time: TimeSpan, said: datetime, step: timedelta) -> TimeSpan | None:
    found = times_in(time.text, said + step) or times_in(f"in the {time.text}", said + step)
    return found[0] if found and found[0].end > said else None


def _happened(text: str) -> bool:
    words = _WORD.findall(text.lower())
    told = any(word in _HAPPENED or (len(word) > 4 and word.endswith("ed")) for word in words)
    return told or _DONE.search(text) is not None
