"""Filters: reads the dicts that callers pass into checked values. Unknown keys are errors.

{"top_k": 5, "role": "user", "since": "2024-05-01",
 "OR": [{"metadata": {"topic": "food"}}, {"metadata": {"stars": {"gte": 4}}}]}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from math import inf, nextafter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import InvalidInput
from ...record import RESERVED_PREFIX, as_marks, check_id, is_number
from ...retrieval import Only
from ...retrieval.conditions import ANYTHING, AllOf, AnyOf, Condition, Item, Not
from ..values.envelope import VALID_FROM, VALID_TO
from ..values.kinds import DERIVED, NO_MEMORIES, SUPERSEDED
from ..values.memory import QUARANTINED, RAW
from .arguments import check_relevance

MOST_HITS = 1000
DEFAULT_TOP_K = 100
DEFAULT_HITS = 10  # of ``search``, which returns hits rather than messages
DEFAULT_PAGE_SIZE = 10


class CheckedFilters(Struct, frozen=True, kw_only=True):
    """Filters as checked values: numbers in range, and conditions on memories."""

    top_k: int | None = None  # not given
    page_num: int = 1
    page_size: int = DEFAULT_PAGE_SIZE
    min_score: float | None = None
    neighbours: bool | None = None
    sessions: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    without: frozenset[str] = frozenset({QUARANTINED, SUPERSEDED})
    rest: Condition = ANYTHING  # all conditions besides sessions, kinds and ``without``
    foreign_kinds: frozenset[str] = frozenset()  # named anywhere, and not made by built-in derivers

    def check_kinds(self, announced: Collection[str] = ()) -> None:
        """Raise ``InvalidInput`` for kinds that no built-in or announced deriver makes."""
        for kind in sorted(self.foreign_kinds.difference(announced)):
            raise _unknown_kind(kind, (*_OWN_KINDS, *announced))

    def with_top_k(self, top_k: int | None, default: int = DEFAULT_TOP_K) -> CheckedFilters:
        """Return these filters with the number of hits from an argument, or from themselves."""
        if top_k is not None:
            count_in("top_k", top_k, MOST_HITS)
        if None not in (top_k, self.top_k) and top_k != self.top_k:
            raise InvalidInput(
                f"top_k is {top_k} as an argument and {self.top_k} in the filters; pass it once"
            )
        given = self.top_k if top_k is None else top_k
        return change(self, top_k=default if given is None else given)

    @property
    def hits(self) -> int:
        """The maximum number of hits."""
        return DEFAULT_TOP_K if self.top_k is None else self.top_k

    @property
    def is_plain(self) -> bool:
        """Whether there are no conditions besides sessions, kinds and ``without``."""
        return self.rest == ANYTHING

    def condition(self, kinds: Sequence[str]) -> Condition:
        """Return all conditions as one, limited to ``kinds`` if the filters name none."""
        parts: list[Condition] = [_any_of("kind", self.kinds if self.kinds is not None else kinds)]
        if self.sessions is not None:
            parts.append(_any_of("session", self.sessions))
        if self.without:
            parts.append(Only(without=self.without))
        if not self.is_plain:
            parts.append(self.rest)
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def read(filters: Mapping[str, Any] | None, *, also: Collection[str] = ()) -> CheckedFilters:
    """Check filters and return their values; ``also`` names the keys allowed besides conditions."""
    if filters is None:
        return CheckedFilters()
    try:
        return _checked(filters, also)
    except RecursionError:
        raise InvalidInput("the filters are nested too deeply; simplify them") from None


def _checked(filters: Mapping[str, Any], also: Collection[str]) -> CheckedFilters:
    given = _as_dict("filters", filters)
    _check_known(given, also)
    foreign = frozenset(_kinds_in(given)) - {*_OWN_KINDS}
    numbers = {name: _NUMBERS[name](given.pop(name)) for name in list(given) if name in _NUMBERS}
    sessions, kinds = given.pop("session_id", None), given.pop("kind", None)
    without = _left_out(given)
    return CheckedFilters(
        **numbers,
        sessions=None if sessions is None else _names("session_id", sessions),
        kinds=None if kinds is None else _kinds(kinds),
        without=without,
        rest=_conditions(given),
        foreign_kinds=foreign,
    )


def _check_known(given: Mapping[str, Any], also: Collection[str]) -> None:
    for name in given:
        if name in _NUMBERS and name not in also:
            raise InvalidInput(
                f"{name!r} is not a filter here; pass it as an argument if the method has it"
            )
        if name not in (*_CONDITIONS, *_NUMBERS, *_FLAGS):
            known = ", ".join(sorted([*_CONDITIONS, *also, *_FLAGS]))
            raise InvalidInput(f"unknown filter {name!r}; choose from {known}")


def _left_out(given: dict[str, Any]) -> frozenset[str]:
    """Return the marks to exclude: quarantined and superseded, unless requested."""
    left_out = {QUARANTINED, SUPERSEDED} - as_marks(given.get("marks"))
    if _flag("quarantined", given.pop("quarantined", False)):
        left_out.discard(QUARANTINED)
    if _flag("superseded", given.pop("superseded", "as_of" in given)):
        left_out.discard(SUPERSEDED)
    return frozenset(left_out) | as_marks(given.pop("without", None))


def _conditions(given: Mapping[str, Any]) -> Condition:
    parts = [_condition(name, value) for name, value in given.items()]
    return ANYTHING if not parts else parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _condition(name: str, value: Any) -> Condition:
    return _CONDITIONS[name](value)


def _group(value: Any) -> tuple[Condition, ...]:
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list | tuple) or not value:
        raise InvalidInput(f"AND, OR and NOT take a list of filters, got {value!r}")
    return tuple(_conditions(_nested(each)) for each in value)


def _nested(value: Any) -> dict[str, Any]:
    given = _as_dict("a filter inside AND, OR or NOT", value)
    wrong = [name for name in given if name in (*_NUMBERS, *_FLAGS)]
    if wrong:
        raise InvalidInput(f"{wrong[0]!r} belongs to the whole search, not inside AND, OR or NOT")
    _check_known(given, ())
    if not given:
        raise InvalidInput(
            "an empty filter inside AND, OR or NOT would match everything; leave it out"
        )
    return given


def _metadata(value: Any) -> Condition:
    parts: list[Condition] = []
    for key, wanted in _as_dict("metadata", value).items():
        comparisons = wanted if isinstance(wanted, Mapping) else {"eq": wanted}
        if not comparisons:
            raise InvalidInput(f"metadata {key!r} has no comparison; use for example gte")
        parts += [Item(_own_key(key), op, operand) for op, operand in comparisons.items()]
    if not parts:
        raise InvalidInput("the metadata filter is empty; leave it out")
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _own_key(key: Any) -> str:
    if not isinstance(key, str) or key.startswith(RESERVED_PREFIX):
        raise InvalidInput(f"{key!r} is not a valid metadata key")
    return key


def _as_of(value: Any) -> Condition:
    """Return the condition that a fact held, or a message was said, at that time."""
    when = moment("as_of", value)
    by_then = AllOf((Not(Item(VALID_FROM, "exists", True)), Only(until=nextafter(when, inf))))
    not_later = AnyOf((by_then, Item(VALID_FROM, "lte", when)))
    not_over = AnyOf((Not(Item(VALID_TO, "exists", True)), Item(VALID_TO, "gt", when)))
    return AllOf((not_later, not_over))


def _any_of(field: str, names: Sequence[str]) -> Condition:
    parts = tuple(Only(**{field: name}) for name in names)  # type: ignore[arg-type]  # its str fields
    return parts[0] if len(parts) == 1 else AnyOf(parts)


def _names(what: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple | set | frozenset) or not names:
        raise InvalidInput(f"{what} must be a name or a list of names, got {value!r}")
    return tuple(dict.fromkeys(check_id(what, name) for name in names))


def _kinds(value: Any) -> tuple[str, ...]:
    kinds = _names("kind", value)
    for kind in kinds:
        if kind in NO_MEMORIES:
            raise _unknown_kind(kind, _OWN_KINDS)
    return kinds


def _kinds_in(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield every kind that filters name, including nested ones."""
    if given.get("kind") is not None:
        yield from _kinds(given["kind"])
    for name in ("AND", "OR", "NOT"):
        inner = given.get(name, ())
        for each in (inner,) if isinstance(inner, Mapping) else inner:
            if isinstance(each, Mapping):
                yield from _kinds_in(each)


def _unknown_kind(kind: str, known: Collection[str]) -> InvalidInput:
    kinds = sorted({*known})
    meant = [RAW] if kind in _SAID else get_close_matches(kind, kinds, 1)
    what = ", ".join(f"{RAW!r} (messages)" if each == RAW else repr(each) for each in kinds)
    hint = f"; did you mean {meant[0]!r}?" if meant else "."
    return InvalidInput(f"{kind!r} is not a kind of memory{hint} Choose from {what}")


def moment(what: str, value: Any) -> float:
    """Return a time in seconds from seconds, a ``datetime`` or ISO text; naive ones are UTC."""
    if is_number(value):
        return float(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise InvalidInput(
                f"{what} must be a time such as 2024-05-01T12:00, got {value!r}"
            ) from error
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what} must be seconds, a datetime or ISO text, got {value!r}")
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def count_in(what: str, value: Any, most: int) -> int:
    """Return a whole number from 1 to ``most``."""
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidInput(f"{what} must be a whole number from 1 to {most}, got {value!r}")
    return value


def _score(value: Any) -> float:
    return check_relevance(value, "min_score")


def _flag(what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be True or False, got {value!r}")
    return value


def _as_dict(what: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must be a dict, got {type(value).__name__}")
    return dict(value)


_NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "top_k": lambda value: count_in("top_k", value, MOST_HITS),
    "page_num": lambda value: count_in("page_num", value, 2**31),
    "page_size": lambda value: count_in("page_size", value, MOST_HITS),
    "min_score": _score,
    "neighbours": lambda value: _flag("neighbours", value),
}
_FLAGS = ("quarantined", "superseded")

_OWN_KINDS = (RAW, *DERIVED)
_SAID = frozenset({"raw", "message", "messages", "memories", "said", "turn", "turns", "text"})

FOR_SEARCH = ("top_k", "min_score", "neighbours")
FOR_LIST = ("page_num", "page_size")

_CONDITIONS: Mapping[str, Callable[[Any], Condition]] = {
    "AND": lambda value: AllOf(_group(value)),
    "OR": lambda value: AnyOf(_group(value)),
    "NOT": lambda value: Not(AnyOf(_group(value))),
    "session_id": lambda value: _any_of("session", _names("session_id", value)),
    "kind": lambda value: _any_of("kind", _kinds(value)),
    "role": lambda value: _any_of("role", _names("role", value)),
    "name": lambda value: _any_of("speaker", _names("name", value)),
    "marks": lambda value: Only(marks=as_marks(value)),
    "without": lambda value: Only(without=as_marks(value)),
    "since": lambda value: Only(since=moment("since", value)),
    "until": lambda value: Only(until=moment("until", value)),
    "as_of": _as_of,
    "metadata": _metadata,
}
