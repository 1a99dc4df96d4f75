"""``InMemoryMemoryService``: a memory service in RAM. Its memories end with the process."""

from __future__ import annotations

from collections.abc import Sequence

from ..store import MemoryStore
from .deriving.contract import Deriver
from .settings import ServiceSettings
from .stored import StoredMemoryService


class InMemoryMemoryService(StoredMemoryService):
    """A memory service in RAM, for tests, experiments and short-lived agents.

    Args:
        settings: How to search, what to accept and how long to keep it.
        deriver: A single deriver, short for ``derivers=[deriver]``.
        derivers: What makes memories from messages, such as ``PersonalDeriver()``.

    Example::

        async with InMemoryMemoryService() as service:
            await service.add_memory("ann", ["I live in Oslo"])
    """

    def __init__(
        self,
        *,
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        super().__init__(MemoryStore(), settings=settings, deriver=deriver, derivers=derivers)
