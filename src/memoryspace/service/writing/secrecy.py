"""Secrets in memories: keeps and marks, masks, or refuses a memory that holds one.

Under every policy, derivers see the memory masked, so that no secret becomes a fact.
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

SECRETS = "secrets"  # in the details: the kinds of secrets a memory holds

_MAX_KNOWN = 20  # secrets of one message that are masked in its other parts as well
_MIN_COMMON = 6  # characters, with a digit, from which a value is masked in other messages too

# The values of these keys are identifiers, not text.
_IDENTIFIERS = frozenset(
    {"id", "role", "type", "kind", "object", "timestamp", "created_at", "invocation_id", "do", "by",
     "derived_from", "origin", "marks", "hash", "source"}
)  # fmt: skip


class _Inspection(Struct, frozen=True):
    """A memory, its kinds of secrets, the memory with them masked, and their values.

    A distinctive value is also a secret in other messages of the same call, where no word
    identifies it as one.
    """

    memory: MemoryItem
    kinds: list[str]
    hidden: MemoryItem
    known: dict[str, str]


class Secrecy:
    """Applies one policy to memories."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def applied(self, memories: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Return memories as they may be stored; raise ``SecretRefused`` if some may not."""
        inspections = _inspected(memories)
        refused = {
            at: inspection.kinds for at, inspection in enumerate(inspections) if inspection.kinds
        }
        if refused and self._policy == "refuse":
            raise _refusal(refused)
        return [self._settled(inspection) for inspection in inspections]

    def _settled(self, inspection: _Inspection) -> MemoryItem:
        """Return the memory to store; a derived one is masked under every policy."""
        if not inspection.kinds or (self._policy == "keep" and inspection.memory.kind == RAW):
            return _marked(inspection.memory, inspection.kinds)
        if _inspect(inspection.hidden, {}).kinds:
            raise SecretRefused(
                f"a message holds a {inspection.kinds[0]} spread over its parts, which cannot be "
                "masked; put it into one part, or leave it out"
            )
        return inspection.hidden


def without_secrets(memories: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Return memories with every secret masked."""
    return [inspection.hidden for inspection in _inspected(memories)]


def purged(data: Any) -> Any:
    """Return a copy of plain data with every secret masked."""
    return _Masking({}).data(data)


def _inspected(memories: Sequence[MemoryItem]) -> list[_Inspection]:
    inspections = [_inspect(memory, {}) for memory in memories]
    common = {
        value: kind
        for inspection in inspections
        for value, kind in inspection.known.items()
        if len(value) >= _MIN_COMMON and any(map(str.isdigit, value))
    }
    if not any(inspection.known for inspection in inspections):
        return inspections
    return [
        _inspect(inspection.memory, {**inspection.known, **common}) for inspection in inspections
    ]


def _inspect(memory: MemoryItem, known: Mapping[str, str]) -> _Inspection:
    masking = _Masking(known)
    text = masking.text(memory.text)
    title = None if memory.title is None else masking.text(memory.title)
    metadata = masking.data(memory.metadata)
    form, body = body_of(memory.value)
    body = masking.data(body)
    if not masking.kinds:
        return _Inspection(memory, [], memory, {})
    value = said_from(form, body)
    text = text_of(value) if memory.kind == RAW else text
    hidden = change(memory, text=text, title=title, metadata=metadata, value=value)
    return _Inspection(memory, sorted(masking.kinds), _marked(hidden, []), masking.known)


def _marked(memory: MemoryItem, kinds: Sequence[str]) -> MemoryItem:
    """Return a memory whose mark and details name the kinds of secrets it holds, if any."""
    if kinds:
        details = {**memory.details, SECRETS: list(kinds)}
        return change(memory, marks=memory.marks | {SECRET}, details=details)
    if SECRET not in memory.marks:
        return memory
    details = {key: value for key, value in memory.details.items() if key != SECRETS}
    return change(memory, marks=memory.marks - {SECRET}, details=details)


def _refusal(refused: Mapping[int, Sequence[str]]) -> SecretRefused:
    found = (f"messages[{at}] holds a {', a '.join(kinds)}" for at, kinds in refused.items())
    return SecretRefused(
        f"{'; '.join(found)}. Nothing was stored: leave secrets out, or set secrets to 'mask' or "
        "'keep'",
        messages=tuple(refused),
    )


class _Masking:
    """Masks secrets in the parts of one message; a known value is masked in all of them."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.kinds: set[str] = set()
        self.known = dict(islice(known.items(), _MAX_KNOWN))

    def text(self, text: str, *, name: str = "") -> str:
        """Return a text with secrets masked; ``name`` is its key, which may identify one."""
        lead = f"{name.replace('_', ' ')}: " if name else ""
        whole = lead + text
        found = secrets_in(whole)
        for each in found[: _MAX_KNOWN - len(self.known)]:
            self.known[whole[each.start : each.end]] = each.kind
        self.kinds |= {each.kind for each in found}
        if found:
            whole = masked(whole)
            text = whole[len(lead) :] if whole.startswith(lead) else masked(text)
        return anywhere(self.known).sub(self._mask_known, text) if self.known else text

    def _mask_known(self, match: re.Match[str]) -> str:
        self.kinds.add(self.known[match[0]])
        return MASK

    def data(self, data: Any) -> Any:
        """Return a copy of plain data with secrets masked."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, Mapping):
            return {key: self._item(key, value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.data(each) for each in data]
        return data

    def _item(self, key: Any, value: Any) -> Any:
        if key in _IDENTIFIERS:
            return value
        if type(value) is int:
            said = str(value)
            clean = self.text(said, name=str(key))
            return value if clean == said else clean
        return self.text(value, name=str(key)) if isinstance(value, str) else self.data(value)
