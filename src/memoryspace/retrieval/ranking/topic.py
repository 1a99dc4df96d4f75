"""The topic of a question, and the share of it that the memory never mentions.

Words that any question may contain ("what", "name", "which city", 什么) are not part of a topic. A
topic word that occurs nowhere in the memory suggests that the memory has no answer. It counts
fully, while a known word counts the less, the more common it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..text.analysis import tokens
from ..text.stopwords import STOP_WORDS

_WORD = re.compile(r"[^\W_\u4e00-\u9fff]+(?:['’][^\W_\u4e00-\u9fff]+)?")
_IDEOGRAPHS = re.compile("[\u4e00-\u9fff]+")

# Words of asking and telling, words for the kind of answer (a name, a time, a number, a place), and
# verbs and adjectives that go with any topic.
_ASKING = frozenset(
    tokens("""
    name names named called call nickname first last full many much long often kind sort type tell
    know remember say said told mention mentioned talk talked ask asked answer reply recommend
    recommended suggest suggested advice advise idea ideas does done doing get got getting go
    going gone come came use used want must should supposed need help give gave given take taking
    make made making put bring think feel mean look see find show try keep let start started stop
    stopped lose lost become happen happened change changed choose pick avoid allowed able plan
    plans planning good ok okay best better new old own like love enjoy hate dislike favourite
    favorite mine thing things something anything anyone somebody someone people person item
    problem way number age time times year day days date month week weekend morning evening night
    today now still before after since ago again ever never always usually normally recently
    lately currently actually exactly right moment far place area city town country live lives
    living
    """)
)
_ASKING_IN_CHINESE = re.compile(
    "什么时候|啥时候|什[么麼]|哪里人|哪[里儿个家天一国]|多少钱|多[少大久]|几口人|几[号点岁个]|怎么样?|为什么|名字|叫啥|"
    "是不是|有没有|能不能|现在|目前|最近|以前|之前|当时|上次|以后|时候|时间|城市|地方|家里|总共|一共|平时|一般|告诉|记得|"
    "说过|喜欢|年纪|年龄|称呼|建议|推荐|回答|边[个度]|"
    "[哪几叫啥咩谁总说提该做干弄去来用教样我你您他她它咱俺的了吗呢吧啊么麼是在有和跟与给把被得过会要想能也都还就那这个们一不为]"
)


class TopicTerm(NamedTuple):
    """A term of a question's topic, and how much it counts."""

    text: str
    weight: float
    is_known: bool  # it occurs somewhere in the memory


def terms_of(keywords: str, gains: Mapping[str, float]) -> list[TopicTerm]:
    """Return the topic of a question; ``gains`` has the BM25 gain of each word the memory knows."""
    most = max(gains.values(), default=0.0)
    known = {stem: gain / most for word, gain in gains.items() for stem in tokens(word) if most}
    return [*_words(keywords, known), *_ideographs(keywords, known)]


def unknown_share(terms: Sequence[TopicTerm]) -> float:
    """Return the share of a topic that was never mentioned, from 0 to 1."""
    total = sum(each.weight for each in terms)
    return sum(each.weight for each in terms if not each.is_known) / total if total else 0.0


def _words(text: str, known: Mapping[str, float]) -> Iterator[TopicTerm]:
    seen = set[str]()
    for word in _WORD.findall(text):
        for stem in tokens(word):
            if len(stem) > 1 and stem not in seen and not _is_asking(stem):
                seen.add(stem)
                yield TopicTerm(word, known.get(stem, 1.0), stem in known)


def _is_asking(stem: str) -> bool:
    return stem in STOP_WORDS or stem in _ASKING


def _ideographs(text: str, known: Mapping[str, float]) -> Iterator[TopicTerm]:
    """Yield terms of Chinese text. It has no word borders: characters of a known pair are known."""
    for run in _IDEOGRAPHS.findall(_ASKING_IN_CHINESE.sub(" ", text)):
        pairs = [run[at : at + 2] in known for at in range(len(run) - 1)]
        are_known = [any(pairs[max(0, at - 1) : at + 1]) for at in range(len(run))]
        if len(run) == 1:
            are_known = [run in known]
        start = 0
        for at in range(1, len(run) + 1):
            if at == len(run) or are_known[at] != are_known[start]:
                yield TopicTerm(run[start:at], (at - start) / 2, are_known[start])
                start = at
