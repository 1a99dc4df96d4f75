"""What the door returns beside the values of services: results that print as small tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from msgspec import Struct, field

from ..errors import InvalidInput
from ..portable import Portable, portable
from ..service.values.kinds import FACT, SUPERSEDED
from ..service.values.memory import RAW, MemoryItem
from ..service.values.results import Deleted, Erasure, MemoryHit, Status
from ..showing import day, table
from ..store.users import Usage

What = Literal["added", "removed", "changed", "ended", "holds again"]

_HIT_WIDTHS = (5, 60, 10, 12, 40)
_MEMORY_WIDTHS = (36, 70, 10, 12, 16)  # ids are whole: they are copied from here
_CHANGE_WIDTHS = (11, 16, 60, 60)
_SHOWN_FIGURES = (
    "address", "backend", "is_durable", "embedder", "search", "version", "space", "user",
    "memories", "facts", "quarantined", "usage", "status",
)  # fmt: skip
_REASONS = 2  # signals named in a table


class SearchResult(list[MemoryHit]):
    """The hits of a search, best first. Prints as a table.

    Attributes:
        question: What was asked.
        recall_id: Names this search in the recall log; pass it to ``feedback``.
    """

    def __init__(self, hits: Iterable[MemoryHit], *, question: str, recall_id: str) -> None:
        super().__init__(hits)
        self.question = question
        self.recall_id = recall_id

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the memories found."""
        return tuple(hit.memory.id for hit in self)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the memories found."""
        return tuple(hit.memory.text for hit in self)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON types."""
        hits = [hit.to_dict() for hit in self]
        return {"question": self.question, "recall_id": self.recall_id, "hits": hits}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the result that ``to_dict`` wrote."""
        try:
            hits = map(MemoryHit.from_dict, data["hits"])
            return cls(hits, question=data["question"], recall_id=data["recall_id"])
        except KeyError as error:
            raise InvalidInput(f"not a valid SearchResult: {error} is missing") from None

    def __repr__(self) -> str:
        if not self:
            return f"nothing found for {self.question!r}"
        heads = ("score", "text", "when", "who", "why")
        return table(heads, [_row(hit) for hit in self], _HIT_WIDTHS)

    __str__ = __repr__


class Memories(list[MemoryItem]):
    """Memories in order. Prints as a table.

    Attributes:
        cursor: Pass it on for the next page; ``None`` if there is none.
    """

    def __init__(self, memories: Iterable[MemoryItem] = (), *, cursor: str | None = None) -> None:
        super().__init__(memories)
        self.cursor = cursor

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the memories."""
        return tuple(each.id for each in self)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the memories."""
        return tuple(each.text for each in self)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON types."""
        return {"memories": [each.to_dict() for each in self], "cursor": self.cursor}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the memories that ``to_dict`` wrote."""
        try:
            return cls(map(MemoryItem.from_dict, data["memories"]), cursor=data["cursor"])
        except KeyError as error:
            raise InvalidInput(f"not valid Memories: {error} is missing") from None

    def __repr__(self) -> str:
        if not self:
            return "no memories"
        heads = ("id", "text", "when", "who", "")
        return table(heads, [_memory_row(each) for each in self], _MEMORY_WIDTHS)

    __str__ = __repr__


class Erased(Portable, frozen=True):
    """What an erasure of a user deleted, and what was found left. True if nothing is left.

    Attributes:
        deleted: What was deleted.
        left: What a search of the store and the index afterwards found.
    """

    deleted: Deleted
    left: Erasure

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON types."""
        return {"deleted": self.deleted.to_dict(), "left": self.left.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the erasure that ``to_dict`` wrote."""
        try:
            return cls(Deleted.from_dict(data["deleted"]), Erasure.from_dict(data["left"]))
        except KeyError as error:
            raise InvalidInput(f"not a valid Erased: {error} is missing") from None

    def __bool__(self) -> bool:
        return bool(self.left)


class Moment(Portable, frozen=True):
    """A moment of a memory space, to go back to.

    Attributes:
        lsn: The number of the last change it includes.
        time: When that was, in seconds since the epoch.
    """

    lsn: int
    time: float


class MemoryChange(Portable, frozen=True):
    """A memory that differs between two moments.

    Attributes:
        user: Whose it is.
        session: The conversation it is in.
        id: Its id.
        kind: Its kind.
        before: Its text at the earlier moment; ``None`` if it was not there.
        after: Its text at the later moment; ``None`` if it is not there.
        what: What happened to it: it was ``added``, ``removed`` or ``changed``; or it ``ended``,
            because something that was said later contradicts it, or ``holds again``.
    """

    user: str
    session: str
    id: str
    kind: str
    before: str | None
    after: str | None
    what: What


class Diff(list[MemoryChange]):
    """What changed between two moments. Prints as a table."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON types."""
        return {"changes": [each.to_dict() for each in self]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the changes that ``to_dict`` wrote."""
        try:
            return cls(map(MemoryChange.from_dict, data["changes"]))
        except KeyError as error:
            raise InvalidInput(f"not a valid Diff: {error} is missing") from None

    def __repr__(self) -> str:
        if not self:
            return "nothing changed"
        rows = [(each.what, each.user, each.before or "", each.after or "") for each in self]
        return table(("what", "user", "before", "after"), rows, _CHANGE_WIDTHS)

    __str__ = __repr__


class Garbage(Portable, frozen=True):
    """An object that a collection would free.

    Attributes:
        id: The object.
        reason: Why it would be freed.
        collector: Which collector would free it.
        size: How many bytes it takes.
    """

    id: str
    reason: str
    collector: str
    size: int


class Collected(Portable, frozen=True):
    """What a garbage collection freed, or would free.

    Attributes:
        freed: How many objects were freed.
        freed_bytes: How many bytes they took.
        reasons: How many were freed for each reason.
        longest_pause: The longest slice of the collection, in seconds.
        duration: All slices together, in seconds.
        garbage: What would be freed, if the collection was only explained.
    """

    freed: int = 0
    freed_bytes: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    longest_pause: float = 0.0
    duration: float = 0.0
    garbage: tuple[Garbage, ...] = ()


class Context(Portable, frozen=True):
    """Text to put into a prompt. ``str(context)`` is the text; an empty one is false.

    Attributes:
        text: Memories, quoted as data; "" if nothing is relevant.
        ids: The ids of the memories in the text, in order.
        tokens: How many tokens the text has.
        recall_id: Names this recall in the log; pass it to ``feedback``.
        left_out: How many relevant memories did not fit.
    """

    text: str
    ids: tuple[str, ...]
    tokens: int
    recall_id: str
    left_out: int = 0

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


class Stats(Portable, frozen=True):
    """What a memory stands on, and how much it holds of one user.

    Attributes:
        version: The version of the package.
        address: Where the memory is, without a password.
        backend: The kind of store.
        is_durable: Whether acknowledged writes survive a crash; ``None`` if only the server knows.
        embedder: Which embedder is in use; without one, searches go by words alone.
        search: Where searches run.
        space: The figures of the memory space, if the memory is in one.
        user: The user whose figures follow; ``None`` if none was named.
        memories: How many messages are remembered.
        facts: How many facts hold now.
        quarantined: How many messages are held back.
        usage: What the user stores, in records, sessions and bytes.
        status: What is still being derived, or failed.
    """

    version: str
    address: str
    backend: str
    is_durable: bool | None
    embedder: str | None
    search: str
    space: dict[str, float] | None = None
    user: str | None = None
    memories: int = 0
    facts: int = 0
    quarantined: int = 0
    usage: Usage | None = None
    status: Status | None = None

    def __str__(self) -> str:
        rows = [(name.replace("_", " "), _figure(getattr(self, name))) for name in _SHOWN_FIGURES]
        return table(("", ""), [row for row in rows if row[1]], (12, 90)).lstrip()

    __repr__ = __str__


def who_said(memory: MemoryItem) -> str:
    """Return who said a memory, or what kind of derived memory it is."""
    if memory.kind != RAW:
        return memory.kind
    return memory.name or memory.role or ""


def _memory_row(memory: MemoryItem) -> tuple[str, ...]:
    note = "no longer true" if SUPERSEDED in memory.marks else ""
    return memory.id, memory.text, day(memory.created_at), who_said(memory), note


def _figure(value: object) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_short(each)}" for name, each in value.items())
    return _short(value)


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Struct):
        return str(portable(value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _row(hit: MemoryHit) -> tuple[str, ...]:
    memory = hit.memory
    return f"{hit.score:.2f}", memory.text, day(memory.created_at), who_said(memory), _why(hit)


def _why(hit: MemoryHit) -> str:
    if not hit.holds:
        return "no longer true"
    known = [fact.text for fact in hit.facts if fact.valid_to is None and fact.kind == FACT]
    if known:
        return f"known: {known[0]}"
    if hit.why is None:
        return ""
    signals = sorted(hit.why.signals.items(), key=lambda item: -item[1])
    return ", ".join(name for name, worth in signals[:_REASONS] if worth > 0)
