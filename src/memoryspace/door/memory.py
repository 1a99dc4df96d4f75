"""``AsyncMemory``: the one way in, opened by an address."""

from __future__ import annotations

from typing import Any, Self

from msgspec.structs import replace as change

from ..errors import InvalidInput
from ..model import ChatModel
from ..service.settings import ServiceSettings
from ..store import Address, Store
from ..store.space import PastStore
from .caring import Caring
from .config import Config, load_config
from .managing import Managing
from .recalling import Recalling
from .remembering import Remembering


class AsyncMemory(Remembering, Recalling, Managing, Caring):
    """A memory for agents: durable, searchable, explained; the same verbs on every backend.

    It opens at the first call. ``async with`` closes it, and so does the end of the program.
    ``Memory`` is the same without ``await``.

    Args:
        address: Where the memory is: nothing (a folder of this computer's user), a folder,
            ``memory:`` (RAM), ``sqlite:///…``, ``postgresql://…``, ``mysql://…`` or ``redis://…``;
            the address of a server, ``http://…``; or a store that is open already, which stays the
            caller's to close.
        user: Whose memory calls are about that name no user.
        api_key: The key for a server.
        config: How it works; by default what ``memoryspace.toml`` and ``MEMORYSPACE_…`` say.
        settings: Settings of the service beyond those of ``config``.
        model: A chat model that finds facts which the built-in rules do not.

    Raises:
        InvalidInput: The address or a setting is not valid.

    Example::

        async with AsyncMemory("memories") as memory:
            await memory.add("I moved to Oslo last week.", user="alice")
            print(await memory.search("Where does she live?", user="alice"))
    """

    def __init__(
        self,
        address: Address | Store | None = None,
        *,
        user: str | None = None,
        api_key: str | None = None,
        config: Config | None = None,
        settings: ServiceSettings | None = None,
        model: ChatModel | None = None,
    ) -> None:
        if api_key is not None:
            raise InvalidInput("api_key is for a server; this address is none")
        config = configured(config, user=user)
        _check("settings", settings, ServiceSettings)
        _check("model", model, ChatModel)
        self._settings, self._model = settings, model
        super().__init__(address, config=config, settings=settings, model=model)

    def __new__(
        cls, address: Address | Store | None = None, *_: object, **options: Any
    ) -> AsyncMemory:
        """Return a memory of this process or, for the address of a server, one on that server."""
        if cls is AsyncMemory and is_server(address, options.get("config")):
            from .remote import RemoteMemory

            return object.__new__(RemoteMemory)
        return object.__new__(cls)

    def _on(self, past: PastStore) -> Self:
        seen = type(self)(
            past,
            config=change(self.config, max_recalls=0),
            settings=self._settings,
            model=self._model,
        )
        seen._owns_store = True
        seen._address = f"{self.address} as it was at change {past.past.lsn}"
        return seen


def configured(config: Config | None, *, user: str | None) -> Config:
    """Return the configuration of a memory, with the user that is named."""
    if config is None:
        return load_config({"user": user}).settings
    _check("config", config, Config)
    return config if user is None else change(config, user=user)


def is_server(address: object, config: Config | None) -> bool:
    """Return whether a memory is on a server, by its address or by that of the configuration."""
    _check("config", config, Config)
    if address is None:
        address = (load_config().settings if config is None else config).address
    return isinstance(address, str) and address.lower().startswith(("http://", "https://"))


def _check(what: str, value: object, kind: type) -> None:
    """Raise ``TypeError`` unless a value is of some type or ``None``."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{what} must be a {kind.__name__}, got {type(value).__name__}")
