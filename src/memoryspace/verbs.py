"""``Observed``: a base class that reports public methods as operations, with no code in them.

Stores and services inherit it. A method that an object calls on itself, or that a subclass passes
on to its base class, is part of the method that was called, not a separate operation.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .errors import InvalidInput
from .operations import Operation, current_context, operation
from .record import Scope

_Verb: TypeAlias = Callable[..., Any]
_Args: TypeAlias = tuple[Any, ...]
_Given: TypeAlias = Mapping[str, Any]  # arguments by name

_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_SYNC = "_now"  # ends the name of a method that needs no event loop
_GIVEN = ("records", "messages", "memory_ids", "vectors", "places", "query")
_HELD = ("memories", "records", "users", "appended")  # attributes of results that are not lists


class Observed:
    """An object whose public coroutines, and methods ending in ``_now``, are operations.

    ``operations`` is the prefix of their names: both ``append`` and ``append_now`` of a ``store``
    are reported as ``store.append``. They are reported to the object's ``events``, if it has any.
    """

    operations: ClassVar[str]
    if not TYPE_CHECKING:  # type checkers use the declaration of the subclass
        events = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, verb in list(vars(cls).items()):
            if is_operation(name, verb):
                setattr(cls, name, _reported(f"{cls.operations}.{name.removesuffix(_SYNC)}", verb))


def is_operation(name: str, verb: object) -> bool:
    """Return whether a class member is a method that is reported."""
    if name.startswith("_") or not inspect.isfunction(verb):
        return False
    if getattr(verb, "__isabstractmethod__", False):
        return False
    return inspect.iscoroutinefunction(verb) or name.endswith(_SYNC)


def _reported(name: str, verb: _Verb) -> _Verb:
    """Return a method that is reported if there is a listener, and else only calls ``verb``."""
    answers = verb.__annotations__.get("return") not in (None, "None")

    def begun(self: Any, given: _Given) -> Operation:
        on, scope = type(self).__name__, _scope(given)
        started = operation(name, on=on, scope=scope, events=self.events, owner=self)
        if started.is_reported:
            _count_given(started, given)
        return started

    async def awaited(self: Any, given: _Given, args: _Args, options: _Given) -> Any:
        with begun(self, given) as running:
            answer = await verb(*args, **options)
            if answers and running.is_reported:
                _count_answer(running, answer)
            return answer

    def done(self: Any, given: _Given, args: _Args, options: _Given) -> Any:
        with begun(self, given) as running:
            answer = verb(*args, **options)
            if answers and running.is_reported:
                _count_answer(running, answer)
            return answer

    if not inspect.iscoroutinefunction(verb):
        return _with_parameters_of(verb, done)
    return _as_coroutine_function(_with_parameters_of(verb, awaited))


_SOURCE = """
def make(_verb_, _report_, _context_):
    def wrapped({parameters}):
        _events_ = {self}.events
        if _context_() is None and (_events_ is None or not _events_.has_listeners):
            return _verb_({passed})
        return _report_({self}, {given}, {args}, {options})
    return wrapped
"""


def _with_parameters_of(verb: _Verb, report: _Verb) -> _Verb:
    """Return a function with the parameters of ``verb`` that calls it directly or by ``report``.

    It is compiled from source, as dataclasses do: passing on ``*args`` and ``**options`` takes four
    times as long, and every call without a listener would pay for it.
    """
    code = verb.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _STARS or code.co_posonlyargcount:
        return _with_any_parameters(verb, report)
    wrapped: _Verb = _maker(names, code.co_argcount)(verb, report, current_context)
    functools.update_wrapper(wrapped, verb)
    wrapped.__defaults__, wrapped.__kwdefaults__ = verb.__defaults__, verb.__kwdefaults__
    return wrapped


def _with_any_parameters(verb: _Verb, report: _Verb) -> _Verb:
    @functools.wraps(verb)
    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        events = self.events
        if current_context() is None and (events is None or not events.has_listeners):
            return verb(self, *args, **options)
        return report(self, options, (self, *args), options)

    return wrapped


@functools.cache
def _maker(names: tuple[str, ...], by_place: int) -> _Verb:
    """Return a factory of functions with these parameters, keyword-only after ``by_place``."""
    first, last = names[:by_place], names[by_place:]
    source = _SOURCE.format(
        self=first[0],
        parameters=", ".join([*first, *(["*"] if last else []), *last]),
        passed=", ".join([*first, *(f"{each}={each}" for each in last)]),
        given="{" + ", ".join(f"{each!r}: {each}" for each in names[1:]) + "}",
        args=f"({', '.join(first)},)",
        options="{" + ", ".join(f"{each!r}: {each}" for each in last) + "}",
    )
    namespace: dict[str, Any] = {}
    exec(compile(source, "<operation>", "exec"), namespace)
    maker: _Verb = namespace["make"]
    return maker


def _as_coroutine_function(function: _Verb) -> _Verb:
    """Mark a function so that ``inspect.iscoroutinefunction`` returns True."""
    mark = getattr(inspect, "markcoroutinefunction", None)  # from Python 3.12 on
    if mark is not None:
        marked: _Verb = mark(function)
        return marked
    function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]  # before 3.12
    return function


def _scope(given: Mapping[str, Any]) -> Scope | None:
    scope = given.get("scope")
    if isinstance(scope, Scope):
        return scope
    user = given.get("user_id", given.get("user"))
    try:
        return None if user is None else Scope(user, given.get("session_id"))
    except (InvalidInput, TypeError):
        return None


def _count_given(running: Operation, given: Mapping[str, Any]) -> None:
    for name in _GIVEN:
        if name in given:
            is_many = isinstance(given[name], list | tuple | set | frozenset)
            is_by_place = name == "vectors"
            running.count(given=len(given[name]) if is_many or is_by_place else 1)
            return


def _count_answer(running: Operation, answer: Any) -> None:
    size = _size(answer)
    if size is not None:
        running.count(returned=size)


def _size(answer: Any) -> int | None:
    """Return the size of a result: a number, its length, 1 or 0; ``None`` where it has no size."""
    if isinstance(answer, bool) or type(answer) is tuple:
        return None
    if isinstance(answer, int):
        return answer
    if answer is None or isinstance(answer, Sized):
        return 0 if answer is None else len(answer)
    for name in _HELD:
        held = getattr(answer, name, None)
        if isinstance(held, list | tuple):
            return len(held)
    return 1
