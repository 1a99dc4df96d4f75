"""Calling functions of every kind: plain or async, answering once or in a stream.

A plain function runs in a thread, so that it cannot hold up the event loop. When its call is
cancelled, the thread runs on to its end and what it answers is dropped: Python cannot stop it.
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
    """Call a function and yield whatever it answers, one thing or many."""
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
        else await asyncio.to_thread(_plainly, function, arguments)
    )
    return await answer if inspect.isawaitable(answer) else answer


def _plainly(function: AnyFunction, arguments: Mapping[str, Any]) -> Any:
    """Call a function in a thread, out of which no ``StopIteration`` may come.

    Asyncio cannot pass one on, and would wait for ever.
    """
    try:
        return function(**arguments)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


def _is_quick(function: AnyFunction) -> bool:
    """Whether calling it only makes a coroutine or a generator, and does nothing yet."""
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
        if not answers.gi_running:  # a cancelled call may still be in it, in its thread
            answers.close()
