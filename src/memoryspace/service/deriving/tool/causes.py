"""Causes of failed tool calls: what their arguments share and those of good calls lack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

Arguments = Mapping[str, str]

_MOST = 0.8  # share of the failed calls that a cause must explain
_ENOUGH = 2  # successful calls needed for a comparison
_SHOWN = 3  # values shown

_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_WORD = re.compile(r"[a-z_]{3,}|[\u4e00-\u9fff]{2,}", re.IGNORECASE)
_SHAPES = (
    (re.compile(r"[A-Z]+"), "A"),
    (re.compile(r"[a-z]+"), "a"),
    (re.compile(r"[0-9]+"), "0"),
    (re.compile(r"[\u4e00-\u9fff]+"), "字"),
)


def cause_of(failed: Sequence[Arguments], worked: Sequence[Arguments]) -> str | None:
    """Return in a few words what goes with failures and with no success, if anything does."""
    if not failed or len(worked) < _ENOUGH:
        return None
    for find in (_missing, _extra, _same_value, _same_ending, _word_less, _other_shape):
        cause = next(find(failed, worked), None)
        if cause is not None:
            return cause
    return None


def _missing(failed: Sequence[Arguments], worked: Sequence[Arguments]) -> Iterator[str]:
    for name in _names(worked):
        if all(name in call for call in worked) and _mostly([name not in call for call in failed]):
            yield f"{name} was lacking: always give it"


def _extra(failed: Sequence[Arguments], worked: Sequence[Arguments]) -> Iterator[str]:
    for name in _names(failed):
        if all(name not in call for call in worked) and _mostly([name in call for call in failed]):
            yield f"{name} was given: leave it out"


def _same_value(failed: Sequence[Arguments], worked: Sequence[Arguments]) -> Iterator[str]:
    for name in _names(failed):
        good = {call.get(name) for call in worked}
        for value in dict.fromkeys(call[name] for call in failed if name in call):
            if value not in good and _mostly([call.get(name) == value for call in failed]):
                yield f"{name}={value}: avoid it"


def _same_ending(failed: Sequence[Arguments], worked: Sequence[Arguments]) -> Iterator[str]:
    for name in _names(failed):
        good = {_ending(call.get(name, "")) for call in worked}
        for ending in dict.fromkeys(_ending(call.get(name, "")) for call in failed):
            if ending in good or ending is None:
                continue
            if _mostly([_ending(call.get(name, "")) == ending for call in failed]):
                yield f"{name} ended in {ending}: avoid such ones"


def _other_shape(failed: Sequence[Arguments], worked: Sequence[Arguments]) -> Iterator[str]:
    for name in _names(failed):
        good = {_shape(call[name]) for call in worked if name in call}
        others = [name in call and _shape(call[name]) not in good for call in failed]
        if good and _mostly(others):
            wrong = dict.fromkeys(call[name] for call in failed if name in call)
            right = dict.fromkeys(call[name] for call in worked if name in call)
            told, better = _listed(name, wrong), _listed(name, right)
            yield f"wrong form of {name}: {told}; use the form of {better}"


def _word_less(failed: Sequence[Arguments], worked: Sequence[Arguments]) -> Iterator[str]:
    """Yield a word that most successful values have and no failed value has."""
    for name in _names(failed):
        bad = {word for call in failed for word in _words(call.get(name, ""))}
        good = [_words(call.get(name, "")) for call in worked]
        for word in dict.fromkeys(word for words in good for word in words if word not in bad):
            if sum(word in words for words in good) >= max(_ENOUGH, len(good) / 2):
                values = dict.fromkeys(call[name] for call in failed if name in call)
                yield f"{_listed(name, values)}: “{word}” was lacking"


def _mostly(found: Sequence[bool]) -> bool:
    return sum(found) >= _MOST * len(found)


def _names(calls: Sequence[Arguments]) -> list[str]:
    return list(dict.fromkeys(name for call in calls for name in call))


def _listed(name: str, values: Mapping[str, None]) -> str:
    return ", ".join(f"{name}={value}" for value in list(values)[:_SHOWN])


def _ending(value: str) -> str | None:
    found = _ENDING.search(value)
    return None if found is None else found[0].lower()


def _shape(value: str) -> str:
    """Return the shape of a value: "LIS" and "MUC" have the same, "Vienna" another."""
    for pattern, stands_for in _SHAPES:
        value = pattern.sub(stands_for, value)
    return value


def _words(value: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(value)]
