"""``PersonalMemoryService``: what is known of a person, made from what they said."""

from __future__ import annotations

from ..model import ChatModel, Spending
from ..store import Address, MemoryStore, Store
from .deriving.personal.deriver import PersonalDeriver
from .search.opening import SearchPlace
from .settings import ServiceSettings
from .stored import StoredMemoryService


class PersonalMemoryService(StoredMemoryService):
    """Facts, preferences and events, and insights over many of them; superseded, not erased.

    What was said stands in ``store`` (in RAM if none is given; an address or a folder is opened and
    closed here) before it is thought about. Without a ``model`` rules find what lasts; with one
    more is found, and ``spending`` counts what that costs. A search is about what was said, with
    what is known from it (``MemoryHit.facts``); lists are about what is known. ``{"kind": "fact"}``
    and ``{"kind": "memory"}`` ask for one alone.
    """

    def __init__(
        self,
        store: Store | Address | None = None,
        *,
        model: ChatModel | None = None,
        spending: Spending | None = None,
        search: SearchPlace = "process",
        settings: ServiceSettings | None = None,
    ) -> None:
        super().__init__(
            MemoryStore() if store is None else store,
            settings=settings,
            derivers=[PersonalDeriver(model, spending=spending)],
            search=search,
        )


ReMePersonalMemoryService = PersonalMemoryService
