"""Chinese expressions of time: a table of patterns, each with the rule that resolves it.

Traditional characters are read as simplified ones. Dates of the lunar calendar, such as 春节, are
not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import chinese_rules as rules
from .reading import DatedText, Grammar, Resolve, TimeMatch

_SIMPLER = str.maketrans(
    "這個後週號兩禮過幾聖國節雙慶誕勞動兒師～", "这个后周号两礼过几圣国节双庆诞劳动儿师~"
)

_HAN = "〇零一二两三四五六七八九十"
_ALONE = rf"(?<![\d.{_HAN}百千万几第$¥-])"  # before a number: not part of a longer one
_NUMBER = rf"(?:\d{{1,4}}|[{_HAN}]{{1,4}})"
_SMALL = rf"(?:\d{{1,2}}|[{_HAN}]{{1,3}})"
_TO_DAY = rf"(?:[日号]?\s?[-~—到至]\s?(?P<to>{_SMALL})(?=\s?[日号]))?"
_PART = r"(?:份?的?(?P<part>初|上旬|中旬|下旬|中(?!间|国|午|文)|底|末))?"
_MONTH = rf"(?P<month>{_SMALL})\s?月(?!亮|球|光|饼)"
_IN_MONTH = rf"(?:\s?(?P<day>{_SMALL}){_TO_DAY}\s?[日号]|{_PART})"
_SEASON = r"(?P<season>[春夏秋冬])[天季]?"
_HOLIDAY = rf"(?P<holiday>{'|'.join(rules.HOLIDAYS)})节?"
_PART_OF_YEAR = r"(?P<half>[上下])半年|年?(?P<edge>[初底末])"
_IN_YEAR = rf"(?:的?\s?(?:{_MONTH}{_IN_MONTH}|{_SEASON}|{_HOLIDAY}|{_PART_OF_YEAR}))?"
_YEAR_WORD = r"(?P<word>大前|(?<![以之目])前|(?<!过)去|今|明|(?<![以之今])后)年(?![轻龄代级纪味薪])"
_WEEKS = r"(?P<step>(?<![晚早马路身网])上{1,2}|本|这|(?<![以一])下{1,2})一?个?(?:周|星期|礼拜)"
_MONTHS = r"(?P<step>(?<![晚早马路身网])上{1,2}|本|这|(?<![以一])下{1,2})一?个?月(?![亮球光饼])"
_COUNT = rf"{_ALONE}(?P<count>{_NUMBER}|几|半(?=个?[月年]))\s?个?(?P<unit>天|日|周|星期|礼拜|月|年)"


# At each position the first match wins, so more specific patterns come first.
_TABLE: tuple[tuple[str, Resolve], ...] = (
    (rf"{_ALONE}(?P<year>\d{{4}})年?\s?[-~—–到至]\s?(?P<to>\d{{4}})年", rules.year_range),
    (rf"{_ALONE}(?P<year>\d{{4}}|[〇零一二三四五六七八九]{{4}})\s?年{_IN_YEAR}", rules.year),
    (rf"{_ALONE}(?P<year>\d\d)年(?=\d\d?月){_IN_YEAR}", rules.year),
    (rf"{_YEAR_WORD}{_IN_YEAR}", rules.year_word),
    (rf"{_MONTHS}的?(?:\s?(?P<day>{_SMALL}){_TO_DAY}\s?[日号]|{_PART})", rules.step_month),
    (rf"{_COUNT}[以之]?前", rules.ago),
    (rf"{_COUNT}后", rules.ahead),
    (rf"(?:最近|过去|近|这(?=[几两三\d]))的?{_COUNT[len(_ALONE) :]}", rules.rolling),
    (r"(?<![目以之])前(?P<count>几|两)(?P<unit>天|日|周|年)", rules.ago),
    (rf"{_ALONE}(?<!农历)(?<![每同该次隔]年){_MONTH}{_IN_MONTH}", rules.month),
    (rf"{_WEEKS}(?![围边年])(?P<weekday>[一二三四五六日天末])?", rules.step_week),
    (
        rf"(?<![每几半整{_HAN}\d])(?<!每个)(?:周|星期|礼拜)"
        r"(?P<weekday>[一二三四五六日天])(?![样直起定般些下次回个篇遍趟更常])",
        rules.weekday,
    ),
    (
        r"(?P<word>大前|(?<![目以之当提眼面年月日])前|大后|(?<![以之今然最背随])后|"
        r"(?<![说文聪声证发透表光])明)天(?![气天才赋])",
        rules.day_word,
    ),
    (
        r"(?P<word>昨|今|(?<![说文聪声证发透表光])明)[天日晚早晨夜](?!头条|方舟|津|水市|冬)",
        rules.day_word,
    ),
    (
        rf"(?<![{_HAN}\d个上下本这每今去明前后])(?P<unit>[年月])(?P<part>[初底末])",
        rules.edge_of_this,
    ),
    (rf"(?<![李王张刘陈])(?P<holiday>{'|'.join(rules.HOLIDAYS)})节?(?![岛树卡老])", rules.holiday),
    (r"(?<=[在到从是于定])(?P<day>\d\d?)号(?![线楼房机门店院车桌馆码])", rules.day_of_month),
)

_GRAMMAR = Grammar(_TABLE)
_HINT = re.compile(
    rf"\d|[年月周週][初底末前中]|[{_HAN}几幾半去今明前后後个個上下本这這][年月周週号號日天星礼禮]"
    r"|[昨今明][天日晚早晨夜]|[周週期拜][一二三四五六日天末]|[国國圣聖元][庆慶诞誕旦]|平安夜"
    r"|[双雙]十一|[人动動童师師][节節]"
)


def may_speak_of_time(text: str) -> bool:
    """Return quickly whether a text has anything that the rules could match."""
    return _HINT.search(text) is not None


def find(text: DatedText) -> Iterator[TimeMatch]:
    """Yield the Chinese expressions in a text, in reading order."""
    return _GRAMMAR.find(text.original.translate(_SIMPLER), text)
