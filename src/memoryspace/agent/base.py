"""``AgentBase``: what every agent is. AgentScope v1's shape.

An agent answers (``await agent(msg)`` runs ``reply``), listens (``observe``) and shows what it does
(``print``). It may be called several times at once. A plain agent is in no reference cycle: it is
gone when the last reference to it goes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import Coroutine, Iterable, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

from ..message import AudioBlock, Msg, new_id, thaw
from ..module import StateModule
from .calls import Call
from .hooks import Hookable
from .printing import Console
from .subscribers import Subscribers, tell

logger = logging.getLogger(__name__)

QUEUE_SIZE = 100
SILENCING = ("MEMORYSPACE_DISABLE_CONSOLE_OUTPUT", "AGENTSCOPE_DISABLE_CONSOLE_OUTPUT")


class AgentBase(StateModule, Hookable):
    """An agent: implement ``reply``, ``observe`` and, to be interruptible, ``handle_interrupt``.

    ``print`` writes to the console, unless that is turned off here or by setting the environment's
    ``MEMORYSPACE_DISABLE_CONSOLE_OUTPUT`` to ``true``, and into ``msg_queue`` where one is enabled.
    """

    supported_hook_types: ClassVar[Sequence[str]] = (
        "pre_reply",
        "post_reply",
        "pre_print",
        "post_print",
        "pre_observe",
        "post_observe",
    )

    msg_queue: asyncio.Queue[Any] | None

    def __init__(self) -> None:
        super().__init__()
        self.id = new_id()
        self.msg_queue = None
        self._instance_hooks = {}
        # Held by their coroutines: one that is thrown away unawaited takes its call with it.
        self._calls: WeakValueDictionary[str, Call] = WeakValueDictionary()
        self._subscribers = Subscribers()
        self._console = Console()
        self._disable_console_output = _is_silenced()

    # Any arguments here and below: what an agent is asked with is its own affair.
    async def reply(self, *args: Any, **kwargs: Any) -> Any:
        """Answer. To be implemented."""
        raise NotImplementedError(f"{type(self).__name__} must implement reply()")

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Take in what others said, without answering. To be implemented."""
        raise NotImplementedError(f"{type(self).__name__} must implement observe()")

    async def handle_interrupt(self, *args: Any, **kwargs: Any) -> Any:
        """Answer instead of a reply that the user interrupted; gets the reply's arguments."""
        raise NotImplementedError(f"{type(self).__name__} must implement handle_interrupt()")

    # Not async itself: a call can be interrupted from when it is made, not from its first step.
    def __call__(self, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Reply, and let the subscribers hear the reply.

        After ``interrupt()`` the answer is what ``handle_interrupt`` says. Any other cancellation,
        such as that of ``asyncio.timeout``, goes on to the caller. A subscriber that cannot observe
        is logged; the reply stands.
        """
        call = Call()
        self._calls[call.id] = call
        return self._answer(call, args, kwargs)

    async def interrupt(self, msg: Msg | list[Msg] | None = None) -> None:
        """Interrupt every reply of this agent that is under way; none under way is no error.

        Each goes on in ``handle_interrupt``. ``msg`` is the argument of the ``CancelledError`` that
        the replies see. A call that was made and has not taken its first step goes straight to
        ``handle_interrupt``. May be called from another thread's loop.
        """
        for call in self._made():
            call.interrupt(msg)

    async def print(
        self, msg: Msg, last: bool = True, speech: AudioBlock | list[AudioBlock] | None = None
    ) -> None:
        """Show a message, or while it grows what is new in it; ``last`` says it is complete.

        The queue gets ``(copy of msg, last, speech)``; a full one makes this wait for a reader.
        Speech is not played.
        """
        if self.msg_queue is not None:
            await self.msg_queue.put((thaw(msg), last, speech))
            await asyncio.sleep(0)  # so that a reader sees it now
        if not self._disable_console_output:
            self._console.show(msg, last)

    def set_msg_queue_enabled(self, enabled: bool, queue: asyncio.Queue[Any] | None = None) -> None:
        """Put what is printed into a queue: the one given, or else one of 100 places."""
        if not enabled:
            self.msg_queue = None
        elif queue is not None:
            self.msg_queue = queue
        elif self.msg_queue is None:
            self.msg_queue = asyncio.Queue(maxsize=QUEUE_SIZE)

    def set_console_output_enabled(self, enabled: bool) -> None:
        """Say whether ``print`` writes to the console."""
        self._disable_console_output = not enabled

    def disable_console_output(self) -> None:
        """Use ``set_console_output_enabled(False)``."""
        warnings.warn(
            "disable_console_output() is deprecated; use set_console_output_enabled(False)",
            DeprecationWarning,
            stacklevel=2,
        )
        self.set_console_output_enabled(False)

    def reset_subscribers(self, msghub_name: str, subscribers: Iterable[AgentBase]) -> None:
        """Let these agents, except this one itself, hear its replies by way of a hub."""
        self._subscribers.reset(msghub_name, [each for each in subscribers if each is not self])

    def remove_subscribers(self, msghub_name: str) -> None:
        """Let nobody hear this agent's replies by way of that hub any more."""
        if msghub_name in self._subscribers:
            self._subscribers.remove(msghub_name)
        else:
            logger.warning("agent %r has no subscribers of hub %r", self.id, msghub_name)

    async def aclose(self) -> None:
        """Interrupt what is under way, wait for its end, and let go of hooks, queue, subscribers.

        A call that this runs in is left alone. The agent can be used again. A subclass that opened
        something closes it here, too.
        """
        here, loop = asyncio.current_task(), asyncio.get_running_loop()
        others = [call for call in self._made() if call.task is not here]
        for call in others:
            call.interrupt()
        await asyncio.sleep(0)  # a task that was just created begins now
        for call in others:
            if call.task is not None and call.task.get_loop() is loop:
                await call.ended()
        self._subscribers.clear()
        self.clear_instance_hooks()
        self.set_msg_queue_enabled(False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    @property
    def _reply_task(self) -> asyncio.Task[Any] | None:
        """The task of the newest call under way."""
        begun = self._begun()
        return begun[-1].task if begun else None

    @property
    def _reply_id(self) -> str | None:
        """The id of the newest call under way."""
        begun = self._begun()
        return begun[-1].id if begun else None

    @property
    def _disable_msg_queue(self) -> bool:
        return self.msg_queue is None

    async def _answer(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            said = await call.run(
                lambda: self.reply(*args, **kwargs), lambda: self.handle_interrupt(*args, **kwargs)
            )
        finally:
            self._end(call)
        if isinstance(said, Msg | list) and said:
            await tell(self._subscribers, said)
        return said

    def _made(self) -> list[Call]:
        """Return the calls that have no reply yet; at once, for other threads may call, too."""
        made = [ref() for ref in self._calls.valuerefs()]
        return [call for call in made if call is not None]

    def _begun(self) -> list[Call]:
        return [call for call in self._made() if call.task is not None]

    def _end(self, call: Call) -> None:
        del self._calls[call.id]
        call.end()
        if not self._begun():  # what was not shown to its end never will be
            self._console.forget()


def _is_silenced() -> bool:
    return any(os.environ.get(name, "").lower() == "true" for name in SILENCING)
