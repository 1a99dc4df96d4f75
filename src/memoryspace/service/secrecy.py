"""Secrecy: what becomes of a memory that holds a secret.

It is kept and marked, kept with its secrets masked, or refused. Whichever it is, derivers get to
see it masked, so that no secret becomes a fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace as change

from ..errors import SecretRefused
from .forms import body_of, said_from, text_of
from .memory import RAW, SECRET, Memory
from .secrets.finding import MASK, anywhere, masked, secrets_in

Policy: TypeAlias = Literal["keep", "mask", "refuse"]

SECRETS = "secrets"  # the details that say which kinds of secrets a memory holds

_MOST_TOLD = 20  # secrets of one thing that are masked in its other parts as well

# What stands under these keys names things and says nothing.
_NAMING = frozenset(
    {"id", "role", "type", "kind", "object", "timestamp", "created_at", "invocation_id", "do", "by",
     "derived_from", "origin", "marks", "hash", "source"}
)  # fmt: skip


class Secrecy:
    """Applies one policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def applied(self, memories: Sequence[Memory]) -> list[Memory]:
        """Return memories as they may be stored; ``SecretRefused`` if some may not."""
        looked_at = [_looked_at(memory) for memory in memories]
        refused = {at: kinds for at, (kinds, _) in enumerate(looked_at) if kinds}
        if refused and self._policy == "refuse":
            raise _refusal(refused)
        return [
            self._settled(memory, kinds, hidden)
            for memory, (kinds, hidden) in zip(memories, looked_at, strict=True)
        ]

    def _settled(self, memory: Memory, kinds: Sequence[str], hidden: Memory) -> Memory:
        """What was derived is a fact, which holds no secret under any policy."""
        if kinds and (self._policy == "mask" or memory.kind != RAW):
            if _looked_at(hidden)[0]:
                raise SecretRefused(
                    f"a message holds a {kinds[0]} spread over its parts, which cannot be masked; "
                    "say it in one part, or leave it out"
                )
            return hidden
        return _marked(memory, kinds)


def without_secrets(memory: Memory) -> Memory:
    """Return a memory with a mask in the place of every secret."""
    return _looked_at(memory)[1]


def purged(data: Any) -> Any:
    """Return a copy of plain data with a mask in the place of every secret."""
    return _Purge().data(data)


def _looked_at(memory: Memory) -> tuple[list[str], Memory]:
    """Return which kinds of secrets a memory holds, and the memory without them."""
    purge = _Purge()
    text = purge.text(memory.text)
    title = None if memory.title is None else purge.text(memory.title)
    metadata = purge.data(memory.metadata)
    form, body = body_of(memory.value)
    body = purge.data(body)
    if not purge.kinds:
        return [], memory
    value = said_from(form, body)
    if memory.kind == RAW:
        text = text_of(value)
    hidden = change(memory, text=text, title=title, metadata=metadata, value=value)
    return sorted(purge.kinds), _marked(hidden, [])


def _marked(memory: Memory, kinds: Sequence[str]) -> Memory:
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
    """Masks the secrets in several pieces of one thing; one that was told is masked in all."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._told: set[str] = set()

    def text(self, text: str, *, name: str = "") -> str:
        """Return a text without secrets; ``name`` says what it is, if its key does."""
        lead = f"{name.replace('_', ' ')}: " if name else ""
        whole = lead + text
        found = secrets_in(whole)
        for each in found[: _MOST_TOLD - len(self._told)]:
            self._told.add(whole[each.start : each.end])
        self.kinds |= {each.kind for each in found}
        if found:
            whole = masked(whole)
            text = whole[len(lead) :] if whole.startswith(lead) else masked(text)
        return anywhere(self._told).sub(MASK, text) if self._told else text

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
