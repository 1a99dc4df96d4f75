"""Quotations of other people's words, in which "I" is not the writer.

``Tom said 'I hate my job'`` says nothing about the writer's job. Writers' quotations of themselves
("I told her 'I'm a vegan'") count as their own words, and so does a text that is in quotation marks
as a whole.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(
    r"“[^”]+”|「[^」]+」|『[^』]+』|‘[^’\n]+’(?!\w)|\"[^\"]+\""
    r"|(?<!\w)'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w))+(?<=\S)'(?!\w)"
)
_FIRST_PERSON = re.compile(r"\b(?:i|im|ive|me|my|mine|we|our|us)\b|[我咱俺]", re.IGNORECASE)
_OWN_WORDS = re.compile(
    r"\b(?:i|we)(?:['’]\w+| have| had| just| always| also)*"
    r" (?:said|say|told|tell|wrote|answered|replied|texted)\b[^.!?]*$"
    r"|我[^，。！？]{0,4}[说讲回][^。！？]*$",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    r"(?:\b(?:says?|said|saying|tells?|told|goes|went|like|ask(?:s|ed)?|wr[io]tes?|texted|replied|repl(?:y|ies)"
    r"|yell(?:s|ed)|shout(?:s|ed)|joke[sd]?|quot\w+|reads?|moans?|moaned|announced)\b[^.!?]{0,40}|:\s*)$"
    r"|[说讲问喊道回写叫：][^。！？]{0,6}$",
    re.IGNORECASE,
)
_SAID_AFTER = re.compile(
    r"\W{0,2}(?:(?:he|she|they|my \w+|[A-Z]\w+) )?(?:says?|said|wrote|told|goes|asked)\b"
)
_OF_OTHERS = {
    "i": "they", "im": "they're", "ive": "they've", "me": "them", "my": "their", "mine": "theirs",
    "we": "they", "our": "their", "us": "them", "我": "他", "咱": "他", "俺": "他",
}  # fmt: skip


def without_quotations(text: str) -> str:
    """Return a text without its quotations of others."""
    return _QUOTED.sub(lambda match: " " if _is_of_others(match) else match.group(), text)


def as_told(text: str) -> str:
    """Return a text with quotations of others in the third person: "they hate their job"."""
    return _QUOTED.sub(
        lambda match: _told(match.group()) if _is_of_others(match) else match.group(), text
    )


def _told(quoted: str) -> str:
    return _FIRST_PERSON.sub(lambda match: _OF_OTHERS[match.group().lower()], quoted)


def _is_of_others(match: re.Match[str]) -> bool:
    before, after = match.string[: match.start()], match.string[match.end() :]
    is_all = not any(map(str.isalnum, before + after))
    is_said = _SAID_BEFORE.search(before) is not None or _SAID_AFTER.match(after) is not None
    is_own = _OWN_WORDS.search(before) is not None
    is_of_others = is_said and not is_own and not is_all
    return is_of_others and _FIRST_PERSON.search(match.group()) is not None
