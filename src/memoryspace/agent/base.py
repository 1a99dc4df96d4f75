"""``AgentBase``: the base class of agents, with the interface of AgentScope v1.

An agent replies (``await agent(msg)`` runs ``reply``), observes (``observe``) and prints its output
(``print``). Several calls may run at the same time. An agent is in no reference cycle: it is freed
with the last reference to it.
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
from .calls import AgentCall
from .hooks import Hookable
from .printing import Console
from .subscribers import Subscribers, publish

logger = logging.getLogger(__name__)

QUEUE_SIZE = 100
SILENCING = ("MEMORYSPACE_DISABLE_CONSOLE_OUTPUT", "AGENTSCOPE_DISABLE_CONSOLE_OUTPUT")


class AgentBase(StateModule, Hookable):
    """Base class of agents. Implement ``reply``, ``observe`` and ``handle_interrupt``.

    Only agents that can be interrupted need ``handle_interrupt``. ``print`` writes to the console
    and, if enabled, to ``msg_queue``. Turn the console off with ``set_console_output_enabled``, or
    by setting the environment variable ``MEMORYSPACE_DISABLE_CONSOLE_OUTPUT`` to ``true``.

    Examples:
        >>> class Echo(AgentBase):
        ...     async def reply(self, msg: Msg) -> Msg:
        ...         return Msg("echo", msg.content, "assistant")
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
        # Weak, because the coroutine holds its call: a coroutine that is never awaited drops it.
        self._calls: WeakValueDictionary[str, AgentCall] = WeakValueDictionary()
        self._subscribers = Subscribers()
        self._console = Console()
        self._disable_console_output = _is_silenced()

    # Any arguments here and below: subclasses define their own signatures.
    async def reply(self, *args: Any, **kwargs: Any) -> Any:
        """Return the reply to a message. Subclasses implement this."""
        raise NotImplementedError(f"{type(self).__name__} must implement reply()")

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Receive messages of others without replying. Subclasses implement this."""
        raise NotImplementedError(f"{type(self).__name__} must implement observe()")

    async def handle_interrupt(self, *args: Any, **kwargs: Any) -> Any:
        """Return the reply after an interrupt. It gets the arguments of the interrupted reply."""
        raise NotImplementedError(f"{type(self).__name__} must implement handle_interrupt()")

    # Not async itself: a call can be interrupted as soon as it is made, not only once it runs.
    def __call__(self, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Reply, and send the reply to the subscribers.

        After ``interrupt()`` the result is that of ``handle_interrupt``. Any other cancellation,
        such as that of ``asyncio.timeout``, is raised. If a subscriber fails to observe the reply,
        the failure is logged and the reply is returned.
        """
        call = AgentCall()
        self._calls[call.id] = call
        return self._answer(call, args, kwargs)

    async def interrupt(self, msg: Msg | list[Msg] | None = None) -> None:
        """Interrupt all running replies of this agent. Each continues in ``handle_interrupt``.

        A call that has not started to run goes straight to ``handle_interrupt``. May be called from
        the event loop of another thread. Without a running reply it has no effect.

        Args:
            msg: The argument of the ``CancelledError`` that the replies receive.
        """
        for call in self._open_calls():
            call.interrupt(msg)

    async def print(
        self, msg: Msg, last: bool = True, speech: AudioBlock | list[AudioBlock] | None = None
    ) -> None:
        """Print a message, or the new part of a message that is still growing.

        If the queue is enabled, it gets ``(copy of msg, last, speech)``; a full queue makes this
        wait for a reader.

        Args:
            msg: The message, complete so far.
            last: Whether the message is complete.
            speech: Audio for the queue; it is not played.
        """
        if self.msg_queue is not None:
            await self.msg_queue.put((thaw(msg), last, speech))
            await asyncio.sleep(0)  # let a reader run now
        if not self._disable_console_output:
            self._console.show(msg, last)

    def set_msg_queue_enabled(self, enabled: bool, queue: asyncio.Queue[Any] | None = None) -> None:
        """Put printed messages into a queue: the given one, or a new one of size 100."""
        if not enabled:
            self.msg_queue = None
        elif queue is not None:
            self.msg_queue = queue
        elif self.msg_queue is None:
            self.msg_queue = asyncio.Queue(maxsize=QUEUE_SIZE)

    def set_console_output_enabled(self, enabled: bool) -> None:
        """Set whether ``print`` writes to the console."""
        self._disable_console_output = not enabled

    def disable_console_output(self) -> None:
        """Turn console output off. Deprecated: use ``set_console_output_enabled(False)``."""
        warnings.warn(
            "disable_console_output() is deprecated; use set_console_output_enabled(False)",
            DeprecationWarning,
            stacklevel=2,
        )
        self.set_console_output_enabled(False)

    def reset_subscribers(self, msghub_name: str, subscribers: Iterable[AgentBase]) -> None:
        """Set the agents that observe this agent's replies through a hub; never itself."""
        self._subscribers.reset(msghub_name, [each for each in subscribers if each is not self])

    def remove_subscribers(self, msghub_name: str) -> None:
        """Remove the subscribers of a hub. An unknown hub is logged."""
        if msghub_name in self._subscribers:
            self._subscribers.remove(msghub_name)
        else:
            logger.warning("agent %r has no subscribers of hub %r", self.id, msghub_name)

    async def aclose(self) -> None:
        """Interrupt running replies, wait for them to end, and drop hooks, queue and subscribers.

        A call that ``aclose`` itself runs in is not interrupted. The agent can be used again.
        Subclasses that open resources close them here.
        """
        here, loop = asyncio.current_task(), asyncio.get_running_loop()
        others = [call for call in self._open_calls() if call.task is not here]
        for call in others:
            call.interrupt()
        await asyncio.sleep(0)  # let tasks that were just created start
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

    def __repr__(self) -> str:
        name = self.__dict__.get("name")
        return f"{type(self).__name__}({'' if name is None else f'name={name!r}, '}id={self.id!r})"

    @property
    def _reply_task(self) -> asyncio.Task[Any] | None:
        """The task of the newest running call."""
        running = self._running()
        return running[-1].task if running else None

    @property
    def _reply_id(self) -> str | None:
        """The id of the newest running call."""
        running = self._running()
        return running[-1].id if running else None

    @property
    def _disable_msg_queue(self) -> bool:
        return self.msg_queue is None

    async def _answer(self, call: AgentCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            reply = await call.run(
                lambda: self.reply(*args, **kwargs), lambda: self.handle_interrupt(*args, **kwargs)
            )
        finally:
            self._end(call)
        if isinstance(reply, Msg | list) and reply:
            await publish(self._subscribers, reply)
        return reply

    def _open_calls(self) -> list[AgentCall]:
        """Return the calls without a reply, as a snapshot: other threads may add calls."""
        found = [ref() for ref in self._calls.valuerefs()]
        return [call for call in found if call is not None]

    def _running(self) -> list[AgentCall]:
        return [call for call in self._open_calls() if call.task is not None]

    def _end(self, call: AgentCall) -> None:
        del self._calls[call.id]
        call.end()
        if not self._running():  # incomplete messages will never be completed
            self._console.forget()


def _is_silenced() -> bool:
    return any(os.environ.get(name, "").lower() == "true" for name in SILENCING)
