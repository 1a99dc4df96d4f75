"""Sentences of English and Chinese, what they are good for, and the names and numbers in them.

All of it is quick: words are looked up, not searched for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_LONGEST_TEXT = 8000  # characters of one text that are read
_LONGEST_SENTENCE = 240
_LONGEST_NAME = 120
_FEWEST_WORDS = 3  # or Chinese signs

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_STUB = re.compile(r"^\[[^\n]*left the context[^\n]*\]$", re.MULTILINE)
_END = re.compile(r"(?<=[.!?…])[\"”')\]]*\s+(?=[^a-z])|(?<=[。！？；])[”」』）]*|\n+")
_LIST_SIGN = re.compile(r"^(?:[-*•#>]+|\d{1,3}[.)、])\s*")
_DATA = frozenset("{[(<|")  # what begins like this was not said by anybody
_HAN = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile("[a-z']+")
_TELLING = re.compile(r"[\d_/@#$]+")  # signs of names, numbers and addresses


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DECIDED = _words(
    "decide decided decision chose choose chosen agreed agree instead must mustn't never always "
    "should shouldn't prefer preferred confirm confirmed require requires required only don't "
    "because important cannot ensure"
)
_OPEN = _words(
    "todo next remaining remains remain still pending yet unresolved waiting later need needs"
)
_TROUBLE = _words(
    "error errors exception fail fails failed failure traceback can't couldn't wrong bug fix fixed "
    "found cause solved passed works successful successfully"
)
_DECIDED_ZH = re.compile(
    "决定|选择|采用|必须|不要|不能|务必|应该|改为|同意|确认|要求|偏好|只能|因为|重要|一定"
)
_OPEN_ZH = re.compile("待办|下一步|接下来|还需|仍需|尚未|未完成|未解决|稍后|等待")
_TROUBLE_ZH = re.compile("错误|失败|异常|无法|原因|修复|发现|解决|成功|通过")
_FILLERS = (
    "sure", "ok", "thank", "great", "hello", "hi ", "hi!", "hi,", "of course", "certainly",
    "let me", "i'll", "i will", "i'm sorry", "sorry", "please let me know", "is there anything",
    "you're welcome", "got it", "perfect", "好的", "谢谢", "你好", "您好", "当然", "没问题", "让我",
    "不客气",
)  # fmt: skip

_APART = re.compile(r"[\s\u3000-\u303f\u4e00-\u9fff\uff00-\uffef\"'`()\[\]{}<>|;*=“”‘’]+")
# Of what stands between spaces: a sign that words do not have, a file, or letters with digits.
_NAME = re.compile(
    r"[^_/@#$]*[_/@#$].*|.*\w\.[A-Za-z]{1,5}|(?=.*[A-Za-z-])(?=.*\d).*|\d{5,}", re.DOTALL
)


class Remark(NamedTuple):
    """A sentence, what it is about, and how much of it will be needed, from about -2 to 4."""

    text: str
    is_decision: bool
    is_open: bool
    worth: float


def remarks_in(text: str) -> Iterator[Remark]:
    """Yield the sentences of a text, without code and stubs, none of them endless."""
    return map(_remark, sentences_of(text))


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a text as they are said."""
    for part in _END.split(_prose(text[:_LONGEST_TEXT])):
        sentence = _LIST_SIGN.sub("", " ".join(part[: 2 * _LONGEST_SENTENCE].split()))
        if sentence[:1] not in _DATA and _has_words(sentence):
            yield _cut(sentence, _LONGEST_SENTENCE)


def names_in(text: str) -> Counter[str]:
    """Return addresses, paths, ids, dates, amounts and the like, and how often they stand there."""
    names: Counter[str] = Counter()
    for token, times in Counter(_APART.split(text[:_LONGEST_TEXT])).items():
        name = token.strip(".,:!?-&~^%\\") if len(token) <= _LONGEST_NAME else ""
        if len(name) > 2 and not name.isalpha() and _NAME.fullmatch(name):
            names[name] += times
    return names


def is_chinese(text: str) -> bool:
    """Tell whether a text is Chinese rather than anything in Latin letters."""
    if text.isascii():
        return False
    return len(_HAN.findall(text)) > len(_WORD.findall(text.lower()))


def short(text: str, length: int) -> str:
    """Return a text on one line, cut where it is too long."""
    return _cut(" ".join(text.split()), length)


def _cut(line: str, length: int) -> str:
    return line if len(line) <= length else f"{line[: max(0, length - 1)].rstrip()}…"


def _prose(text: str) -> str:
    """Return a text without code and without stubs; most have neither."""
    if "```" in text:
        text = _CODE.sub("\n", text)
    return _STUB.sub("", text) if "left the context" in text else text


def _remark(sentence: str) -> Remark:
    low = sentence.lower()
    words = set(_WORD.findall(low))
    is_han = not sentence.isascii() and _HAN.search(sentence) is not None
    is_decision = bool(words & _DECIDED) or (is_han and bool(_DECIDED_ZH.search(sentence)))
    is_open = bool(words & _OPEN) or (is_han and bool(_OPEN_ZH.search(sentence)))
    is_trouble = bool(words & _TROUBLE) or (is_han and bool(_TROUBLE_ZH.search(sentence)))
    worth = 1.5 * is_decision + 1.0 * is_open + 0.8 * is_trouble
    worth += 0.25 * min(6, len(_TELLING.findall(sentence))) - 2.0 * low.startswith(_FILLERS)
    return Remark(sentence, is_decision, is_open, worth)


def _has_words(sentence: str) -> bool:
    if sentence.count(" ") + 1 >= _FEWEST_WORDS:
        return True
    return not sentence.isascii() and len(_HAN.findall(sentence)) >= _FEWEST_WORDS
