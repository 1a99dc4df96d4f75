"""The choice of the best installed embedder."""

from __future__ import annotations

import logging
from functools import cache

from ..errors import MissingExtra
from .contract import Embedder
from .e5 import E5Embedder
from .installed import SEMANTIC
from .minilm import MiniLMEmbedder
from .static import StaticEmbedder

_log = logging.getLogger(__name__)


@cache
def best_embedder() -> Embedder | None:
    """Return the best installed embedder: e5, else MiniLM, else static vectors, else None.

    The choice is logged once. Every call returns the same object, which loads on first use.

    Examples:
        >>> embedder = best_embedder()
        >>> vectors = embedder.embed(["the soil is loam"]) if embedder is not None else None
    """
    for kind in (E5Embedder, MiniLMEmbedder, StaticEmbedder):
        try:
            found: Embedder = kind()
        except MissingExtra:
            continue
        _log.info("embedding with %s", found.name)
        return found
    _log.info("no embedding model is installed, so there is no semantic search; run: %s", SEMANTIC)
    return None
