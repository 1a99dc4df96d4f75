"""``SpaceMemoryService``: a memory service in a folder. Embedded, durable, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from ..kernel import Durability
from ..store.space import HOT_CAPACITY, SpaceStore
from .deriving.contract import Deriver
from .reading.arguments import not_started
from .settings import ServiceSettings
from .stored import StoredMemoryService


class SpaceMemoryService(StoredMemoryService):
    """A memory service in a folder on disk, which one process at a time owns.

    Args:
        folder: Where the memory space is; it is created if it does not exist.
        hot_capacity: How many bytes of memories to hold in RAM; the rest is in the cold tier.
        durability: When a write counts as safe.
        settings: How to search, what to accept and how long to keep it.
        deriver: A single deriver, short for ``derivers=[deriver]``.
        derivers: What makes memories from messages, such as ``PersonalDeriver()``.

    Example::

        async with SpaceMemoryService("memories") as service:
            await service.add_memory("ann", ["I live in Oslo"])
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        hot_capacity: int = HOT_CAPACITY,
        durability: Durability | None = None,
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        self._space_store = SpaceStore(folder, hot_capacity=hot_capacity, durability=durability)
        super().__init__(self._space_store, settings=settings, deriver=deriver, derivers=derivers)

    async def scrub(self) -> None:
        """Rewrite the folder so that no deleted data is left in any file.

        A deletion hides memories at once, but their bytes stay in the journal, in checkpoints and
        in the cold tier until they are overwritten. Scrubbing takes time in proportion to the data
        kept. The service can be used meanwhile.

        Raises:
            NotStarted: The service is not running.
        """
        if not self._is_started:
            raise not_started(self)
        await self.searcher.scrub()
        await self._space_store.scrub()

    async def _let_go(self) -> None:
        await self.store.close()
