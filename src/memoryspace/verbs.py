"""``Observed``: a class whose public verbs are operations, without a line in any of them.

Stores and services inherit it, ours and others'. A verb that an object calls on itself, or that a
subclass hands on to its base, is part of the verb that was called, not one more.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .errors import InvalidInput
from .operations import Operation, around, operation
from .record import Scope

_Verb: TypeAlias = Callable[..., Any]
_Args: TypeAlias = tuple[Any, ...]
_Given: TypeAlias = Mapping[str, Any]  # by name

_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_AT_ONCE = "_now"  # ends the name of a verb that needs no event loop
_GIVEN = ("records", "messages", "memory_ids", "vectors", "places", "query")
_HELD = ("memories", "records", "users", "appended")  # what answers that are no lists hold


class Observed:
    """Something whose public coroutines, and what ends in ``_now``, are told as operations.

    ``operations`` is the first part of their names: the ``append`` of a ``store`` is
    ``store.append``, and so is its ``append_now``. They are told to ``events``, where it has that.
    """

    operations: ClassVar[str]
    if not TYPE_CHECKING:  # to a type checker it is what a subclass says
        events = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, verb in list(vars(cls).items()):
            if is_operation(name, verb):
                setattr(cls, name, _told(f"{cls.operations}.{name.removesuffix(_AT_ONCE)}", verb))


def is_operation(name: str, verb: object) -> bool:
    """Tell whether a member of a class is a verb that is told."""
    if name.startswith("_") or not inspect.isfunction(verb):
        return False
    if getattr(verb, "__isabstractmethod__", False):
        return False
    return inspect.iscoroutinefunction(verb) or name.endswith(_AT_ONCE)


def _told(name: str, verb: _Verb) -> _Verb:
    """Return a verb that is told where anybody listens, and else only calls the given one."""
    answers = verb.__annotations__.get("return") not in (None, "None")

    def begun(self: Any, given: _Given) -> Operation:
        on, scope = type(self).__name__, _scope(given)
        found = operation(name, on=on, scope=scope, events=self.events, owner=self)
        if found.is_told:
            _count_given(found, given)
        return found

    async def awaited(self: Any, given: _Given, args: _Args, options: _Given) -> Any:
        with begun(self, given) as found:
            answer = await verb(*args, **options)
            if answers and found.is_told:
                _count_answer(found, answer)
            return answer

    def done(self: Any, given: _Given, args: _Args, options: _Given) -> Any:
        with begun(self, given) as found:
            answer = verb(*args, **options)
            if answers and found.is_told:
                _count_answer(found, answer)
            return answer

    if not inspect.iscoroutinefunction(verb):
        return _with_parameters_of(verb, done)
    return _as_coroutine_function(_with_parameters_of(verb, awaited))


_SOURCE = """
def make(_verb_, _tell_, _around_):
    def told({parameters}):
        _events_ = {self}.events
        if _around_() is None and (_events_ is None or not _events_.has_listeners):
            return _verb_({passed})
        return _tell_({self}, {given}, {args}, {options})
    return told
"""


def _with_parameters_of(verb: _Verb, tell: _Verb) -> _Verb:
    """Return a function with the parameters of ``verb``, which calls it itself or by ``tell``.

    It is made from source, as dataclasses make theirs: handing on ``*args`` and ``**options`` takes
    four times as long, and this is done at every call that nobody listens to.
    """
    code = verb.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _STARS or code.co_posonlyargcount:
        return _with_any_parameters(verb, tell)
    told: _Verb = _maker(names, code.co_argcount)(verb, tell, around)
    functools.update_wrapper(told, verb)
    told.__defaults__, told.__kwdefaults__ = verb.__defaults__, verb.__kwdefaults__
    return told


def _with_any_parameters(verb: _Verb, tell: _Verb) -> _Verb:
    @functools.wraps(verb)
    def told(self: Any, *args: Any, **options: Any) -> Any:
        events = self.events
        if around() is None and (events is None or not events.has_listeners):
            return verb(self, *args, **options)
        return tell(self, options, (self, *args), options)

    return told


@functools.cache
def _maker(names: tuple[str, ...], by_place: int) -> _Verb:
    """Return what makes functions with these parameters, those after ``by_place`` by name only."""
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
    """Let those who ask know that calling it makes something to await."""
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


def _count_given(found: Operation, given: Mapping[str, Any]) -> None:
    for name in _GIVEN:
        if name in given:
            is_many = isinstance(given[name], list | tuple | set | frozenset)
            is_by_place = name == "vectors"
            found.count(given=len(given[name]) if is_many or is_by_place else 1)
            return


def _count_answer(found: Operation, answer: Any) -> None:
    size = _size(answer)
    if size is not None:
        found.count(returned=size)


def _size(answer: Any) -> int | None:
    """Return how much an answer is: a number, what it holds, one thing or none; else ``None``."""
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
