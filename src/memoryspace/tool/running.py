"""Calls functions of every kind: synchronous or async, returning once or yielding a stream.

A synchronous function runs in a thread, so it does not block the event loop. If its call is
cancelled, the thread runs to its end and the result is dropped: Python cannot stop a thread.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import GeneratorType
from typing import Any

from .signatures import AnyFunction, inner

_END = object()


async def answers_of(
    function: AnyFunction, arguments: Mapping[str, Any]
) -> AsyncGenerator[Any, None]:
    """Call a function and yield its result, or each of its results."""
    answer = await _called(function, arguments)
    if inspect.isasyncgen(answer):
        async with aclosing(answer):
            async for each in answer:
                yield each
    elif inspect.isgenerator(answer):
        async with aclosing(_in_thread(answer)) as answers:
            async for each in answers:
                yield each
    else:
        yield answer


async def _called(function: AnyFunction, arguments: Mapping[str, Any]) -> Any:
    answer = (
        function(**arguments)
        if _is_quick(function)
        else await asyncio.to_thread(_call_in_thread, function, arguments)
    )
    return await answer if inspect.isawaitable(answer) else answer


def _call_in_thread(function: AnyFunction, arguments: Mapping[str, Any]) -> Any:
    """Call a function and convert ``StopIteration``.

    Asyncio cannot pass a ``StopIteration`` out of a thread and would wait forever.
    """
    try:
        return function(**arguments)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


def _is_quick(function: AnyFunction) -> bool:
    """Return whether a call only creates a coroutine or a generator, without running it."""
    called = inner(function)
    if not inspect.isroutine(called):
        called = type(called).__call__
    return (
        inspect.iscoroutinefunction(called)
        or inspect.isasyncgenfunction(called)
        or inspect.isgeneratorfunction(called)
    )


async def _in_thread(answers: GeneratorType[Any, Any, Any]) -> AsyncGenerator[Any, None]:
    try:
        while (each := await asyncio.to_thread(next, answers, _END)) is not _END:
            yield each
    finally:
        if not answers.gi_running:  # a cancelled call may still be running in its thread
            answers.close()
