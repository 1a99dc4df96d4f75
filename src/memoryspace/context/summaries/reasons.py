"""The reasons to keep a sentence in a summary, and the words that reveal them.

Each reason is a row: what happens if such a sentence is forgotten, its weight, and its words in
English and Chinese. A sentence is worth its strongest reason, however rare or many its words.
English words are looked up in a set, single or in pairs, without apostrophes; ``^`` is the
beginning of a clause.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "harm", "rule", "open", "decision", "deadline", "person", "own", "finding"
]


class Reason(NamedTuple):
    """A reason to keep a sentence, its weight, and the words that reveal it."""

    kind: Kind
    why: str
    worth: float
    words: frozenset[str]
    chinese: re.Pattern[str]


def _reason(kind: Kind, why: str, worth: float, words: str, chinese: str) -> Reason:
    """Build a row. In ``words``, an underscore joins a pair."""
    found = frozenset(word.replace("_", " ") for word in words.split())
    return Reason(kind, why, worth, found, re.compile(chinese))


REASONS = (  # strongest first; of equals, the one with the more specific section
    _reason(
        "harm",
        "someone may be harmed",
        4.0,
        "allergy allergies allergic anaphylaxis anaphylactic epipen intolerant intolerance coeliac "
        "celiac gluten lactose diabetic diabetes insulin asthma asthmatic epilepsy epileptic "
        "seizure seizures pregnant pregnancy medication medications medicine meds prescription "
        "prescribed dose dosage tablets pills diagnosed diagnosis migraine migraines surgery "
        "hospital chemo dialysis pacemaker wheelchair disability poisonous toxic dangerous "
        "emergency vegan vegetarian pescatarian halal kosher blood_pressure cant_eat cant_drink "
        "cant_have cant_take cant_touch cannot_eat cannot_drink cannot_have cannot_take dont_eat "
        "dont_drink doesnt_eat doesnt_drink never_eat never_drink not_eat not_drink",
        "过敏|不耐受|忌口|哮喘|糖尿病|胰岛素|高血压|血糖|癫痫|怀孕|孕妇|吃药|服药|药物|剂量|处方"
        "|确诊|手术|住院|急诊|心脏病|偏头痛|轮椅|有毒|危险|素食|吃素|清真|戒酒"
        "|(?:不能|不可以|不|别|忌|没法)(?:吃|喝|碰|沾)",
    ),
    _reason(
        "rule",
        "a standing instruction is ignored",
        3.0,
        "never always must mustnt shouldnt forbidden prohibited banned avoid require requires "
        "required important cannot ensure ^_dont please_dont and_dont but_dont so_dont just_dont "
        "do_not no_more not_allowed from_now every_time "
        "each_time make_sure call_me remember_that please_use only_use ^_only stop_using "
        "stop_sending stop_calling",
        "不要|不准|不许|不得|不能|不可|禁止|严禁|切勿|千万|务必|必须|一定要|只能|只要|每次|从现在起"
        "|以后[请都别不]|始终|永远|总是|记住|记得|叫我|要求|别再|避免|重要",
    ),
    _reason(
        "open",
        "a promise or question stays open",
        2.0,
        "todo remind reminder promise promised owe owes pending waiting unresolved undecided "
        "unsure unclear tbd remaining remains outstanding next yet still later need needs not_sure "
        "not_decided havent_decided get_back follow_up planning plan plans going_to whether",
        "待办|提醒|答应|保证|欠|下一步|接下来|还需|仍需|还没|尚未|未完成|未解决|不确定|没想好|稍后"
        "|等待|打算|准备|计划|要不要|是否",
    ),
    _reason(
        "decision",
        "a decision is reopened, or a change is missed",
        2.0,
        "decide decided decision decisions choose chose chosen opted agree agreed settled instead "
        "confirm confirmed cancelled canceled approved rejected switched changed quit resigned "
        "retired moved moving sold stopped gave_up married divorced engaged broke_up laid_off "
        "fired hired died anymore any_more no_longer going_with go_with rather_than prefer "
        "preferred because",
        "决定|选择|选了|选定|定了|采用|改为|改成|改用|换成|换了|同意|确认|说好|取消|辞职|辞了|离职"
        "|退休|搬到|搬家|搬去|卖了|停了|戒了|结婚|离婚|领证|分手|去世|不再|不.{1,4}了|偏好|因为",
    ),
    _reason(
        "deadline",
        "a deadline is missed",
        2.0,
        "deadline due expires expire expiring appointment tonight tomorrow monday tuesday "
        "wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays "
        "saturdays sundays january february march april june july august september october "
        "november december in_may next_week next_month next_year this_week until by_the",
        "截止|到期|期限|之前|以前要|明天|后天|今晚|下周|下个?月|月底|年底|周[一二三四五六日天末]"
        "|星期[一二三四五六日天]|礼拜[一二三四五六日天]|[\\d一二三四五六七八九十]+[月号点]",
    ),
    _reason(
        "person",
        "people are confused with one another",
        1.0,
        "name named called nickname mother mum mom father dad parents brother sister wife husband "
        "partner girlfriend boyfriend fiance fiancee son daughter kid kids child children baby "
        "uncle aunt cousin nephew niece grandma grandpa grandmother grandfather boss manager "
        "colleague coworker friend flatmate roommate neighbour neighbor landlord doctor dentist "
        "teacher dog cat pet",
        "叫|名字|姓|妈|爸|父|母|哥|姐|弟|妹|老婆|老公|妻子|丈夫|儿子|女儿|孩子|宝宝|爷爷|奶奶|外公"
        "|外婆|舅|姨|叔|姑|男友|女友|对象|朋友|同事|老板|领导|同学|室友|邻居|房东|医生|老师|[猫狗]",
    ),
    _reason(
        "own",
        "the user has to repeat personal facts",
        1.0,
        "i im ive id my me mine we our us",
        "我|咱",
    ),
    _reason(
        "finding",
        "the same work is done twice",
        0.8,
        "error errors exception fail fails failed failure traceback couldnt wrong bug fix fixed "
        "found cause solved passed works successful successfully",
        "错误|失败|异常|无法|原因|修复|发现|解决|成功|通过",
    ),
)  # fmt: skip

OPEN = next(reason for reason in REASONS if reason.kind == "open")

_WORD = re.compile(r"[a-z']+|[,;:.!?(–—]")
_HAN = re.compile("[\u4e00-\u9fff]")
_ASKING = ("?", "？", "吗", "呢")
_SAID_TO_BE_OPEN = re.compile(
    r"\b(?:open (?:question|issue|point)s?|undecided|unresolved|tbd)\b|待定|未定|没定|待解决", re.I
)


def reason_for(sentence: str) -> Reason | None:
    """Return the strongest reason to keep a sentence. A question has none unless marked open."""
    if is_question(sentence):
        return OPEN if _SAID_TO_BE_OPEN.search(sentence) else None
    said = _words_in(sentence)
    is_han = not sentence.isascii() and _HAN.search(sentence) is not None
    for reason in REASONS:
        if not said.isdisjoint(reason.words) or (is_han and reason.chinese.search(sentence)):
            return reason
    return None


def is_question(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    return sentence.rstrip("\"”')」』） ").endswith(_ASKING)


def _words_in(sentence: str) -> set[str]:
    """Return the words of a sentence and all pairs of neighbours."""
    low = sentence.lower().replace("’", "'").replace("'", "")
    words = [word if word.isalpha() else "^" for word in _WORD.findall(low)]
    return {*words, *map(" ".join, zip(["^", *words], words, strict=False))}
