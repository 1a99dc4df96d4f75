"""Clauses of Chinese sentences and their subjects.

A piece between commas often omits its subject: it inherits that of the piece before, or the speaker
at the beginning. Pieces with an uncertain subject are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..patterns import Matter
from ..people import People
from .matters import ANIMALS, MATTERS, RELATIONS
from .values import SURNAMES

SIMPLER = str.maketrans(
    "歡愛討厭買說話養對過還現結離兒個隻條貓狗媽爸爺奶妹歲聽讀寫學習師員業這們裡來後張書電腦開車換東西號樂戲遊將會從"
    "為機場給請見長張問間頭臺灣灣國語",
    "欢爱讨厌买说话养对过还现结离儿个只条猫狗妈爸爷奶妹岁听读写学习师员业这们里来后张书电脑开车换东西号乐戏游将会从"
    "为机场给请见长张问间头台湾湾国语",
)
UNREAL = re.compile(
    r"如果|假如|假设|要是|倘若|万一|的话|幻想|梦见|梦到|做梦|多希望|要不|不如|恨不得|开玩笑|讲笑"
    r"|说笑|逗你|可能|也许|说不定|真想|好想|就好了|(?:本来|原来|原本)(?:是)?(?:想|打算|准备|要)|差点|中了?(?:彩票|六合彩)|哪天"
)
_ASKING = re.compile(
    r"(?:吗|呢|么|什么样?|怎么[办做写样]?|怎样|如何|哪[里些个儿]|多少|是不是|有没有|好不好"
    r"|行不行|能不能)[^，。]{0,4}[。！~～…]*$|^(?:怎么|如何|为什么|什么|哪|谁|该|送什么|能(?!吃)"
    r"|帮我|请|给我)"
)
_BREAK = re.compile(r"[，,；;：]\s*|——|(?<=[\u4e00-\u9fff])\s+|[。！!~～…]+\s*|(?<=[a-zA-Z])\.\s")
_LEAD = re.compile(
    r"(?:(?:嗯|啊|哦|噢|哇|嗨|嘿|你好|您好|好的|是的|没错|当然|其实|不过|但是?|而且|并且|所以"
    r"|因为|同时|另外|然后|对了|哦对|对|顺便|真的|还有|只是|首先|反正|就是|结果|后来|说起来"
    r"|update|btw|hi|ok|"
    r"平时|平常|周末|今天|昨天|昨晚|前天|明天|后天|最近|现在|目前|上个?周末?|下个?周末?|上个?月"
    r"|下个?月|去年|前年|明年|今年|小时候|这个?周末|今晚|今早|早上|晚上|下午|上午|刚|已经|也|都|就|"
    r"(?:上|下|这)?个?(?:周|星期|礼拜)[一二三四五六日天]"
    r"|[\d一二两三四五六七八九十几]+(?:[天年周]|个月)前|(?:\d{4}年)?\d{1,2}月(?:\d{1,2}[日号])?"
    r"|\d{4}年)"
    r"[啊呀哦呢吧的]?[：:\s]*)*",
    re.IGNORECASE,
)
_NAME = (
    rf"(?:[小阿老大][\u4e00-\u9fff](?![\u4e00-\u9fff]?[店校学])"
    rf"|(?P<double>[\u4e00-\u9fff])(?P=double)"
    rf"|[{SURNAMES}][\u4e00-\u9fff]{{1,2}}(?=[也在是有说比特很要的都又去来把跟和给被就还叫]|$)"
    rf"|[A-Z][A-Za-z]+)"
)
_RELATED = re.compile(
    rf"(?!朋友都|同事都|同学都|老板(?!娘)|老师|邻居都)(?:(?:我们?|咱们?"
    rf"|阿拉)(?:家)?(?:的)?(?:那)?|(?!哥|姐(?!姐)|弟(?!弟)|妹(?!妹)|叔|舅|姑(?!姑)|娃))"
    rf"(?P<relation>{RELATIONS})(?:们|家的?|俩)?[，]?(?P<name>{_NAME})?"
)
_OUR_ANIMAL = re.compile(
    rf"我们?(?:家的?|的)(?:那?[只条])?(?P<animal>[^，。]{{0,2}}?{ANIMALS}{{1,2}})"
)
# A piece without a subject may be about whom this introduces: 我养了只猫，特别怕打雷.
_BRINGS_UP = re.compile(
    rf"(?:养|有|捡|领|买|送|认识)[^，。]*(?:{ANIMALS}|{RELATIONS})|(?<!我)叫[^，。我]{{1,4}}$"
)
# People without an introduction: 老周也被裁了, Priya毕业了.
_SOMEBODY = re.compile(
    r"(?!老[家板师是早房婆公伴人年样实大二]|小[时区孩学心吃说组]|大[家学概的夫约早部半伙一二三四]"
    r"|[小大老]的|阿[姨]|[A-Z]+[\d ])"
    r"(?P<name>[小阿老大][\u4e00-\u9fff]"
    r"|(?![天刚常慢渐偏仅往谢哈呵嘿看试想聊人家好多早通统明恰轻悄白听说走等个样])(?P<twice>[\u4e00-\u9fff])(?P=twice)|[A-Z][a-z]+)(?=[\u4e00-\u9fff])(?!的|店|校|学|班)"
)
# 我有个哥哥叫大伟，在上海做医生: the next piece is about him.
_HAD = re.compile(
    rf"有一?[个位](?P<relation>{RELATIONS})[，]?(?:名字?)?叫(?P<name>{_NAME}|[\u4e00-\u9fff]{{2,3}}$)"
)
_MENTIONED = re.compile(rf"[了个的](?P<relation>{RELATIONS})$")
_OUR_NAMED = re.compile(rf"我们?家(?P<name>{_NAME})")
_CALLED = re.compile(rf"(?:名字)?叫做?(?P<name>{_NAME}|[\u4e00-\u9fff]{{2,3}}$)")
_SPEAKER = re.compile(r"我们?|咱们?|本人|俺")
_PRONOUN = re.compile(r"他|她|佢|伊|TA")
_OTHERS = re.compile(
    r"别人|有人|大的|小的|大家|人家|客[人户]|甲方|领导|老板|医生|大夫|店长|房东|站长|校长|网上|谁|你|您|它"
    r"|这|那|人们|朋友都|老师|护士|经理|主管|导演|村里|隔壁|某"
)
_SAYS = re.compile(
    r"[^，]{0,6}?(?:老)?(?:说|问|讲|话|劝|喊|嚷|催|觉得|以为|认为|建议|笑我|告诉)(?!话|明|服"
    r"|得)(?!他|她|自己|要(?!我))"
)
_TIMES = re.compile(
    r"(?:每|天天|周|星期|礼拜|早上|晚上|下午|上午|从|\d|[一二三四五六七八九十]+[点号月天年])"
)
_IDLE = re.compile(
    r"(?:是说|是不是|是因为|觉得|认为|想问|想知道|想说|想请|想听|知道|明白|了解|理解|同意|相信"
    r"|记得|猜|感觉|感到|听说|听你|看到你|也是$|没事$|不知道|不确定|不懂|"
    r"会的|会试|会考虑|会努力|会注意|会记|会好好|会继续|很?高兴|很?开心|很?感谢|很?抱歉|谢谢"
    r"|期待|建议|推荐|可以|应该|需要你|有一?个问题|有些困惑|有点|有些|好累|太累|想你|爱你|喜欢你"
    r"|在听|在想|想[和跟与]你|想聊|[^，]{0,3}(?:有点|好|很|太)?(?:累|困|难过|激动|无聊|郁闷"
    r"|烦)[了啊]?$|"
    r"希望你|希望我们|先去|要去(?:睡|休息|吃饭|忙)|走了$|来了$|没有(?!养|孩|兄|工作)|还没"
    r"|老?记不住|怕忘)"
)
_REACHED = re.compile("电话|手机|邮箱")
_GONE = re.compile(r"走了|去世|过世|病逝")
_SECRET = re.compile(r"密码|卡号|银行卡|验证码|\d{6,}")


UNSURE = "?"  # ``next_subject`` of a clause that introduces somebody else


@dataclass
class ChineseClause:
    """Part of a sentence about one subject. A *thing* is neither the speaker nor a person."""

    said: str
    at: int  # where the predicate begins
    subject: str = ""
    is_bare: bool = False
    is_thing: bool = False
    names_subject: bool = True  # whether its words name the subject
    next_subject: str | None = None  # the subject of a following piece without one, if not the same


def clauses(sentence: str, people: People) -> Iterator[ChineseClause]:
    """Yield the pieces that state something; a bare time or list joins the piece before it."""
    found: list[ChineseClause] = []
    before: ChineseClause | None = None
    quoting = False
    for said, gap in _pieces(sentence):
        plain = said.translate(SIMPLER)
        if UNREAL.search(plain):
            _about(said, plain, people, before)
            break
        clause = None if _is_asked(plain) else _about(said, plain, people, before)
        quoting = (quoting and (clause is None or clause.is_bare)) or _tells_words(plain, clause)
        if clause is None or quoting:
            before = None if not quoting else before
            continue
        if before is not None and clause.is_bare and _belongs(plain, before):
            before.said = f"{before.said}{gap}{said}"
            continue
        found.append(clause)
        mention = _MENTIONED.search(plain)
        if mention is not None:
            people.mention(mention["relation"])
        if clause.subject and _turns_to_speaker(plain, clause):
            clause.next_subject = ""
        if _BRINGS_UP.search(plain) is not None:
            had = _HAD.search(plain)
            clause.next_subject = (
                UNSURE if had is None else people.mention(had["relation"], had["name"])
            )
        before = clause
    yield from found


def _turns_to_speaker(plain: str, clause: ChineseClause) -> bool:
    """Return whether the next piece may be about the speaker: 婆婆带娃我不放心, 老伴走了."""
    return "我" in plain[clause.at :] or _GONE.search(plain) is not None


def _pieces(sentence: str) -> Iterator[tuple[str, str]]:
    """Yield each piece with the punctuation before it."""
    begin, gap = 0, ""
    for cut in [*_BREAK.finditer(sentence), None]:
        end = len(sentence) if cut is None else cut.start()
        if sentence[begin:end].strip():
            yield sentence[begin:end].strip(), gap
        if cut is not None:
            begin, gap = cut.end(), cut.group()


def _is_asked(plain: str) -> bool:
    return _ASKING.search(plain) is not None or _tells_secret(plain) or "…" in plain


def _tells_secret(plain: str) -> bool:
    return _SECRET.search(plain) is not None and _REACHED.search(plain) is None


def _tells_words(plain: str, clause: ChineseClause | None) -> bool:
    """Return whether reported speech begins here; it yields no facts."""
    is_other = clause is None or bool(clause.subject) or clause.is_thing
    start = 0 if clause is None or not clause.names_subject else clause.at
    return is_other and _SAYS.match(plain, start) is not None


def _belongs(plain: str, before: ChineseClause) -> bool:
    """Return whether a piece belongs to the one before: a time, or no matter of its own."""
    matter = matter_of(plain)
    if matter is None or plain.startswith(("叫", "名叫", "名字叫")):
        return True
    return matter.name == "habit" and _TIMES.match(plain) is not None and len(plain) <= 10


def _about(
    said: str, plain: str, people: People, before: ChineseClause | None
) -> ChineseClause | None:
    lead = _LEAD.match(plain)
    at = 0 if lead is None else lead.end()
    person = _person(said, plain, at, people)
    if person is not None:
        return person
    speaker = _SPEAKER.match(plain, at)
    if speaker is not None:
        if _IDLE.match(plain, end_of(_LEAD.match(plain, speaker.end()))):
            return None
        return ChineseClause(said, speaker.end())
    if _PRONOUN.match(plain, at):
        return ChineseClause(said, at, is_thing=True)
    if _OTHERS.match(plain, at):
        return ChineseClause(said, at, is_thing=True)
    if _IDLE.match(plain, at):
        return None
    if before is None:
        return ChineseClause(said, at, names_subject=False)
    subject = before.subject if before.next_subject is None else before.next_subject
    is_thing = before.is_thing or before.next_subject == UNSURE
    return ChineseClause(said, at, subject, is_bare=True, is_thing=is_thing, names_subject=False)


def _person(said: str, plain: str, at: int, people: People) -> ChineseClause | None:
    for name in sorted(people.names, key=len, reverse=True):
        if plain.lower().startswith(name, at):
            return ChineseClause(
                said, at + len(name), people.named(name) or "", names_subject=False
            )
    related = _RELATED.match(plain, at)
    if related is not None:
        name = related["name"]
        is_name = name is not None and matter_of(name) is None  # 我妈高血压 names nobody
        who = people.mention(related["relation"], name if is_name else None)
        return ChineseClause(said, related.end() if is_name else related.end("relation"), who)
    animal = _OUR_ANIMAL.match(plain, at)
    if animal is not None:
        return ChineseClause(said, animal.end(), people.mention(animal["animal"]))
    ours = _OUR_NAMED.match(plain, at)
    if ours is not None:
        return ChineseClause(said, ours.end(), people.mention("", ours["name"]))
    somebody = _SOMEBODY.match(plain, at)
    if somebody is not None:
        return ChineseClause(said, somebody.end(), people.mention("", somebody["name"]))
    if _PRONOUN.match(plain, at) and people.last is not None:
        named = _CALLED.match(plain, at + 1)
        if named is not None:
            people.mention(people.last.split()[0], named["name"])
        return ChineseClause(said, at + 1, people.last, names_subject=False)
    return None


def matter_of(plain: str) -> Matter | None:
    """Return the first matter that words touch."""
    return next((each for each in MATTERS if each.words.search(plain)), None)


def end_of(match: re.Match[str] | None) -> int:
    """Return the end of a match, or 0 if there is none."""
    return 0 if match is None else match.end()
