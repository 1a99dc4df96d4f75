"""``MsgHub``: a conversation in which every agent observes the replies of all others."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from ..agent import AgentBase
from ..agent.subscribers import publish
from ..message import Msg, new_id

logger = logging.getLogger(__name__)


class MsgHub:
    """Inside ``async with``, all other participants observe what a participant replies.

    Each gets its own copy, without thinking blocks. If a participant fails to observe a reply, the
    failure is logged and the conversation continues. When the hub closes, for whatever reason, it
    is removed from all agents. Hubs that are open at the same time need different names.

    Args:
        participants: The agents.
        announcement: Messages to broadcast when the hub opens.
        enable_auto_broadcast: Whether replies are broadcast automatically.
        name: The name of the hub; random by default.

    Examples:
        >>> async def talk(alice: AgentBase, bob: AgentBase) -> None:
        ...     async with MsgHub([alice, bob], announcement=Msg("host", "Hello!", "user")):
        ...         await alice()
        ...         await bob()
    """

    def __init__(
        self,
        participants: Sequence[AgentBase],
        announcement: Msg | list[Msg] | None = None,
        enable_auto_broadcast: bool = True,
        name: str | None = None,
    ) -> None:
        self.name = new_id() if name is None else name
        self.participants = _once_each(participants)
        self.announcement = announcement
        self.enable_auto_broadcast = enable_auto_broadcast
        self._is_open = False
        self._connected: list[AgentBase] = []

    async def __aenter__(self) -> Self:
        self._is_open = True
        self._refresh()
        if self.announcement:
            try:
                await self.broadcast(self.announcement)
            except BaseException:
                self._close()
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def add(self, new_participant: AgentBase | Sequence[AgentBase]) -> None:
        """Add participants. An agent that already takes part is not added again."""
        self.participants = _once_each([*self.participants, *_as_list(new_participant)])
        self._refresh()

    def delete(self, participant: AgentBase | Sequence[AgentBase]) -> None:
        """Remove participants. An unknown agent is logged."""
        for agent in _as_list(participant):
            if not _is_among(agent, self.participants):
                logger.warning("agent %r does not take part in hub %r", agent.id, self.name)
            self.participants = [each for each in self.participants if each is not agent]
        self._refresh()

    async def broadcast(self, msg: Msg | list[Msg]) -> None:
        """Send messages to every participant.

        Raises:
            ExceptionGroup: If participants failed to observe; the others have observed by then.
        """
        errors = await publish([*self.participants], msg)
        if errors:
            raise ExceptionGroup(f"participants of hub {self.name!r} could not observe", errors)

    def set_auto_broadcast(self, enable: bool) -> None:
        """Set whether replies are broadcast automatically, or only by ``broadcast``."""
        self.enable_auto_broadcast = enable
        self._refresh()

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        return f"MsgHub(name={self.name!r}, participants={self.participants}, {state})"

    def _close(self) -> None:
        self._is_open = False
        self._refresh()

    def _refresh(self) -> None:
        """Connect exactly the current participants. The only place that changes agents."""
        is_on = self._is_open and self.enable_auto_broadcast
        wanted = [*self.participants] if is_on else []
        for agent in self._connected:
            if not _is_among(agent, wanted):
                agent.remove_subscribers(self.name)
        for agent in wanted:
            agent.reset_subscribers(self.name, wanted)
        self._connected = wanted


def _as_list(agents: AgentBase | Sequence[AgentBase]) -> list[AgentBase]:
    return [agents] if isinstance(agents, AgentBase) else [*agents]


def _once_each(agents: Iterable[AgentBase]) -> list[AgentBase]:
    return [*{id(agent): agent for agent in agents}.values()]


def _is_among(agent: AgentBase, agents: Iterable[AgentBase]) -> bool:
    return any(each is agent for each in agents)
