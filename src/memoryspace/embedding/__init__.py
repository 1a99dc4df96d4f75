"""Embeddings: local models, servers, custom functions, and a file cache.

The package itself needs an ``Embedder``. The names of AgentScope v1 (``EmbeddingModelBase``,
``OpenAITextEmbedding``, ``FileEmbeddingCache``, ...) are here for programs that change the root of
their imports: ``LocalTextEmbedding`` turns an embedder into such a model, and ``as_embedder`` turns
such a model into an embedder.
"""

from __future__ import annotations

from .adapting import as_embedder
from .agentscope import EmbeddingCacheBase, EmbeddingModelBase, EmbeddingResponse, EmbeddingUsage
from .best import best_embedder
from .cache import CachedEmbedder, FileEmbeddingCache, VectorFiles
from .callables import CallableEmbedder
from .contract import Embedder, StandsBefore, TellsQuestions, embed_questions, embed_texts
from .e5 import E5Embedder
from .endpoint import EmbeddingFailed, EmbeddingUnavailable
from .hubs import FastEmbedEmbedder, SentenceTransformerEmbedder
from .local import LocalTextEmbedding
from .minilm import MiniLMEmbedder
from .multimodal import DashScopeMultiModalEmbedding
from .openai import OpenAIEmbedder
from .providers import (
    DashScopeTextEmbedding,
    GeminiTextEmbedding,
    OllamaTextEmbedding,
    OpenAITextEmbedding,
)
from .scripts import can_rank, dominant_script, script_shares, scripts_of
from .static import StaticEmbedder

__all__ = [
    "CachedEmbedder",
    "CallableEmbedder",
    "DashScopeMultiModalEmbedding",
    "DashScopeTextEmbedding",
    "E5Embedder",
    "Embedder",
    "EmbeddingCacheBase",
    "EmbeddingFailed",
    "EmbeddingModelBase",
    "EmbeddingResponse",
    "EmbeddingUnavailable",
    "EmbeddingUsage",
    "FastEmbedEmbedder",
    "FileEmbeddingCache",
    "GeminiTextEmbedding",
    "LocalTextEmbedding",
    "MiniLMEmbedder",
    "OllamaTextEmbedding",
    "OpenAIEmbedder",
    "OpenAITextEmbedding",
    "SentenceTransformerEmbedder",
    "StandsBefore",
    "StaticEmbedder",
    "TellsQuestions",
    "VectorFiles",
    "as_embedder",
    "best_embedder",
    "can_rank",
    "dominant_script",
    "embed_questions",
    "embed_texts",
    "script_shares",
    "scripts_of",
]
