"""Sentence splitting shared by the English and Chinese rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LONGEST_TEXT = 20_000  # characters read of one message
_LONGEST_SENTENCE = 400  # anything longer was pasted rather than said

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_CITED = re.compile(r"^\s*>.*$", re.MULTILINE)
# Quoted speech: text in quotes that contains "I" or "you", or follows a verb of saying.
_SPEECH = re.compile(
    r"[\"“][^\"”\n]*\b(?:i|i'm|im|me|my|we|you|your|u)\b[^\"”\n]*[\"”]"
    r"|“[^”\n]*[我咱你您][^”\n]*”|「[^」\n]*[我你][^」\n]*」"
    r"|(?<=[,:：，说道问讲话喊])\s*[\"“][^\"”\n]{6,}[\"”]|\"[^\"\n]*[我咱你您][^\"\n]*\"",
    re.IGNORECASE,
)
# A dot does not end a sentence after a title or an initial, nor in "e.g." and "p.m. today".
_END = re.compile(
    r"(?<![\s(][A-Z]\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bMrs\.)(?<!\bvs\.)"
    r"(?<!e\.g\.)(?<!i\.e\.)(?<!\betc\.)(?<!\b[ap]\.m\.)(?<=[.!?…])[\"”')\]]*\s+"
    r"|(?<=[.!?])(?=[A-Z][a-z]+\s)|(?<=[。！？；;!?~～])[”」』）]*|\n+"
)
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]+")
_QUESTION = re.compile(
    r"(?:,|;|\s-|\.\.\.)\s*(?:(?:so|and|but|now)\s)?(?=(?:what|how|who|whom|which|where|when|why"
    r"|can|"
    r"could|would|will|do|does|did|is|are|am|was|were|have|has|had|should|shall|may|any|got|know|"
    r"right|isn't|don't|won't|haven't)\b)|[，,；;]",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？][\"”')」』）\]\s!！~～.。:)]*$")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with its closing punctuation.

    Code, quoted lines, quoted speech and overlong sentences are skipped.
    """
    plain = _CITED.sub("", _CODE.sub(" ", text[:_LONGEST_TEXT])).replace("’", "'")
    for part in _END.split(_SPEECH.sub('"…"', plain)):
        sentence = " ".join(part.split())
        if 0 < len(sentence) <= _LONGEST_SENTENCE:
            yield sentence


def word_set(text: str) -> frozenset[str]:
    """Return the words of a whitespace-separated table."""
    return frozenset(text.split())


def is_chinese(text: str) -> bool:
    """Return whether a text is Chinese rather than English."""
    return len(_HAN.findall(text)) > len(_LATIN.findall(text))


def stated_part(sentence: str) -> str:
    """Return a sentence without its trailing question.

    "I don't eat meat, what can I cook?" becomes "I don't eat meat". A plain question becomes "".
    """
    if _ASKS.search(sentence) is None:
        return sentence
    asked = [match.start() for match in _QUESTION.finditer(sentence)]
    return sentence[: asked[-1]] if asked else ""
