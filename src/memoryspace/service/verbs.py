"""``Verbs``: what verbs that need a certain deriver ask of the service they belong to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidInput
from ..record import Scope
from .base import MemoryService
from .values.memory import Said
from .values.receipt import Receipt
from .writing.repository import MemoryRepository


class Verbs(MemoryService):
    """A service in parts: each part has its verbs, ``StoredMemoryService`` has them all."""

    _kinds: tuple[str, ...]
    _repository: MemoryRepository

    @abstractmethod
    async def _add(
        self,
        scope: Scope,
        messages: Sequence[Said] | Said,
        details: Mapping[str, Any],
        *,
        marks: frozenset[str] = frozenset(),
    ) -> Receipt:
        """Store messages, with what derivers are told beside them."""

    @abstractmethod
    def _scope(self, user_id: str, session_id: str | None) -> Scope:
        """Return whose memory is meant, if the service is started."""

    @abstractmethod
    def _session(self, user_id: str, session_id: str | None) -> Scope:
        """Return the session that is written to."""

    def _needs(self, kind: str, deriver: str) -> None:
        """Refuse a verb whose outcome nobody here would ever make."""
        if kind not in self._kinds:
            raise InvalidInput(
                f"this {type(self).__name__} has no deriver of the kind {kind!r}: "
                f"make it with {deriver}() among its derivers"
            )
