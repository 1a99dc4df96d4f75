"""English and Chinese sentences: splitting, rating, and finding names and numbers.

Ratings come from word lookups, so all of it is fast.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .reasons import Reason, is_question, reason_for

_LONGEST_TEXT = 8000  # characters of one text that are read
_LONGEST_SENTENCE = 240
_LONGEST_NAME = 120
_FEWEST_WORDS = 3  # or Chinese characters
_WEAK = 1.0  # up to this worth, a polite phrase is not kept
_WORTH_OF_DETAIL, _MOST_DETAILS = 0.25, 4  # together no more than a weak reason

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_STUB = re.compile(r"^\[[^\n]*left the context[^\n]*\]$", re.MULTILINE)
_END = re.compile(
    r"(?<=[.!?…])[\"”')\]]*\s+(?=[^a-z])|(?<=[。！？；])[”」』）]*|\n+"
    r"|(?<=[!?])\s+|(?<=[a-z]{3}[.])\s+"  # many users never type a capital
)
_TELLING = re.compile(r"[\d_/@#$]+")  # characters of names, numbers and addresses
_LIST_SIGN = re.compile(r"^(?:[-*•#>]+|\d{1,3}[.)、])\s*")
_DATA = frozenset("{[<|")  # first characters of data
_PLAIN = re.compile(r"(?<!\S)[(\"'“‘*`]*[^\W\d_]+(?:['’-][^\W\d_]+)*[.,:;!?)\"'”’…*`]*(?!\S)")
_LOGGED = re.compile(r"\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d|[A-Z]{4,8}(?::[\w.]+:| +\[| +\d)")
_PROGRAM = re.compile(
    r".*[{}]$|[\w.]+\(.*\)[;:]?$|[\w.]+ [+-]?= "
    r"|(?:def|class) \w.*:$|import [\w.]+$|from \S+ import "
)
_HAN = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile("[a-z']+")
_GREETING = re.compile(
    r"\W*(?:(?:h(?:i+|ello|ey+|iya)(?:\s+(?:there|all))?|good (?:morning|evening|afternoon))\b"
    r"|[你您]好[啊呀]?|哈[喽啰]|早上好|晚上好)[,.!，。！~\s]*",
    re.IGNORECASE,
)
_FILLERS = (
    "sure", "ok", "thank", "great", "hello", "hi ", "hi!", "hi,", "of course", "certainly",
    "let me", "i'll", "i will", "i'm sorry", "sorry", "please let me know", "is there anything",
    "you're welcome", "got it", "perfect", "好的", "谢谢", "你好", "您好", "当然", "没问题", "让我",
    "不客气",
)  # fmt: skip

_APART = re.compile(r"[\s\u3000-\u303f\u4e00-\u9fff\uff00-\uffef\"'`()\[\]{}<>|;*=“”‘’]+")
# Tokens with a character that words do not have, file names, or letters with digits.
_NAME = re.compile(
    r"[^_/@#$]*[_/@#$].*|.*\w\.[A-Za-z]{1,5}|(?=.*[A-Za-z-])(?=.*\d).*|\d{5,}", re.DOTALL
)


class RatedSentence(NamedTuple):
    """A sentence with the reason to keep it and its worth, from about -2 to 5."""

    text: str
    reason: Reason | None
    worth: float
    is_question: bool


def rated_sentences(text: str) -> Iterator[RatedSentence]:
    """Yield the rated sentences of a text, without code and stubs, long ones cut."""
    return map(rated, sentences_of(text))


def rated(sentence: str) -> RatedSentence:
    """Return a sentence with its rating."""
    reason = reason_for(sentence)
    worth = reason.worth if reason is not None else 0.0
    if worth <= _WEAK and sentence.lower().startswith(_FILLERS):
        worth -= 2.0
    details = min(_MOST_DETAILS, len(_TELLING.findall(sentence)))
    return RatedSentence(
        sentence, reason, worth + _WORTH_OF_DETAIL * details, is_question(sentence)
    )


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a text."""
    for part in _END.split(_prose(text[:_LONGEST_TEXT])):
        line = " ".join(part[: 2 * _LONGEST_SENTENCE].split())
        sentence = without_greeting(_LIST_SIGN.sub("", line))
        if _has_words(sentence) and not is_data(sentence):
            yield _cut(sentence, _LONGEST_SENTENCE)


def names_in(text: str) -> Counter[str]:
    """Return addresses, paths, ids, dates, amounts and the like, with their counts."""
    names: Counter[str] = Counter()
    for token, times in Counter(_APART.split(text[:_LONGEST_TEXT])).items():
        name = token.strip(".,:!?-&~^%\\") if len(token) <= _LONGEST_NAME else ""
        if len(name) > 2 and not name.isalpha() and _NAME.fullmatch(name):
            names[name] += times
    return names


def split_data(text: str) -> tuple[str, str]:
    """Split a text into lines of prose and lines of pasted data."""
    lines: tuple[list[str], list[str]] = ([], [])
    for line in text[:_LONGEST_TEXT].split("\n"):
        lines[is_data(line.strip())].append(line)
    return "\n".join(lines[0]), "\n".join(lines[1])


def is_data(line: str) -> bool:
    """Return whether a line belongs to a table, a log or a program."""
    if line[:1] in _DATA or line.count("|") > 1 or _LOGGED.match(line) or _PROGRAM.match(line):
        return True
    words = line.split()
    if 3 * sum(map(str.isalpha, words)) >= len(words):  # the most frequent case, checked fast
        return False
    return 3 * len(_PLAIN.findall(line)) < len(words) and not _HAN.search(line)


def without_greeting(text: str) -> str:
    """Return a text without a greeting at its beginning."""
    greeting = _GREETING.match(text)
    return text[greeting.end() :] if greeting else text


def is_chinese(text: str) -> bool:
    """Return whether a text has more Chinese characters than Latin words."""
    if text.isascii():
        return False
    return len(_HAN.findall(text)) > len(_WORD.findall(text.lower()))


def shortened(text: str, length: int) -> str:
    """Return a text on one line, cut to ``length`` characters."""
    return _cut(" ".join(text.split()), length)


def _cut(line: str, length: int) -> str:
    return line if len(line) <= length else f"{line[: max(0, length - 1)].rstrip()}…"


def _prose(text: str) -> str:
    """Return a text without code and stubs."""
    if "```" in text:
        text = _CODE.sub("\n", text)
    return _STUB.sub("", text) if "left the context" in text else text


def _has_words(sentence: str) -> bool:
    if sentence.count(" ") + 1 >= _FEWEST_WORDS:
        return True
    return not sentence.isascii() and len(_HAN.findall(sentence)) >= _FEWEST_WORDS
