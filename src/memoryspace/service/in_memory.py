"""``InMemoryMemoryService``: long-term memory in this process, gone with it."""

from __future__ import annotations

from collections.abc import Sequence

from ..store import MemoryStore
from .deriving.contract import Deriver
from .settings import ServiceSettings
from .stored import StoredMemoryService


class InMemoryMemoryService(StoredMemoryService):
    """Memories in RAM: for tests, for trying things out, and for agents that live for an hour."""

    def __init__(
        self,
        *,
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        super().__init__(MemoryStore(), settings=settings, deriver=deriver, derivers=derivers)
