"""Who hears what an agent says: kept weakly, told in turn, each with a copy of its own."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Iterator
from typing import Protocol

from ..message import Msg, thaw
from ..message.msg import peek_content

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """What can be told something."""

    id: str

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Take in what was said."""


class Subscribers:
    """The listeners of each hub. None is kept alive; each appears once, whatever its hubs."""

    def __init__(self) -> None:
        self._by_hub: dict[str, list[weakref.ref[Listener]]] = {}

    def __iter__(self) -> Iterator[Listener]:
        listeners = (each() for hub in [*self._by_hub.values()] for each in hub)
        alive = {id(each): each for each in listeners if each is not None}
        return iter([*alive.values()])

    def __contains__(self, hub: str) -> bool:
        return hub in self._by_hub

    @property
    def hubs(self) -> list[str]:
        """The hubs there are listeners of."""
        return [*self._by_hub]

    def reset(self, hub: str, listeners: Iterable[Listener]) -> None:
        """Let these, and no others, listen by way of ``hub``."""
        self._by_hub[hub] = [weakref.ref(each) for each in listeners]

    def remove(self, hub: str) -> None:
        """Forget the listeners of ``hub``."""
        del self._by_hub[hub]

    def clear(self) -> None:
        """Forget them all."""
        self._by_hub.clear()


async def tell(listeners: Iterable[Listener], said: Msg | list[Msg]) -> list[Exception]:
    """Tell each what was said, without what was only thought; return the errors there were.

    One that fails does not keep the others from hearing it.
    """
    messages = [each for each in (said if isinstance(said, list) else [said]) if _is_said(each)]
    if not messages:
        return []
    errors: list[Exception] = []
    try:
        for listener in listeners:
            copies = [_spoken(each) for each in messages]
            try:
                await listener.observe(copies if isinstance(said, list) else copies[0])
            except Exception as error:
                logger.warning("agent %r could not observe: %s", listener.id, type(error).__name__)
                errors.append(error)
        return errors
    finally:
        del errors  # an error knows this frame: the two would keep each other alive


def _is_said(msg: Msg) -> bool:
    content = peek_content(msg)
    return isinstance(content, str) or not content or any(map(_is_spoken, content))


def _spoken(msg: Msg) -> Msg:
    """Return a copy under the same id, without thinking blocks."""
    copy = thaw(msg)
    if not isinstance(copy.content, str):
        copy.content = [block for block in copy.content if _is_spoken(block)]
    return copy


def _is_spoken(block: object) -> bool:
    return not (isinstance(block, dict) and block.get("type") == "thinking")
