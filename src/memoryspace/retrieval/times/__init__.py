"""Times mentioned in a text, in English and in Chinese, as spans of whole days.

Everything is relative to ``now``, the date of the message or of the question:

- "last week", "two months ago", "next year" are the calendar week (from Monday), month, year;
  "the past month" and "the last three days" go up to today, which is included.
- A bare month, season or weekday is the most recent one, the present one included; so is a date
  without a year, unless the next one is within a month. "Last May" and "last Friday" are over;
  "next Friday" is in the future; "this Friday" is in this week.
- 05/07/2023 is May 7: the month comes first unless it is above 12. With dots the day comes first.
- "A few" is two to five. "Early", "mid" and "late" are thirds; so are the start and the end of a
  month, while those of a year are two months. Summer is June to August.
- "The week before 9 June" is the seven days before it. "Since" goes up to today.
- An hour does not narrow a day; "last night" is yesterday.

Hints ("recently", "soon"), repetitions ("every Friday"), lunar dates and durations do not count as
times. The rules are few and fast rather than complete. They would rather miss a time than mistake
"may I", "$2023" or "v2023.1" for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time

from . import chinese, english
from .joining import joined
from .reading import DatedText, TimeMatch, lowered

__all__ = ["TimeSpan", "overlap", "times_in"]


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A period of whole days that a text mentions.

    Attributes:
        start: Midnight at the beginning of the first day.
        end: Midnight at the end of the last day.
        text: The words that mention it.
        at: The position of these words in the text.
    """

    start: datetime
    end: datetime
    text: str
    at: int


def times_in(text: str, now: datetime) -> list[TimeSpan]:
    """Return the times that a text mentions, in reading order.

    Args:
        text: Any text; none makes this raise.
        now: When the text was written. The times have its time zone, or none if it has none.

    Raises:
        TypeError: If ``text`` is not a str or ``now`` not a datetime.

    Examples:
        >>> [span.text for span in times_in("I moved last week.", datetime(2023, 5, 8))]
        ['last week']
    """
    if not isinstance(text, str):
        raise TypeError(f"the text must be a str, got {type(text).__name__}")
    if not isinstance(now, datetime):
        raise TypeError(f"now must be a datetime, got {type(now).__name__}")
    lower = lowered(text)
    in_english = english.may_speak_of_time(lower)
    in_chinese = not text.isascii() and chinese.may_speak_of_time(text)
    if not in_english and not in_chinese:
        return []
    page = DatedText(text, lower, now.toordinal(), now.hour)
    found = [*english.find(page)] if in_english else []
    if in_chinese:
        found = sorted([*found, *chinese.find(page)], key=_place)
    return [_span(each, page, now) for each in joined(found, page)]


def overlap(span: TimeSpan, when: datetime) -> float:
    """Return 1 within the span, and less with distance: 1/2 at a distance of its own length."""
    if (span.start.tzinfo is None) != (when.tzinfo is None):
        raise TypeError("a span and a moment must both have a time zone, or neither")
    if span.start <= when < span.end:
        return 1.0
    away = span.start - when if when < span.start else when - span.end
    return 1 / (1 + (away / (span.end - span.start)) ** 2)


def _place(found: TimeMatch) -> tuple[int, int]:
    return found.at, -found.stop


def _span(found: TimeMatch, page: DatedText, now: datetime) -> TimeSpan:
    start, end = (
        datetime.combine(date.fromordinal(day), time(), tzinfo=now.tzinfo) for day in found.days
    )
    return TimeSpan(start, end, page.original[found.at : found.stop], found.at)
