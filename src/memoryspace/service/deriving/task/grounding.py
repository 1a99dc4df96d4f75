"""Grounding: keeps only those claims of a model that are found in the runs or calls."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace as change

from ....retrieval.text.analysis import tokens
from ....retrieval.text.stopwords import STOP_WORDS
from .rules import Lesson

_LEAST = 0.5  # share of a claim's words that its sources must have

_SENTENCE = re.compile(r"(?<=[.!?。！？;；])\s*")
_SPECIFIC = re.compile(  # quotations, numbers and identifiers
    r"`[^`]+`|\"[^\"]+\"|“[^”]+”|\b\w*\d\w*\b|\b\w+(?:[_./-]\w+)+\b|\b[a-z]+[A-Z]\w*\b"
)


class Sources:
    """The texts that a model's claims must be grounded in."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(texts).casefold()
        self._words = frozenset(tokens(self._text))

    def grounded(self, lesson: Lesson) -> Lesson | None:
        """Return a lesson with only its grounded claims; ``None`` if there are none."""
        claims = [claim for claim in _SENTENCE.split(lesson.lesson) if self.has(claim)]
        if not claims:
            return None
        tools = tuple(tool for tool in lesson.tools if tool.casefold() in self._text)
        return change(lesson, lesson=" ".join(claims), tools=tools)

    def lacks_a_name_of(self, claim: str) -> bool:
        """Return whether a claim has a name, number or quotation that the sources lack."""
        named = (each.strip('`"“”').casefold() for each in _SPECIFIC.findall(claim))
        return any(each not in self._text for each in named)

    def has(self, claim: str) -> bool:
        """Return whether a claim is grounded: no foreign names, and enough common words."""
        if self.lacks_a_name_of(claim):
            return False
        words = [word for word in tokens(claim) if word not in STOP_WORDS]
        found = sum(word in self._words for word in words)
        return bool(words) and found >= _LEAST * len(words)
