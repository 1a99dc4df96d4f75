"""Expressions of time are found and resolved as people mean them, and nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoryspace.retrieval.times import TimeSpan, chinese, english, overlap, times_in
from memoryspace.retrieval.times.reading import DatedText, lowered

NOW = datetime(2023, 6, 14, 10, 30)  # a Wednesday


def spans(text: str, now: datetime = NOW) -> list[tuple[str, str]]:
    """The first and the last day of every span."""
    day = timedelta(days=1)
    return [
        (span.start.date().isoformat(), (span.end - day).date().isoformat())
        for span in times_in(text, now)
    ]


def only(first: str, last: str | None = None) -> list[tuple[str, str]]:
    return [(first, first if last is None else last)]


ABSOLUTE = {
    "we met on 7 May 2023": only("2023-05-07"),
    "we met on May 7th, 2023": only("2023-05-07"),
    "the 7th of May, 2023": only("2023-05-07"),
    "MAY 7 2023": only("2023-05-07"),
    "Oct. 5, 2022": only("2022-10-05"),
    "March-15-2022": only("2022-03-15"),
    "December 1,2022": only("2022-12-01"),
    "2023-05-07": only("2023-05-07"),
    "2023/5/7": only("2023-05-07"),
    "at 2023-05-07T10:00:00Z": only("2023-05-07"),
    "05/07/2023": only("2023-05-07"),
    "17/05/2023": only("2023-05-17"),
    "5/7/23": only("2023-05-07"),
    "07.05.2023": only("2023-05-07"),
    "2023.05.07": only("2023-05-07"),
    "we agreed on 5/7": only("2023-05-07"),
    "2022-11": only("2022-11-01", "2022-11-30"),
    "11/2022": only("2022-11-01", "2022-11-30"),
    "in May 2022": only("2022-05-01", "2022-05-31"),
    "May, 2022": only("2022-05-01", "2022-05-31"),
    "May of '22": only("2022-05-01", "2022-05-31"),
    "February 2024": only("2024-02-01", "2024-02-29"),
    "in 2022": only("2022-01-01", "2022-12-31"),
    "It was 2022.": only("2022-01-01", "2022-12-31"),
    "the year 1850": only("1850-01-01", "1850-12-31"),
    "2019-2021": only("2019-01-01", "2021-12-31"),
    "the 1990s": only("1990-01-01", "1999-12-31"),
    "the '80s": only("1980-01-01", "1989-12-31"),
    "the summer of 2022": only("2022-06-01", "2022-08-31"),
    "winter 2021": only("2021-12-01", "2022-02-28"),
    "Q3 2022": only("2022-07-01", "2022-09-30"),
    "Christmas 2021": only("2021-12-25"),
    "New Year’s Eve 2021": only("2021-12-31"),
    "Thanksgiving 2022": only("2022-11-24"),
    "November 5-6, 2022": only("2022-11-05", "2022-11-06"),
    "5 to 9 November 2022": only("2022-11-05", "2022-11-09"),
}

RELATIVE = {
    "today": only("2023-06-14"),
    "tonight": only("2023-06-14"),
    "this morning": only("2023-06-14"),
    "yesterday": only("2023-06-13"),
    "yesterday evening at 8": only("2023-06-13"),
    "last night": only("2023-06-13"),
    "the day before yesterday": only("2023-06-12"),
    "tomorrow": only("2023-06-15"),
    "the day after tomorrow": only("2023-06-16"),
    "the other day": only("2023-06-07", "2023-06-13"),
    "last week": only("2023-06-05", "2023-06-11"),
    "this week's plan": only("2023-06-12", "2023-06-18"),
    "next week": only("2023-06-19", "2023-06-25"),
    "the week before last": only("2023-05-29", "2023-06-04"),
    "last weekend": only("2023-06-10", "2023-06-11"),
    "this weekend": only("2023-06-17", "2023-06-18"),
    "this past weekend": only("2023-06-10", "2023-06-11"),
    "over the weekend": only("2023-06-10", "2023-06-11"),
    "two weekends ago": only("2023-06-03", "2023-06-04"),
    "last month": only("2023-05-01", "2023-05-31"),
    "next month": only("2023-07-01", "2023-07-31"),
    "last year": only("2022-01-01", "2022-12-31"),
    "next year": only("2024-01-01", "2024-12-31"),
    "3 days ago": only("2023-06-11"),
    "a couple of days ago": only("2023-06-11", "2023-06-12"),
    "a few days ago": only("2023-06-09", "2023-06-12"),
    "two weeks ago": only("2023-05-29", "2023-06-04"),
    "six months ago": only("2022-12-01", "2022-12-31"),
    "half a year ago": only("2022-12-01", "2022-12-31"),
    "ten years ago": only("2013-01-01", "2013-12-31"),
    "a few years back": only("2018-01-01", "2021-12-31"),
    "two decades ago": only("2003-01-01", "2003-12-31"),
    "three Sundays ago": only("2023-05-28"),
    "five hours ago": only("2023-06-14"),
    "20 hours ago": only("2023-06-13"),
    "in two weeks": only("2023-06-26", "2023-07-02"),
    "three days from now": only("2023-06-17"),
    "in the past three months": only("2023-03-14", "2023-06-14"),
    "the last 10 days": only("2023-06-04", "2023-06-14"),
    "in the last month": only("2023-05-14", "2023-06-14"),
    "the past year": only("2022-06-14", "2023-06-14"),
    "the next two days": only("2023-06-14", "2023-06-16"),
    "on Friday": only("2023-06-09"),
    "see you Wednesday": only("2023-06-14"),
    "last Friday": only("2023-06-09"),
    "last fri night": only("2023-06-09"),
    "last Wednesday": only("2023-06-07"),
    "this Friday": only("2023-06-16"),
    "next Friday": only("2023-06-16"),
    "next Monday": only("2023-06-19"),
    "in May": only("2023-05-01", "2023-05-31"),
    "in june": only("2023-06-01", "2023-06-30"),
    "in July": only("2022-07-01", "2022-07-31"),
    "in dec": only("2022-12-01", "2022-12-31"),
    "last May": only("2023-05-01", "2023-05-31"),
    "last June": only("2022-06-01", "2022-06-30"),
    "next May": only("2024-05-01", "2024-05-31"),
    "this March": only("2023-03-01", "2023-03-31"),
    "last summer": only("2022-06-01", "2022-08-31"),
    "this summer": only("2023-06-01", "2023-08-31"),
    "next winter": only("2023-12-01", "2024-02-29"),
    "in the fall": only("2022-09-01", "2022-11-30"),
    "last Christmas": only("2022-12-25"),
    "on May 2nd": only("2023-05-02"),
    "we met march 3rd": only("2023-03-03"),
    "on 20 June": only("2023-06-20"),  # within a month from now
    "on 20 August": only("2022-08-20"),
    "on February 29": only("2020-02-29"),
    "the end of the month": only("2023-06-21", "2023-06-30"),
}

JOINED = {
    "the week before 9 June 2023": only("2023-06-02", "2023-06-08"),
    "two weeks before 11 August 2022": only("2022-07-28", "2022-08-03"),
    "a few days before May 24, 2023": only("2023-05-19", "2023-05-22"),
    "the day after 31 May 2023": only("2023-06-01"),
    "the month before June 2022": only("2022-05-01", "2022-05-31"),
    "the year after 2020": only("2021-01-01", "2021-12-31"),
    "the Friday before 27 July 2022": only("2022-07-22"),
    "last Friday before 27 July 2022": only("2022-07-22"),
    "Saturday after 11 September, 2022": only("2022-09-17"),
    "the weekend before 17 July 2022": only("2022-07-09", "2022-07-10"),  # that is a Sunday
    "two weekends before 18 July 2022": only("2022-07-09", "2022-07-10"),
    "the weekend after 11 July 2022": only("2022-07-16", "2022-07-17"),
    "the week of 23 August 2022": only("2022-08-22", "2022-08-28"),
    "on the night of October 30 to 31, 2022": only("2022-10-30", "2022-10-31"),
    "the month of May": only("2023-05-01", "2023-05-31"),
    "the first week of April 2022": only("2022-04-01", "2022-04-07"),
    "the second week of November": only("2022-11-08", "2022-11-14"),
    "last week of September 2022": only("2022-09-24", "2022-09-30"),
    "the first weekend of August 2022": only("2022-08-06", "2022-08-07"),
    "the third Thursday of May 2022": only("2022-05-19"),
    "the last Friday in May 2022": only("2022-05-27"),
    "the first half of 2022": only("2022-01-01", "2022-07-02"),
    "late yesterday": only("2023-06-13"),
    "since next week": only("2023-06-19", "2023-06-25"),
    "early June": only("2023-06-01", "2023-06-10"),
    "in mid-August 2022": only("2022-08-11", "2022-08-21"),
    "late May": only("2023-05-22", "2023-05-31"),
    "the end of October 2022": only("2022-10-22", "2022-10-31"),
    "the end of 2022": only("2022-11-02", "2022-12-31"),
    "since June": only("2023-06-01", "2023-06-14"),
    "since 2016": only("2016-01-01", "2023-06-14"),
    "ever since last summer": only("2022-06-01", "2023-06-14"),
    "between March and May 2022": only("2022-03-01", "2022-05-31"),
    "from march to may 2022": only("2022-03-01", "2022-05-31"),
    "from November to February 2022": only("2021-11-01", "2022-02-28"),
    "from June to May": only("2022-06-01", "2023-05-31"),
    "from May 2022 to July": only("2022-05-01", "2022-07-31"),
    "from 2 May until 5 June 2022": only("2022-05-02", "2022-06-05"),
    "Friday, 5 May 2023": only("2023-05-05"),
    "Friday of last week": only("2023-06-09"),
    "last week on Tuesday": only("2023-06-06"),
    "in January and March": [("2023-01-01", "2023-01-31"), ("2023-03-01", "2023-03-31")],
    "how many days before 5 May 2023": only("2023-05-05"),
}

CHINESE = {
    "我昨天去了公园": only("2023-06-13"),
    "昨晚": only("2023-06-13"),
    "前天": only("2023-06-12"),
    "大前天": only("2023-06-11"),
    "今天": only("2023-06-14"),
    "明天见": only("2023-06-15"),
    "后天": only("2023-06-16"),
    "上周": only("2023-06-05", "2023-06-11"),
    "上周五": only("2023-06-09"),
    "上个星期天": only("2023-06-11"),
    "本周": only("2023-06-12", "2023-06-18"),
    "这周末": only("2023-06-17", "2023-06-18"),
    "這個週末": only("2023-06-17", "2023-06-18"),
    "下周": only("2023-06-19", "2023-06-25"),
    "下下周": only("2023-06-26", "2023-07-02"),
    "星期一": only("2023-06-12"),
    "今天是星期三": [("2023-06-14", "2023-06-14")] * 2,
    "上个月": only("2023-05-01", "2023-05-31"),
    "下个月3号": only("2023-07-03"),
    "上个月底": only("2023-05-22", "2023-05-31"),
    "去年": only("2022-01-01", "2022-12-31"),
    "前年": only("2021-01-01", "2021-12-31"),
    "今年三月": only("2023-03-01", "2023-03-31"),
    "明年": only("2024-01-01", "2024-12-31"),
    "去年夏天": only("2022-06-01", "2022-08-31"),
    "去年年底": only("2022-11-02", "2022-12-31"),
    "2022年上半年": only("2022-01-01", "2022-06-30"),
    "三天前": only("2023-06-11"),
    "十二天前": only("2023-06-02"),
    "兩週前": only("2023-05-29", "2023-06-04"),
    "三个月之前": only("2023-03-01", "2023-03-31"),
    "半年前": only("2022-12-01", "2022-12-31"),
    "几天前": only("2023-06-09", "2023-06-12"),
    "两周后": only("2023-06-26", "2023-07-02"),
    "最近三天": only("2023-06-11", "2023-06-14"),
    "过去一年": only("2022-06-14", "2023-06-14"),
    "前几天": only("2023-06-09", "2023-06-12"),
    "5月7日": only("2023-05-07"),
    "在5月7号我们聊了什么": only("2023-05-07"),
    "2023年5月": only("2023-05-01", "2023-05-31"),
    "2023 年 5 月 7 日": only("2023-05-07"),
    "二〇二三年五月七日": only("2023-05-07"),
    "２０２３年５月７日": only("2023-05-07"),
    "五月初": only("2023-05-01", "2023-05-10"),
    "十二月三十一日": only("2022-12-31"),
    "月底": only("2023-06-21", "2023-06-30"),
    "国庆节": only("2022-10-01"),
    "去年国庆节": only("2022-10-01"),
    "5月1日到3日": only("2023-05-01", "2023-05-03"),
    "三月到五月": only("2023-03-01", "2023-05-31"),
    "2022年3月至5月": only("2022-03-01", "2022-05-31"),
    "2019-2021年": only("2019-01-01", "2021-12-31"),
    "自2021年以来": only("2021-01-01", "2023-06-14"),
    "在2023-05-07去的": only("2023-05-07"),
    "是在27号买的": only("2023-05-27"),
}

NO_TIMES = [
    "",
    "may I ask you something?",
    "It may 5 times be too much",
    "this may be it, this may work",
    "what comes next may be worse",
    "they march on, march 5 miles and march again",
    "just a second, the second one",
    "v2023.1 and 2023.1 and 1.2023.4",
    "it costs $2023 or $ 2023",
    "2023 people came, 12,2023 stayed",
    "half of it, 1/2 cup, 24/7",
    "every Friday, on a Sunday, Saturdays, Saturday mornings",
    "protect your skin from the sun while he sat by the spring",
    "in the winter months",
    "I have not eaten in two days",
    'the novel "1984"',
    "10.12.20.23",
    "call 555-1234-567",
    "12:30 pm",
    "at the last moment, the next time, the past",
    "目前天气不错",
    "以后天天见",
    "这说明天气好",
    "每周一次，每周五都去，一周一次",
    "坐3号线",
    "十几天前",
    "他过去年轻，以前年纪小",
    "十二个月",
    "《1984》",
]

IMPOSSIBLE = [
    "in 99999 years",
    "9999 years ago",
    "in 9999 years",
    "0000-00-00",
    "2023-13-01",
    "February 30",
    "February 30, 2023",
    "31 June 2022",
    "99/99/2023",
    "9999-12-31",
    "99999年",
    "二月三十日",
    "十三月",
    "二三十天前",
    "九十九月九十九日",
    "9999年前",
    "上个月32号",
]


@pytest.mark.parametrize(
    ("text", "expected"), (ABSOLUTE | RELATIVE | JOINED | CHINESE).items(), ids=str
)
def test_an_expression_means_its_days(text: str, expected: list[tuple[str, str]]) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize("text", [*NO_TIMES, *IMPOSSIBLE])
def test_what_is_no_time_is_not_found(text: str) -> None:
    assert times_in(text, NOW) == []


def test_next_christmas_is_not_today() -> None:
    assert spans("next Christmas", datetime(2022, 12, 25)) == only("2023-12-25")


def test_a_month_back_from_its_last_day_is_the_last_day_of_the_month_before() -> None:
    assert spans("the past month", datetime(2023, 3, 31)) == only("2023-02-28", "2023-03-31")


def test_several_times_come_in_reading_order_with_their_words_and_places() -> None:
    text = "Last Friday I said: not before 7 May 2022，也许是去年夏天。"
    found = times_in(text, NOW)
    assert [span.text for span in found] == ["Last Friday", "7 May 2022", "去年夏天"]
    assert [text.index(span.text) for span in found] == [span.at for span in found]


def test_a_letter_that_grows_in_lower_case_moves_no_place() -> None:
    found = times_in("İİİ yesterday", NOW)
    assert [(span.at, span.text) for span in found] == [(4, "yesterday")]


@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=9))])
def test_the_time_zone_of_now_is_kept(zone: timezone | None) -> None:
    [span] = times_in("yesterday", NOW.replace(tzinfo=zone))
    assert span.start == datetime(2023, 6, 13, tzinfo=zone)
    assert span.end == datetime(2023, 6, 14, tzinfo=zone)
    assert span.start.tzinfo is zone


@pytest.mark.parametrize("now", [datetime.min, datetime.max])
def test_at_the_ends_of_the_calendar_nothing_is_raised(now: datetime) -> None:
    for text in [*RELATIVE, *JOINED, *CHINESE, *IMPOSSIBLE]:
        assert all(span.start < span.end for span in times_in(text, now))


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match="must be a str, got bytes"):
        times_in(b"yesterday", NOW)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a datetime, got date"):
        times_in("yesterday", NOW.date())  # type: ignore[arg-type]


HOSTILE = ["may ", "1/", "in the last ", "1", "since the around ", "7 May 2023 ", "Friday to "]


@pytest.mark.parametrize(
    "part", [*HOSTILE, "三十", "上上", "2023年", "the week before ", " ", "a couple of "]
)
def test_a_long_hostile_text_is_read_to_its_end(part: str) -> None:
    text = part * (100_000 // len(part)) + ". And then, yesterday"
    assert times_in(text, NOW)[-1].text == "yesterday"


WORDS = [
    *sorted({word for text in (ABSOLUTE | RELATIVE | JOINED) for word in text.split()}),
    *CHINESE,
    *"-/.,'0123456789$年月日号周前后初底到至",
]
BABBLE = st.builds(
    lambda words, glue: glue.join(words),
    st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=12),
    st.sampled_from(["", " ", "\n"]),
)


@given(st.text() | BABBLE, st.datetimes())
@example("İ 9999-12-30", datetime.max)
@example("٢٠٢٣年٥月", NOW)
def test_any_text_gives_sound_spans(text: str, now: datetime) -> None:
    reached = 0
    for span in times_in(text, now):
        assert span.start < span.end
        assert span.text == text[span.at : span.at + len(span.text)] != ""
        assert span.at >= reached
        reached = span.at + len(span.text)


@given(BABBLE)
def test_the_quick_check_hides_nothing(text: str) -> None:
    page = DatedText(text, lowered(text), NOW.toordinal(), NOW.hour)
    for language, seen in ((english, page.lower), (chinese, page.original)):
        if not language.may_speak_of_time(seen):
            assert list(language.find(page)) == []


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)))
def test_a_written_date_is_read_back(when: datetime) -> None:
    day = datetime(when.year, when.month, when.day)
    texts = [f"{day:%Y-%m-%d}".rjust(10, "0"), f"{day.year:04}年{day.month}月{day.day}日"]
    if day.year >= 1900 and day.year < 2100:
        texts += [f"{day:%B} {day.day}, {day.year}", f"{day.day} {day:%b} {day.year}"]
        texts += [f"{day:%m/%d/%Y}", f"{day:%d.%m.%Y}"]
    for text in texts:
        [span] = times_in(text, NOW)
        assert (span.start, span.end) == (day, day + timedelta(days=1)), text


SPAN = TimeSpan(datetime(2023, 6, 5), datetime(2023, 6, 12), "last week", 0)


def test_a_moment_within_a_span_overlaps_fully() -> None:
    assert overlap(SPAN, SPAN.start) == 1
    assert overlap(SPAN, SPAN.end - timedelta(microseconds=1)) == 1


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_overlap_falls_by_half_over_the_length_of_the_span(sign: int) -> None:
    edge = SPAN.start if sign < 0 else SPAN.end
    assert overlap(SPAN, edge + sign * timedelta(days=7)) == pytest.approx(0.5)
    falling = [overlap(SPAN, edge + sign * timedelta(days=n)) for n in range(0, 100, 5)]
    assert falling == sorted(falling, reverse=True)
    assert 0 < falling[-1] < 0.01


def test_a_moment_with_a_zone_is_not_compared_to_a_span_without() -> None:
    with pytest.raises(TypeError, match="both have a time zone"):
        overlap(SPAN, datetime(2023, 6, 5, tzinfo=UTC))


@given(st.datetimes())
def test_the_overlap_is_a_share(when: datetime) -> None:
    assert 0 < overlap(SPAN, when) <= 1
