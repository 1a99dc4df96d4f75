"""A count of live agents, memories, their hooks and queues, tasks, threads and open files."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...module import StateModule
from ..base import AgentBase
from ..hooks import Hookable

Kinds: TypeAlias = tuple[type[Any], ...]
STATEFUL: Kinds = (StateModule,)  # agents, memories, toolkits and other stateful objects

_OPEN_FILES = "/proc/self/fd"
_POOL = "asyncio_"  # threads of an event loop's executor, which stay


@dataclass(frozen=True)
class Census:
    """One count. It keeps none of the counted objects alive, except tasks and threads."""

    things: dict[int, weakref.ref[Any]]
    ties: Counter[str]
    tasks: frozenset[asyncio.Task[Any]]
    threads: frozenset[threading.Thread]
    files: Counter[str]

    def knew(self, thing: object) -> bool:
        """Return whether this very object was counted; its id alone may have been reused."""
        known = self.things.get(id(thing))
        return known is not None and known() is thing


def count(kinds: Kinds) -> Census:
    """Count the live objects of these classes, and everything else in a census."""
    things = living(kinds)
    return Census(
        {id(each): weakref.ref(each) for each in things},
        Counter(_ties()),
        frozenset(asyncio.all_tasks()),
        frozenset(each for each in threading.enumerate() if not each.name.startswith(_POOL)),
        Counter(_open_files()),
    )


def living(kinds: Kinds) -> list[Any]:
    """Return all objects of these classes that the garbage collector tracks."""
    return [each for each in gc.get_objects() if issubclass(type(each), kinds)]


def full_name(kind: type[Any]) -> str:
    """Return the qualified name of a class, with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _ties() -> Iterator[str]:
    """Yield what is attached to agents and their classes: hooks, subscribers, queues."""
    for kind in _classes(Hookable):
        yield from _hooks(f"class {full_name(kind)}", kind._class_hooks)
    for agent in living((AgentBase,)):
        if "_subscribers" not in agent.__dict__:
            continue  # its constructor failed
        who = f"agent {full_name(type(agent))}"
        yield from _hooks(who, agent._instance_hooks)
        yield from (f"subscribers of hub {hub!r} of {who}" for hub in agent._subscribers.hubs)
        if agent.msg_queue is not None:
            yield f"queue of {who}"


def _hooks(who: str, hooks: dict[str, dict[str, Any]]) -> Iterator[str]:
    for hook_type, named in hooks.items():
        yield from (f"{hook_type} hook {name!r} of {who}" for name in named)


def _classes(root: type[Any]) -> Iterator[type[Any]]:
    yield root
    for each in root.__subclasses__():
        yield from _classes(each)


def _open_files() -> Iterator[str]:
    """Yield the targets of the open file descriptors, where the system provides them."""
    if not os.path.isdir(_OPEN_FILES):
        return
    for number in os.listdir(_OPEN_FILES):
        try:
            yield os.readlink(f"{_OPEN_FILES}/{number}")
        except OSError:  # the descriptor of the listing itself is closed by now
            continue
