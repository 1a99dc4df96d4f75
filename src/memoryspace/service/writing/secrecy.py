"""Secrecy: what becomes of a memory that holds a secret.

It is kept and marked, kept with its secrets masked, or refused. Whichever it is, derivers get to
see it masked, so that no secret becomes a fact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import SecretRefused
from ..secrets.finding import MASK, anywhere, masked, secrets_in
from ..values.forms import body_of, said_from, text_of
from ..values.memory import RAW, SECRET, MemoryItem

Policy: TypeAlias = Literal["keep", "mask", "refuse"]

SECRETS = "secrets"  # the details that say which kinds of secrets a memory holds

_MOST_TOLD = 20  # secrets of one thing that are masked in its other parts as well
_LEAST_COMMON = 6  # characters, with a digit, from which a value is one in other messages too

# What stands under these keys names things and says nothing.
_NAMING = frozenset(
    {"id", "role", "type", "kind", "object", "timestamp", "created_at", "invocation_id", "do", "by",
     "derived_from", "origin", "marks", "hash", "source"}
)  # fmt: skip


class _Look(Struct, frozen=True):
    """A memory, the kinds of secrets in it, and what it is without them; ``told`` are their values.

    A value that could be nothing else is a secret in other messages of the same call too, where no
    word gives it away.
    """

    memory: MemoryItem
    kinds: list[str]
    hidden: MemoryItem
    told: dict[str, str]


class Secrecy:
    """Applies one policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def applied(self, memories: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Return memories as they may be stored; ``SecretRefused`` if some may not."""
        looks = _looks(memories)
        refused = {at: look.kinds for at, look in enumerate(looks) if look.kinds}
        if refused and self._policy == "refuse":
            raise _refusal(refused)
        return [self._settled(look) for look in looks]

    def _settled(self, look: _Look) -> MemoryItem:
        """What was derived is a fact, which holds no secret under any policy."""
        if not look.kinds or (self._policy == "keep" and look.memory.kind == RAW):
            return _marked(look.memory, look.kinds)
        if _look(look.hidden, {}).kinds:
            raise SecretRefused(
                f"a message holds a {look.kinds[0]} spread over its parts, which cannot be masked; "
                "say it in one part, or leave it out"
            )
        return look.hidden


def without_secrets(memories: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Return memories with a mask in the place of every secret."""
    return [look.hidden for look in _looks(memories)]


def purged(data: Any) -> Any:
    """Return a copy of plain data with a mask in the place of every secret."""
    return _Purge({}).data(data)


def _looks(memories: Sequence[MemoryItem]) -> list[_Look]:
    looks = [_look(memory, {}) for memory in memories]
    common = {
        value: kind
        for look in looks
        for value, kind in look.told.items()
        if len(value) >= _LEAST_COMMON and any(map(str.isdigit, value))
    }
    if not any(look.told for look in looks):
        return looks
    return [_look(look.memory, {**look.told, **common}) for look in looks]


def _look(memory: MemoryItem, told: Mapping[str, str]) -> _Look:
    purge = _Purge(told)
    text = purge.text(memory.text)
    title = None if memory.title is None else purge.text(memory.title)
    metadata = purge.data(memory.metadata)
    form, body = body_of(memory.value)
    body = purge.data(body)
    if not purge.kinds:
        return _Look(memory, [], memory, {})
    value = said_from(form, body)
    text = text_of(value) if memory.kind == RAW else text
    hidden = change(memory, text=text, title=title, metadata=metadata, value=value)
    return _Look(memory, sorted(purge.kinds), _marked(hidden, []), purge.told)


def _marked(memory: MemoryItem, kinds: Sequence[str]) -> MemoryItem:
    """Return a memory whose mark and details say which secrets it holds; none, if it holds none."""
    if kinds:
        details = {**memory.details, SECRETS: list(kinds)}
        return change(memory, marks=memory.marks | {SECRET}, details=details)
    if SECRET not in memory.marks:
        return memory
    details = {key: value for key, value in memory.details.items() if key != SECRETS}
    return change(memory, marks=memory.marks - {SECRET}, details=details)


def _refusal(refused: Mapping[int, Sequence[str]]) -> SecretRefused:
    told = (f"messages[{at}] holds a {', a '.join(kinds)}" for at, kinds in refused.items())
    return SecretRefused(
        f"{'; '.join(told)}. Nothing was stored: leave secrets out, or set secrets to 'mask' or "
        "'keep'",
        messages=tuple(refused),
    )


class _Purge:
    """Masks the secrets in several pieces of one thing; a value that was told, in all of them."""

    def __init__(self, told: Mapping[str, str]) -> None:
        self.kinds: set[str] = set()
        self.told = dict(islice(told.items(), _MOST_TOLD))

    def text(self, text: str, *, name: str = "") -> str:
        """Return a text without secrets; ``name`` says what it is, if its key does."""
        lead = f"{name.replace('_', ' ')}: " if name else ""
        whole = lead + text
        found = secrets_in(whole)
        for each in found[: _MOST_TOLD - len(self.told)]:
            self.told[whole[each.start : each.end]] = each.kind
        self.kinds |= {each.kind for each in found}
        if found:
            whole = masked(whole)
            text = whole[len(lead) :] if whole.startswith(lead) else masked(text)
        return anywhere(self.told).sub(self._noted, text) if self.told else text

    def _noted(self, match: re.Match[str]) -> str:
        self.kinds.add(self.told[match[0]])
        return MASK

    def data(self, data: Any) -> Any:
        """Return a copy of plain data without secrets."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, Mapping):
            return {key: self._item(key, value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.data(each) for each in data]
        return data

    def _item(self, key: Any, value: Any) -> Any:
        if key in _NAMING:
            return value
        if type(value) is int:
            said = str(value)
            clean = self.text(said, name=str(key))
            return value if clean == said else clean
        return self.text(value, name=str(key)) if isinstance(value, str) else self.data(value)
