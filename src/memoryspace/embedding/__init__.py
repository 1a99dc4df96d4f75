"""Texts to vectors: models that run here, servers, functions; and a cache in files.

``Embedder`` is what the engine asks for. The names of AgentScope v1 (``EmbeddingModelBase``,
``OpenAITextEmbedding``, ``FileEmbeddingCache``, ...) stand beside it; ``LocalTextEmbedding`` gives
an embedder their shape, ``as_embedder`` gives such a model that of an embedder.
"""

from __future__ import annotations

from .adapting import as_embedder
from .agentscope import EmbeddingCacheBase, EmbeddingModelBase, EmbeddingResponse, EmbeddingUsage
from .best import best_embedder
from .cache import CachedEmbedder, FileEmbeddingCache, VectorFiles
from .contract import Embedder, StandsBefore, TellsQuestions, embed_questions, embed_texts
from .e5 import E5Embedder
from .endpoint import EmbeddingFailed, EmbeddingUnavailable
from .hubs import FastEmbedEmbedder, SentenceTransformerEmbedder
from .local import LocalTextEmbedding
from .minilm import MiniLMEmbedder
from .multimodal import DashScopeMultiModalEmbedding
from .openai import OpenAIEmbedder
from .own import CallableEmbedder
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
