"""Grounding: of what a model says of runs or calls, what can be found in them is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace as change

from ....retrieval.text.analysis import tokens
from ....retrieval.text.stopwords import STOP_WORDS
from .rules import Lesson

_LEAST = 0.5  # share of a claim's words that its sources must have

_SENTENCE = re.compile(r"(?<=[.!?。！？;；])\s*")
_SPECIFIC = re.compile(  # what is quoted, numbers, and names as programs have them
    r"`[^`]+`|\"[^\"]+\"|“[^”]+”|\b\w*\d\w*\b|\b\w+(?:[_./-]\w+)+\b|\b[a-z]+[A-Z]\w*\b"
)


class Sources:
    """The words of the runs that a lesson is about."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(texts).casefold()
        self._words = frozenset(tokens(self._text))

    def grounded(self, lesson: Lesson) -> Lesson | None:
        """Return a lesson with those of its claims that are found; ``None`` if none is."""
        claims = [claim for claim in _SENTENCE.split(lesson.lesson) if self.has(claim)]
        if not claims:
            return None
        tools = tuple(tool for tool in lesson.tools if tool.casefold() in self._text)
        return change(lesson, lesson=" ".join(claims), tools=tools)

    def lacks_a_name_of(self, claim: str) -> bool:
        """Tell whether a claim names something, a number or a quotation, that is not there."""
        named = (each.strip('`"“”').casefold() for each in _SPECIFIC.findall(claim))
        return any(each not in self._text for each in named)

    def has(self, claim: str) -> bool:
        """Tell whether a claim names nothing that is not there, and is about what is."""
        if self.lacks_a_name_of(claim):
            return False
        words = [word for word in tokens(claim) if word not in STOP_WORDS]
        found = sum(word in self._words for word in words)
        return bool(words) and found >= _LEAST * len(words)
