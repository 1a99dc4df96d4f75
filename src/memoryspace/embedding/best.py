"""The best embedder that is installed here, chosen once."""

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
    """Return e5 if its weights are installed, else MiniLM, else static vectors, else None.

    The choice is logged once; every call returns the same object, which loads when first used.
    """
    for kind in (E5Embedder, MiniLMEmbedder, StaticEmbedder):
        try:
            found: Embedder = kind()
        except MissingExtra:
            continue
        _log.info("embedding with %s", found.name)
        return found
    _log.info(
        "no embedding model is installed, so nothing is searched by meaning; run: %s", SEMANTIC
    )
    return None
