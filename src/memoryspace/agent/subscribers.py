"""The subscribers of an agent. They are referenced weakly, and each gets its own copy."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Iterator
from typing import Protocol

from ..message import Msg, thaw
from ..message.msg import peek_content

logger = logging.getLogger(__name__)


class Observer(Protocol):
    """An object that can observe messages, such as an agent."""

    id: str

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Receive messages."""


class Subscribers:
    """The observers of each hub, by weak reference. Iteration yields each observer once."""

    def __init__(self) -> None:
        self._by_hub: dict[str, list[weakref.ref[Observer]]] = {}

    def __iter__(self) -> Iterator[Observer]:
        observers = (each() for hub in [*self._by_hub.values()] for each in hub)
        alive = {id(each): each for each in observers if each is not None}
        return iter([*alive.values()])

    def __contains__(self, hub: str) -> bool:
        return hub in self._by_hub

    @property
    def hubs(self) -> list[str]:
        """The names of the hubs."""
        return [*self._by_hub]

    def reset(self, hub: str, observers: Iterable[Observer]) -> None:
        """Replace the observers of ``hub``."""
        self._by_hub[hub] = [weakref.ref(each) for each in observers]

    def remove(self, hub: str) -> None:
        """Remove the observers of ``hub``."""
        del self._by_hub[hub]

    def clear(self) -> None:
        """Remove all observers."""
        self._by_hub.clear()


async def publish(observers: Iterable[Observer], said: Msg | list[Msg]) -> list[Exception]:
    """Send messages to each observer, without thinking blocks; return the errors.

    An observer that fails does not affect the others.
    """
    messages = [each for each in (said if isinstance(said, list) else [said]) if _is_public(each)]
    if not messages:
        return []
    errors: list[Exception] = []
    try:
        for observer in observers:
            copies = [_public_copy(each) for each in messages]
            try:
                await observer.observe(copies if isinstance(said, list) else copies[0])
            except Exception as error:
                logger.warning("agent %r could not observe: %s", observer.id, type(error).__name__)
                errors.append(error)
        return errors
    finally:
        del errors  # an error refers to this frame: the two would keep each other alive


def _is_public(msg: Msg) -> bool:
    content = peek_content(msg)
    return isinstance(content, str) or not content or any(map(_is_public_block, content))


def _public_copy(msg: Msg) -> Msg:
    """Return a copy with the same id, without thinking blocks."""
    copy = thaw(msg)
    if not isinstance(copy.content, str):
        copy.content = [block for block in copy.content if _is_public_block(block)]
    return copy


def _is_public_block(block: object) -> bool:
    return not (isinstance(block, dict) and block.get("type") == "thinking")
