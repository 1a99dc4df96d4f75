"""Statements in Chinese sentences, clause by clause.

A clause is a fact if a row extracts a value from it or if it touches a matter (an area of life).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import takewhile

from ..facts import CORRECTION, EXCLUSIVE_MATTERS, Statement, trimmed
from ..patterns import Matter, ValueRow
from ..people import People
from .clauses import SIMPLER, UNREAL, ChineseClause, clauses, end_of, matter_of
from .matters import ENDS, NEGATED, RELATIONS, TURNS
from .values import ADVERBS, ROWS

_SMALL_TALK = re.compile(
    r"聊天|聊聊|[和跟找与]你|心情|天气|再见|今天是|兴奋|感动|认真考虑|"
    r"(?:遇到|碰到|出)了?[^，]{0,8}(?:麻烦|困难|问题|差错)|压力|困难|吃力"
)
_CORRECTS = re.compile(r"更正|纠正一下|搞错|记错|说错|弄错|说差|打错|写错")
_INTENDS = re.compile(
    r"打算|考虑|想(?!了)|计划|准备|希望|要不要|拟|愿意|拉我|让我(?!当|做|带|管)|劝"
)
_DENIES = re.compile(r"[没未不][^，]{0,2}$")
_TREATED = re.compile(r"(?:医生|大夫)[^，]{0,3}给")
_LISTED = re.compile(r"、|和(?!平|谐|声)|以及|还有|及(?!时)")
_COMMA_LISTED = re.compile(r"[，,、]|和(?!平|谐|声)|以及|还有")
_AROUND = re.compile(
    r"^(?:尤其是?|特别是|像|比如|例如|包括|还有|以及|或者?|也不[吃喝])|(?:等等?|之类的?|什么的"
    r"|越来越|哈+|呀|啦)$"
)
_SAYS_MORE = re.compile("[很都吧了让是的我会就有]|因为|非常|特别|感觉|觉得|但")  # not a list item
_MY_PERSON = re.compile(rf"我(?={RELATIONS})")
_PERSON = re.compile(RELATIONS)
_CALL_ME = re.compile(
    r"(?:叫|称呼)我(?P<v>[\u4e00-\u9fffA-Za-z]{1,8}?)(?:吧|就好|就行|就可以了?|啦)?(?=[，。！,!]|$)"
)


def statements(sentence: str, who: str, people: People) -> Iterator[Statement]:
    """Yield what a sentence states about its speaker, called ``who``, or people around them."""
    plain = sentence.translate(SIMPLER)
    if _CORRECTS.search(plain) and not UNREAL.search(plain):
        yield Statement(
            CORRECTION,
            trimmed(sentence),
            f"{who}：{trimmed(sentence)}。",
            change=True,
            is_exact=False,
        )
        return
    called = _CALL_ME.search(plain)
    if called is not None and "都叫我" not in plain and "大家叫我" not in plain:
        text = in_third_person(sentence[called.start() :], who)
        yield Statement("nickname", called["v"], text, change=True)
        return
    told = set()
    for clause in clauses(sentence, people):
        for statement in _stated(clause, who):
            told.add(statement.subject)
            yield statement
    yield from _introduced(people, told, who)


def _introduced(people: People, told: Collection[str], who: str) -> Iterator[Statement]:
    """Yield people named in passing, unless another statement is about them."""
    for relation, name in people.introduced:
        if f"{relation} {name}" not in told:
            text = f"{who}的{relation}叫{name}。"
            yield Statement("family", name, text, f"{relation} {name}", is_exact=False)
    people.introduced.clear()


def in_third_person(clause: str, who: str) -> str:
    """Return a clause in the third person, about ``who``; if unsure, as it was said."""
    said = clause.strip("，,；;：:。！!~～ ") + "。"
    if re.search(r"我们|咱|你|您", said) is not None or "我" not in said:
        return f"{who}：{said}"
    return _MY_PERSON.sub(f"{who}的", said).replace("我", who)


def _stated(clause: ChineseClause, who: str) -> Iterator[Statement]:
    if _SMALL_TALK.search(clause.said.translate(SIMPLER)) is not None:
        return
    exact = [] if clause.is_thing else list(_exact(clause, who))
    if exact:
        yield from exact
        return
    general = _general(clause, who)
    if general is not None:
        yield general


def _worded(said: str, clause: ChineseClause, who: str) -> str:
    """Return a clause that reads on its own, with its subject named."""
    if clause.subject and not clause.names_subject:
        return f"{who}的{clause.subject.replace(' ', '')}：{said.strip('，,；;：:。！!~～ ')}。"
    if clause.subject and _PERSON.match(said):
        return f"{who}的{said.strip('，,；;：:。！!~～ ')}。"
    return in_third_person(said, who)


def _turns(matter: Matter, main: str) -> bool:
    """Return whether a matter changes, unless the change is negated or only intended."""
    found = None if matter.turns is None else matter.turns.search(main)
    if found is None or _INTENDS.search(main) is not None:
        return False
    return _DENIES.search(main[: found.start()]) is None or main.endswith(("了", "啦"))


def _general(clause: ChineseClause, who: str) -> Statement | None:
    """Return a clause as a statement about a matter; one about a thing must end something."""
    plain = clause.said.translate(SIMPLER).strip("。！!~～ ")
    matter = matter_of(plain)
    main = re.split(r"[，,]", plain)[0] if clause.is_bare else plain
    turns = matter is not None and _turns(matter, main)
    ends, changes = ENDS.search(plain) is not None, TURNS.search(main) is not None
    text = _worded(clause.said, clause, who)
    rest = trimmed(clause.said[clause.at :])
    value = rest if rest else trimmed(clause.said)
    is_own = not clause.is_thing or (turns and "我" in plain) or _TREATED.match(plain) is not None
    if matter is None and not ends and not changes:
        return (
            None
            if not clause.names_subject or clause.is_thing
            else Statement("event:dated", value, text, clause.subject, is_exact=False)
        )
    if not is_own and not turns and not ends and not changes:
        return None
    name = "event" if matter is None else matter.name
    if clause.subject and not clause.said[clause.at :].strip("，。！!~～ "):
        return None
    is_own = is_own and (matter is not None or clause.names_subject)
    polarity = -1 if NEGATED.search(plain) else 1
    is_change = turns or (changes and name not in EXCLUSIVE_MATTERS)
    return Statement(
        name, value, text, clause.subject, polarity, ends, is_change, not is_own, is_exact=False
    )


def _exact(clause: ChineseClause, who: str) -> Iterator[Statement]:
    plain = clause.said.translate(SIMPLER)
    begin = clause.at + end_of(ADVERBS.match(plain[clause.at :]))
    for start in dict.fromkeys((begin, clause.at)):  # some adverbs are part of a row's pattern
        for row in ROWS:
            match = row.pattern.match(plain, start)
            if match is not None and (clause.names_subject or row.attribute != "name"):
                yield from _made(row, match, clause, who)
                return


def _made(
    row: ValueRow, match: re.Match[str], clause: ChineseClause, who: str
) -> Iterator[Statement]:
    own = match["own"] if "own" in row.pattern.groupindex else ""
    said = clause.said
    whole = Statement(
        row.attribute.replace("*", own),
        _plain(said[slice(*match.span("v"))]),
        _worded(said, clause, who),
        clause.subject,
        row.polarity,
        row.ended,
        row.change,
    )
    begin = match.start("v")
    items = _items(said[begin:], whole.value) if row.is_list else []
    if not whole.value or len(items) < 2:
        yield from [whole] if whole.value else []
        return
    for item in items:
        yield whole._replace(value=item, text=_worded(f"{said[:begin]}{item}", clause, who))


def _items(rest: str, value: str) -> list[str]:
    """Split 画画、钢琴和书法, also at commas; return nothing if it is not a plain list."""
    if value.startswith(("在", "去", "用", "跟", "和")):
        return []
    by_commas = [_plain(part) for part in _COMMA_LISTED.split(rest.rstrip("。！!~～ "))]
    listed = list(
        takewhile(lambda item: 0 < len(item) <= 8 and not _SAYS_MORE.search(item), by_commas)
    )
    items = [_plain(part) for part in _LISTED.split(value)]
    if len(listed) > max(2, len(items)):
        return listed
    return items if all(0 < len(item) <= 10 and "的" not in item for item in items) else []


def _plain(item: str) -> str:
    return trimmed(_AROUND.sub("", trimmed(item)))
