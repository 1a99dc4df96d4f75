"""Reads a message clause by clause: whom each is about, which matters it touches, what changed.

A clause without a subject has the subject of the clause before it; the first one is about the
speaker. "He" and "she" refer to the person mentioned last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..text.analysis import tokens
from ..text.quotations import as_told
from ..text.stopwords import STOP_WORDS
from .cues import changes_in, supposes
from .matters import kin_matters, matters_in
from .people import RELATIONS, USER, names_in, relations_in

_READ = 2000  # characters of a message that are read; later ones are seldom about a person
_MOST = 40  # clauses

_BREAK = re.compile(
    r"(?<=[.!?…])[\"”')]*\s+|[。！？；，,;:：\n]+\s*|\s+[-–—]+\s+|"
    r"\s+(?=(?:but|because|bc|cause|cos|while|though|although|whereas)\b)|"
    r"\s+(?=(?:and|so|then)\s+(?:i|im|i'm|i've|my|we|he|she|they|it)\b)|\s+(?=[但而])",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"(?<=\d)[,.](?=\d)")
_OPENING = re.compile(
    r"^(?:(?:and|but|so|then|also|oh|ok|okay|well|yes|yeah|ya|nah|no|btw|lol|haha|anyway|plus|because|bc|"
    r"cause|now|actually|honestly|tbh|update|hi|hey|hiya|hello|morning|yo|thx|thanks|ty|finally|today|"
    r"yesterday|n|for the record|by the way|fyi|just so you know|in fact|"
    r"speaking of which)[,!:]*\s+|"
    r"(?:而且|所以|但是?|不过|对了|哦对?|还有|然后|其实|另外|今天|现在|最近|后来|因为|唉|哈哈)\s*)+",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"^(?:i|im|i['’]m|ive|i['’]ve|id|i['’]d|ill|i['’]ll|we|we['’]re|we['’]ve|me)\b|^(?:我|咱|俺|本人)",
    re.IGNORECASE,
)
_OURS = re.compile(r"^(?:my|our)\b|^(?:我|我们|咱|俺)(?:家|的)?", re.IGNORECASE)
_SOMEBODY = re.compile(
    r"^(?:he|she|they|hes|shes|he['’]s|she['’]s|they['’]re|his|her|hers|him)\b|^[他她伊佢]",
    re.IGNORECASE,
)
_WHO = re.compile(r"^(?:who|whose|whom)\b", re.IGNORECASE)  # goes on about the last one named
# A capitalised word before one of these is a verb without "I" rather than a name.
_NO_VERB = re.compile(
    r"(?:an?|the|my|our|your|his|her|this|that|it|him|them|some|out|up|off|to|for|into|from|with|about)\b",
    re.IGNORECASE,
)
_HEAD = 28  # characters for "my brother Callum"
_HEAD_IDEOGRAPHS = 5
_START = 14
_BORDERLESS = re.compile("[\u4e00-\u9fff]")
OTHER = "other"  # an unknown person


class MessageClause(NamedTuple):
    """A clause of a message: its subjects, the people it names; matters and changes as bits."""

    about: frozenset[str]
    names: frozenset[str]
    matters: int
    changes: int
    is_supposed: bool
    words: frozenset[str]
    kin: int = 0  # matters that "my husband" tells of the user: that there is one


class MessageReading(NamedTuple):
    """The clauses of a message, and what they have in sum."""

    clauses: tuple[MessageClause, ...] = ()
    words: frozenset[str] = frozenset()
    changes: int = 0
    matters: int = 0
    own_matters: int = 0  # those of clauses about the user, and that they have a husband or a dog
    names: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()  # named or the subject of a clause
    own: float = 0.0  # from -1, every clause about others, to 1, about the user
    last: frozenset[str] = frozenset()  # whom "she" means afterwards; empty if that is unchanged
    is_supposed: bool = False  # in part
    called: tuple[tuple[frozenset[str], str], ...] = ()  # relations with a name in the same clause


def read(text: str, before: Callable[[], frozenset[str]] = frozenset) -> MessageReading:
    """Read a message; ``before`` returns who was mentioned before it, and is called if needed."""
    text = as_told(text[:_READ])
    is_supposed = supposes(text)
    clauses: list[MessageClause] = []
    about, last = frozenset({USER}), frozenset[str]()
    for part in _BREAK.split(_DECIMAL.sub("·", text)):
        said = part.strip(" \"“”'") if part else ""
        if len(said) < 2 or len(clauses) == _MOST:
            continue
        names = relations_in(said) | names_in(said)
        if clauses and clauses[-1].names and _WHO.match(said):
            about = clauses[-1].names
        about = _subject(_OPENING.sub("", said), about, lambda: last or before())  # noqa: B023  # called at once
        if about - {USER, OTHER}:
            last = about
        words = telling_words(said)
        clauses.append(
            MessageClause(
                about,
                names,
                matters_in(said, words),
                changes_in(said),
                is_supposed and supposes(said),
                words,
                _kin(_OPENING.sub("", said)),
            )
        )
    return _whole(tuple(clauses))


def telling_words(text: str) -> frozenset[str]:
    """Return the stems of a text without stop words: the words that say what it is about."""
    return frozenset(word for word in tokens(text) if _is_telling(word))


def _is_telling(word: str) -> bool:
    if len(word) < 2 or word in STOP_WORDS:
        return False
    is_pair = len(word) == 2 and _BORDERLESS.match(word) is not None
    return not is_pair or (word[0] not in STOP_WORDS and word[1] not in STOP_WORDS)


def _subject(
    said: str, before: frozenset[str], last: Callable[[], frozenset[str]]
) -> frozenset[str]:
    """Return the subjects of a clause."""
    is_borderless = _BORDERLESS.match(said) is not None
    if _OURS.match(said):
        theirs = _relative(said, is_borderless)
        if theirs:
            return theirs
    if _SPEAKER.match(said):
        return frozenset({USER})
    if _SOMEBODY.match(said):
        return last() or frozenset({OTHER})
    first = names_in(said[:3] if is_borderless else _first_word(said))
    found = relations_in(said[:_START]) | first
    return found if found else before


def _first_word(said: str) -> str:
    """Return the first word if it may be the subject: not "Sold" in "Sold the car"."""
    first, _, rest = said.partition(" ")
    return "" if _NO_VERB.match(rest) else first


def _relative(said: str, is_borderless: bool) -> frozenset[str]:
    """Return the people meant by "my brother Callum" or 我弟弟 at the beginning of a clause."""
    if is_borderless:
        return relations_in(said[:_HEAD_IDEOGRAPHS])
    head = said[:_HEAD]
    relations = relations_in(head)
    if relations:
        return relations | names_in(head[2:])
    return names_in(head.partition(" ")[2].partition(" ")[0])  # not in "my name is Sam"


def _kin(said: str) -> int:
    """Return the matters of the relation in "my husband Tom", but not in "my husband's boss"."""
    if not _OURS.match(said):
        return 0
    is_borderless = _BORDERLESS.match(said) is not None
    head = said[:_HEAD_IDEOGRAPHS] if is_borderless else said[:_HEAD].partition("'s ")[0]
    return kin_matters(relations_in(head))


def _whole(clauses: tuple[MessageClause, ...]) -> MessageReading:
    """Return the reading that clauses add up to."""
    if not clauses:
        return MessageReading()
    names = frozenset().union(*(each.names for each in clauses))
    return MessageReading(
        clauses,
        frozenset().union(*(each.words for each in clauses)),
        _joined(each.changes for each in clauses),
        _joined(each.matters for each in clauses),
        _joined(each.matters if USER in each.about else each.kin for each in clauses),
        names,
        names.union(*(each.about for each in clauses)),
        sum(1 if USER in each.about else -1 for each in clauses) / len(clauses),
        next(filter(None, map(_spoken_of, reversed(clauses))), frozenset()),
        any(each.is_supposed for each in clauses),
        tuple(filter(None, map(_called, clauses))),
    )


def _spoken_of(clause: MessageClause) -> frozenset[str]:
    """Return whom "she" means after a clause, if it mentions anybody."""
    return clause.about - {USER, OTHER} or clause.names


def _called(clause: MessageClause) -> tuple[frozenset[str], str] | None:
    """Return the relations in a clause with the name in it, if there is exactly one."""
    relations, names = clause.names & RELATIONS, clause.names - RELATIONS
    return (relations, next(iter(names))) if relations and len(names) == 1 else None


def _joined(signs: Iterable[int]) -> int:
    found = 0
    for each in signs:
        found |= each
    return found
