"""Finds what keeps an object alive; described by names and types, never by content."""

from __future__ import annotations

import gc
import sys
from collections import deque
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from .census import full_name

# Containers without a name: report their holder instead.
_NAMELESS = (dict, list, tuple, set, frozenset, deque, CellType, MethodType)
_WORDS = {CellType: "closure", MethodType: "bound method"}
_DEEPEST = 4  # a closure is a cell in a tuple in a function, which may be in a dict


def keepers_of(thing: Any, found_in: list[list[Any]]) -> list[str]:
    """Return descriptions of what refers to ``thing``, apart from the lists in ``found_in``."""
    ignored = {id(each) for each in found_in}
    return [*dict.fromkeys(_holders(thing, ignored, _DEEPEST) + _variables(thing))]


def _variables(thing: Any) -> list[str]:
    """Return the variables of running functions, which the collector may not track."""
    found = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        found += _named(frame, thing)
        frame = frame.f_back
    return found


# The search must not find itself: it has no closures, and ignores its own lists by id.


def _holders(thing: Any, ignored: set[int], depth: int) -> list[str]:
    """Return the holders of ``thing``, through up to ``depth`` nameless containers."""
    referrers = gc.get_referrers(thing)
    ignored = {*ignored, id(referrers), id(thing)}
    found = []
    for each in referrers:
        if id(each) not in ignored:
            found += _described(each, thing, ignored, depth)
    return found


def _described(holder: Any, thing: Any, ignored: set[int], depth: int) -> list[str]:
    if isinstance(holder, dict) and (owners := _owners(holder, thing)):
        return owners
    if not isinstance(holder, _NAMELESS):
        return _named(holder, thing)
    kind = _WORDS.get(type(holder), type(holder).__name__)
    further = _holders(holder, ignored, depth - 1) if depth else []
    return [f"{kind} in {each}" for each in further] or [f"a {kind}"]


def _owners(attributes: dict[Any, Any], thing: Any) -> list[str]:
    """Return the owner of a namespace: a module, a class, an object or a running function."""
    for each in gc.get_referrers(attributes):
        if isinstance(each, FrameType):
            return _named(each, thing)
        if isinstance(each, ModuleType) and vars(each) is attributes:
            return [f"{_key(attributes, thing)!r} of module {each.__name__}"]
        if isinstance(each, type) and _key(dict(vars(each)), thing) is not None:
            return [f"{_key(attributes, thing)!r} of class {full_name(each)}"]
        if getattr(each, "__dict__", None) is attributes:
            return [f"{_key(attributes, thing)!r} of {full_name(type(each))}"]
    return []


def _named(holder: Any, thing: Any) -> list[str]:
    """Return the name under which a function, coroutine or object holds ``thing``."""
    if isinstance(holder, FunctionType):
        return [f"function {holder.__qualname__}"]
    frame = _frame(holder)
    if frame is None:
        key = _key(getattr(holder, "__dict__", {}), thing)
        return [
            f"{full_name(type(holder))}" if key is None else f"{key!r} of {full_name(type(holder))}"
        ]
    if frame.f_globals.get("__package__") == __package__:
        return []
    key = _key(frame.f_locals, thing)
    return [] if key is None else [f"variable {key!r} of {frame.f_code.co_qualname}"]


def _frame(holder: Any) -> FrameType | None:
    if isinstance(holder, FrameType):
        return holder
    if isinstance(holder, CoroutineType):
        return holder.cr_frame
    if isinstance(holder, GeneratorType):
        return holder.gi_frame
    return holder.ag_frame if isinstance(holder, AsyncGeneratorType) else None


def _key(named: dict[Any, Any], thing: Any) -> Any:
    return next((key for key, value in [*named.items()] if value is thing), None)
