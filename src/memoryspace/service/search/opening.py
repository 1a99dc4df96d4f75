"""The choice of a searcher: an index in this process, or one inside the database."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...errors import InvalidInput
from ...store import Store
from ..values.envelope import entry_of
from .contract import Searcher
from .resident import ResidentSearcher
from .saved import SavedIndexes

if TYPE_CHECKING:
    from ..settings import ServiceSettings

BESIDE = "searches"  # the folder of saved indexes in that of a memory space

SearchPlace: TypeAlias = Literal["process", "server"]


def searcher_on(
    store: Store, settings: ServiceSettings, place: SearchPlace, *, personal: bool
) -> Searcher:
    """Return the searcher for a store, as configured in the settings."""
    if place == "server":
        return _in_server(store, settings, personal=personal)
    if place != "process":
        raise InvalidInput(f'search must be "process" or "server", got {place!r}')
    return ResidentSearcher(
        store,
        entry_of,
        embedder=settings.embedder,
        ranking=settings.ranking,
        reranker=settings.reranker,
        zone=settings.zone,
        max_bytes=settings.max_indexed,
        personal=personal,
        keep_vectors=settings.keep_vectors,
        former_embedder=settings.former_embedder,
        saved=_saved(store, settings),
    )


def _saved(store: Store, settings: ServiceSettings) -> SavedIndexes | None:
    beside: str | PathLike[str] | None = getattr(store, "folder", None)
    folder = settings.saved_indexes
    if folder is None:
        folder = None if beside is None else Path(beside) / BESIDE
    if folder is None or folder is False:
        return None
    return SavedIndexes(folder, store, max_bytes=settings.max_saved)


def _in_server(store: Store, settings: ServiceSettings, *, personal: bool) -> Searcher:
    engine = getattr(store, "engine", None)
    name = type(store).__name__ if engine is None else engine.dialect.name
    if engine is None or name != "postgresql":
        raise InvalidInput(f'search="server" needs a PostgreSQL store, got {name}')
    from .postgres.searcher import PostgresSearcher

    return PostgresSearcher(
        engine,
        entry_of,
        embedder=settings.embedder,
        ranking=settings.ranking,
        reranker=settings.reranker,
        zone=settings.zone,
        clock=store.clock,
        personal=personal,
    )
