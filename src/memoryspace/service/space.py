"""``SpaceMemoryService``: long-term memory in a folder. Embedded, durable, no server."""

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
    """Memories in a memory space in ``folder``, which one process at a time owns.

    ``hot_capacity`` bounds the RAM for them; the rest stands in the cold tier. ``durability`` says
    when a write counts as safe.
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
        """Rewrite the folder so that nothing deleted is left in any file.

        Deleting is quick: memories are gone at once for everybody who asks, and their bytes stay
        in the journal, in checkpoints and in the cold tier until they are overwritten. This takes
        time in proportion to what is kept. The service can be used meanwhile.
        """
        if not self._is_started:
            raise not_started(self)
        await self._space_store.scrub()

    async def _let_go(self) -> None:
        await self.store.close()
