"""``Verbs``: the base of service parts that add methods for one kind of deriver."""

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
    """A part of a service. ``StoredMemoryService`` combines all parts and implements this."""

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
        """Store messages, with details for the derivers."""

    @abstractmethod
    def _scope(self, user_id: str, session_id: str | None) -> Scope:
        """Return the scope of a user and session; raise ``NotStarted`` if not started."""

    @abstractmethod
    def _session(self, user_id: str, session_id: str | None) -> Scope:
        """Return the scope to write to, in the default session if none is given."""

    def _needs(self, kind: str, deriver: str) -> None:
        """Raise ``InvalidInput`` unless a deriver of the service makes memories of ``kind``."""
        if kind not in self._kinds:
            raise InvalidInput(
                f"this {type(self).__name__} has no deriver of kind {kind!r}; "
                f"create it with {deriver}() among its derivers"
            )
