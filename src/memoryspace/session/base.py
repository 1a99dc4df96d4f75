"""``SessionBase``: saves and restores the state of several modules together."""

from __future__ import annotations

import logging
from typing import Any

from ..errors import CorruptData, NotSerializable, SessionNotFound
from ..module import StateModule, load_together
from ..record import check_id
from ..store.codec import dump, parse

logger = logging.getLogger(__name__)

FORMAT = 1  # AgentScope v1's; a state without a number has it, so that AgentScope reads it as well
FORMAT_KEY = "memoryspace:format"


class SessionBase:
    """Stores states by user and session. Loading restores every module or none.

    To write your own session, implement ``_write`` and ``_read``, or override the two public
    methods.
    """

    async def save_session_state(
        self, session_id: str, user_id: str = "", **state_modules_mapping: StateModule
    ) -> None:
        """Save the state of the named modules, and replace an earlier state atomically.

        Args:
            session_id: The session to save.
            user_id: The user it belongs to, if any.
            **state_modules_mapping: The modules, by the name to restore them under.

        Raises:
            NotSerializable: If a state cannot be written as JSON.
        """
        self._check(session_id, user_id)
        states = {name: module.state_dict() for name, module in state_modules_mapping.items()}
        try:
            text = dump(states)
        except NotSerializable as error:
            raise NotSerializable(f"session {session_id!r} was not saved: {error}") from error
        await self._write(session_id, user_id, text)

    async def load_session_state(
        self,
        session_id: str,
        user_id: str = "",
        allow_not_exist: bool = True,
        **state_modules_mapping: StateModule,
    ) -> None:
        """Restore the named modules. A module that was not saved keeps its state.

        Args:
            session_id: The session to load.
            user_id: The user it belongs to, if any.
            allow_not_exist: Whether a session without saved state is ignored.
            **state_modules_mapping: The modules, by the name they were saved under.

        Raises:
            SessionNotFound: If nothing is saved and ``allow_not_exist`` is false.
            CorruptData: If the saved state cannot be read.
        """
        self._check(session_id, user_id)
        text = await self._read(session_id, user_id)
        if text is None:
            if not allow_not_exist:
                raise SessionNotFound(
                    f"no state is saved for session {session_id!r}, user {user_id!r}"
                )
            logger.info("no state is saved for session %r, user %r", session_id, user_id)
            return
        load_together(state_modules_mapping, _states(session_id, user_id, text))

    async def _write(self, session_id: str, user_id: str, text: str) -> None:
        """Store the text atomically."""
        raise NotImplementedError(f"{type(self).__name__} implements neither _write nor saving")

    async def _read(self, session_id: str, user_id: str) -> str | bytes | None:
        """Return the text stored last, or ``None``."""
        raise NotImplementedError(f"{type(self).__name__} implements neither _read nor loading")

    def _check(self, session_id: str, user_id: str) -> None:
        check_id("session id", session_id)
        if user_id:
            check_id("user id", user_id)


def _states(session_id: str, user_id: str, text: str | bytes) -> dict[str, Any]:
    where = f"the state of session {session_id!r}, user {user_id!r}"
    try:
        states = parse(text)
    except CorruptData as error:
        raise CorruptData(f"{where} cannot be read: {error}") from error
    if not isinstance(states, dict):
        raise CorruptData(f"{where} is not an object but a {type(states).__name__}")
    version = states.get(FORMAT_KEY, FORMAT)
    if version != FORMAT:
        raise CorruptData(
            f"{where} has format {version!r}, this version of memoryspace reads up to {FORMAT}; "
            "upgrade memoryspace"
        )
    return states
