"""What every part of the door stands on: a store opened by its address, and the service on it."""

from __future__ import annotations

import asyncio

from ..errors import InvalidInput, NotOffered, NotStarted
from ..events import EventStream
from ..lifecycle import Closing
from ..loops import PerLoop
from ..model import ChatModel
from ..service.deriving.personal import PersonalDeriver
from ..service.reading.arguments import check_own
from ..service.settings import ServiceSettings
from ..service.stored import StoredMemoryService
from ..store import Address, Store, open_store
from ..store.space import SpaceStore
from .address import shown
from .closing import closed_at_exit, no_longer_open
from .config import Config
from .home import default_folder
from .recalls import RecallLog


class Opening(Closing):
    """A store, opened by its address on first use, with the service and the recall log on it.

    Args:
        address: Where the memory is; see ``AsyncMemory``.
        config: How it works.
        settings: Settings of the service, instead of those that ``config`` names.
        model: A chat model that finds facts which the built-in rules do not.
    """

    def __init__(
        self,
        address: Address | Store | None = None,
        *,
        config: Config,
        settings: ServiceSettings | None = None,
        model: ChatModel | None = None,
    ) -> None:
        self.config = config
        self._owns_store = not isinstance(address, Store)
        where = _place(address, config)
        self._store = (
            where if isinstance(where, Store) else open_store(where, durability=config.durability())
        )
        self._address = type(where).__name__ if isinstance(where, Store) else shown(where)
        self._service = StoredMemoryService(
            self._store,
            settings=config.service_settings() if settings is None else settings,
            derivers=[PersonalDeriver(model)],
            search=config.search,
        )
        self._recalls = RecallLog(self._store, most=config.max_recalls)
        self._opening = PerLoop(asyncio.Lock)
        self._is_open = self._is_closed = False

    def __repr__(self) -> str:
        user = f", user={self.config.user!r}" if self.config.user is not None else ""
        return f"{type(self).__name__}({self._address!r}{user})"

    @property
    def address(self) -> str:
        """The address, without a password."""
        return self._address

    @property
    def events(self) -> EventStream:
        """The stream of what happens in the store and in the service, to subscribe to."""
        return self._store.events

    @property
    def service(self) -> StoredMemoryService:
        """The service that the memory stands on."""
        return self._service

    @property
    def store(self) -> Store:
        """The store that everything is in."""
        return self._store

    async def open(self) -> None:
        """Open the store now instead of at the first call; a server must answer.

        Raises:
            StoreError: It cannot be opened.
        """
        if self._is_open:
            return
        if self._is_closed:
            raise NotStarted("this memory is closed; open another one")
        async with self._opening.get():
            if not self._is_open:
                await self._service.start()
                self._is_open = True
                closed_at_exit(self)

    async def close(self) -> None:
        """Write what waits to be written, and close what was opened. A second call does nothing."""
        self._is_closed = True
        async with self._opening.get():
            if not self._is_open:
                return
            self._is_open = False
            no_longer_open(self)
            await self._recalls.close()
            await self._service.stop()
            if self._owns_store:
                await self._store.close()

    async def _opened(self) -> StoredMemoryService:
        if not self._is_open:
            await self.open()
        return self._service

    def _whose(self, user: str | None) -> str:
        """Return the user a call is about."""
        if user is None:
            user = self.config.user
        if user is None:
            raise InvalidInput(
                "whose memory? Pass user=… to the call, or when the memory is opened, for all calls"
            )
        return check_own("user", user)

    def _space_store(self, verb: str) -> SpaceStore:
        """Return the store as a memory space; raise ``NotOffered`` if it is none."""
        if isinstance(self._store, SpaceStore):
            return self._store
        raise NotOffered(
            f"{verb}() needs a memory space; this memory is in {self._address}. "
            "Open a folder instead, or copy this memory into one with export() and import_()"
        )


def _place(address: Address | Store | None, config: Config) -> Address | Store:
    if address is None:
        address = default_folder() if config.address is None else config.address
    if address == ":memory:":
        raise InvalidInput("for a memory in RAM, the address is 'memory:'")
    return address
