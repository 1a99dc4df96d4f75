"""What somebody says of themselves in Chinese: clauses, whom they are about, what they state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from .personal_chinese_rules import ADVERBS, IDLE, RULES, Rule
from .personal_facts import Statement, trimmed

_SIMPLER = str.maketrans(
    "歡愛討厭買說話養對過還現結離兒個隻條貓狗媽爸爺奶妹歲聽讀寫學習師員業這們裡來後張書電腦開車換東西號樂戲遊將會從"
    "為機場給請見長張問間頭臺灣灣國語",
    "欢爱讨厌买说话养对过还现结离儿个只条猫狗妈爸爷奶妹岁听读写学习师员业这们里来后张书电脑开车换东西号乐戏游将会从"
    "为机场给请见长张问间头台湾湾国语",
)
_HYPOTHETICAL = re.compile(
    r"如果|假如|假设|要是|倘若|万一|的话|假装|幻想|梦见|梦到|要不|不如|多希望"
)
_ASKING = re.compile(
    r"(?:吗|呢|么|什么样?|怎么办|怎样|如何|哪[里些个儿]|多少|是不是|有没有|好不好)[。！~～…]*$"
)
_BREAKS = re.compile(
    r"[，,；;：:]\s*(?=(?:而且|并且|但是?|不过|所以|同时|另外|然后|因为|其实|现在|最近|今天|昨天|平时|也|还|只是|尤其是?)?(?:我|咱))"
    r"|[，,；;]\s*(?=(?:谢谢|你(?!们)|您|请|希望你|可以|能不能|有没有|很高兴|怎么))"
)
# With these a second statement about the same person begins: "…，也喜欢写作".
_SAME_SUBJECT = re.compile(
    r"[，,]\s*(?=(?:也|还|并且|而且|有时候?|平时|现在|目前)*(?:很|非常|特别|比较)?(?:喜欢|爱[吃喝看听玩]|会[说弹打唱]|养|住在|"
    r"有[一两三四五六\d]|讨厌|不喜欢|在[^，。]{1,12}(?:工作|上班)|对[^，。]{1,10}(?:过敏|感兴趣)|今年\d|不吃|是一[名个位]))"
)
_LEAD = re.compile(
    r"^(?:(?:嗯|啊|哦|噢|哇|嗨|嘿|你好|您好|好的|是的|对|对了|没错|当然|其实|不过|但是?|而且|并且|所以|因为|同时|另外|然后|"
    r"说起来|说实话|老实说|除此之外|此外|顺便|顺便说一下|哈|呵|谢谢|真的|还有|只是|首先|尤其是?|我也是|没关系|平时|平常|空闲时|周末|"
    r"今天|昨天|昨晚|前天|明天|后天|最近|现在|目前|上个?周末?|下个?周末?|上个?月|下个?月|去年|前年|明年|今年|小时候|这个?周末|今晚|今早|早上|晚上|下午|上午|"
    r"(?:上|下|这)?个?(?:周|星期|礼拜)[一二三四五六日天]|[\d一二两三四五六七八九十几]+[天年周]前|[\d一二两三四五六七八九十几]+个月前|(?:\d{4}年)?\d{1,2}月(?:\d{1,2}[日号])?|\d{4}年)"
    r"[啊呀哦呢吧的]?[，,。！!、~～\s]*)*(?=我|咱)"
)
_COMMA_LEAD = re.compile(r"^(?!如果|要是|假如)[^，,。我]{1,16}[，,]\s*(?=我)")
_RELATED = re.compile(
    r"我们?(?:家)?(?:的)?(?P<relation>妈妈|母亲|妈|爸爸|父亲|爸|父母|爷爷|奶奶|外公|外婆|姥姥|姥爷|哥哥|姐姐|弟弟|妹妹|"
    r"老婆|妻子|老公|丈夫|爱人|女朋友|男朋友|女友|男友|对象|儿子|女儿|孩子|宝宝|好?朋友|闺蜜|同事|同学|室友|老板|老师|邻居|"
    r"表哥|表姐|表弟|表妹|堂哥|堂姐|堂弟|堂妹|叔叔|阿姨|舅舅|姑姑|家人|狗狗|小?狗|猫咪|小?猫)(?:，)?(?!们)"
)
_LISTED = re.compile(r"、|和(?!平|谐|声)|以及|还有|及(?!时)")
_AROUND = re.compile(
    r"^(?:尤其是?|特别是|像|比如|例如|包括|还有|以及|或者?)|(?:等等?|之类的?|什么的|越来越)$"
)
_SAYS = re.compile(
    "[很都吧了让是的我会就有]|因为|非常|特别|感觉|觉得|但"
)  # a clause, and no item of a list
_COMMA_LISTED = re.compile(r"[，,、]|和(?!平|谐|声)|以及|还有")
_CALL_ME = re.compile(
    r"(?:你)?(?:可以|就)?(?:叫|称呼)我(?P<v>[\u4e00-\u9fffA-Za-z]{1,8}?)(?:吧|就好|就行|就可以了?)?[。！]?$"
)
# A lasting wish about the answers; what is asked for once is none.
_STANDING = re.compile(
    r"(?:请你?)?(?:以后|今后|从现在起|从今以后|每次)[，,]?(?:请你?|都)?"
    r"(?P<v>(?:不要|别|一律|都|总是)?(?:用|以|回答|回复|叫|称呼|说|写|解释|提醒)[^。！]+)"
)


def statements(sentence: str, who: str) -> Iterator[Statement]:
    """Yield what a sentence states about its speaker, who is called ``who``, or their people."""
    plain = sentence.translate(_SIMPLER)
    if _HYPOTHETICAL.search(plain) is not None:
        return
    standing = _STANDING.match(plain)
    if standing is not None:
        yield Statement("instruction", trimmed(standing["v"]), f"{who}：{sentence}")
        return
    called = _CALL_ME.search(plain)
    if called is not None:
        text = in_third_person(sentence[called.start() :], who)
        yield Statement("nickname", called["v"], text)
        return
    for clause in _clauses(sentence, plain):
        yield from _stated(clause, who)


def in_third_person(clause: str, who: str) -> str:
    """Return a clause as somebody else would say it of ``who``; if unsure, as it was said."""
    said = clause.strip("，,；;：:。！!~～ ") + "。"
    if re.search(r"我们|咱|你|您", said) is not None:
        return f"{who}：{said}"
    return said.replace("我", who)


def _clauses(sentence: str, plain: str) -> Iterator[str]:
    """Yield the clauses that begin with a person."""
    begin = 0
    for cut in [*_BREAKS.finditer(plain), None]:
        end = cut.start() if cut is not None else len(sentence)
        clause = sentence[begin:end]
        begin = cut.end() if cut is not None else end
        if _ASKING.search(clause) is None:
            first, *others = _SAME_SUBJECT.split(clause)
            yield first
            yield from (f"我{other}" for other in others if first.find("我") >= 0)


def _stated(clause: str, who: str) -> Iterator[Statement]:
    plain = clause.translate(_SIMPLER)
    at, subject = _person(plain)
    if at is None:
        return
    begin = at + _end(ADVERBS.match(plain[at:]))
    for start in dict.fromkeys((begin, at)):  # some signs of degree belong to a rule
        if IDLE.match(plain, start) is not None:
            return
        for rule in RULES:
            match = rule.pattern.match(plain, start)
            if match is not None:
                yield from _made(rule, match, clause, subject, who)
                return


def _end(match: re.Match[str] | None) -> int:
    return 0 if match is None else match.end()


def _person(plain: str) -> tuple[int | None, str]:
    """Return where what is said of a person begins, and who it is."""
    lead = _end(_LEAD.match(plain))
    if not plain.startswith(("我", "咱"), lead):
        lead = _end(_COMMA_LEAD.match(plain))
    related = _RELATED.match(plain, lead)
    if related is not None:
        return related.end(), related["relation"]
    if plain.startswith("我们", lead):
        return lead + 2, ""
    return (lead + 1, "") if plain.startswith("我", lead) else (None, "")


def _made(
    rule: Rule, match: re.Match[str], clause: str, subject: str, who: str
) -> Iterator[Statement]:
    own = match["own"] if "own" in rule.pattern.groupindex else ""
    whole = Statement(
        rule.attribute.replace("*", own),
        _plain(clause[slice(*match.span("v"))]),
        in_third_person(clause, who),
        subject,
        rule.polarity,
        rule.ended,
        rule.change,
    )
    if not whole.value:
        return
    begin = match.start("v")
    items = _items(clause[begin:], whole.value) if rule.is_list else []
    if len(items) < 2:
        yield whole
        return
    for item in items:
        text = in_third_person(f"{clause[:begin]}{item}", who)
        yield whole._replace(value=item, text=text)


def _items(rest: str, value: str) -> list[str]:
    """Split 画画、钢琴和书法, also with commas between; what is no plain list stays whole."""
    if value.startswith(("在", "去", "用", "跟", "和")):
        return []
    by_commas = [_plain(part) for part in _COMMA_LISTED.split(rest.rstrip("。！!~～ "))]
    listed = list(takewhile(lambda item: 0 < len(item) <= 8 and not _SAYS.search(item), by_commas))
    items = [_plain(part) for part in _LISTED.split(value)]
    if len(listed) > max(2, len(items)):
        return listed
    return items if all(0 < len(item) <= 10 and "的" not in item for item in items) else []


def _plain(item: str) -> str:
    return trimmed(_AROUND.sub("", trimmed(item)))
