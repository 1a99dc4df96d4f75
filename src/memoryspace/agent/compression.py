"""``CompressionConfig``: how an agent keeps its context within a token budget."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from ..context import (
    Archive,
    Compactor,
    FileArchive,
    Limits,
    Meter,
    ModelSummary,
    RAMArchive,
    Summariser,
    SummaryFields,
)
from ..context.limits import big_result
from ..errors import InvalidInput
from ..formatter import FormatterBase
from ..memory import ContextWindow, InMemoryMemory, MemoryBase, StoredMemory
from ..memory.in_memory import DEFAULT_SESSION, DEFAULT_USER
from ..model import ChatModel, ChatModelBase
from ..model.base import StructuredModel
from ..record import Scope
from ..token import EstimatedTokenCounter, TokenCounterBase


@dataclass(frozen=True, kw_only=True)
class CompressionConfig:
    """When and how an agent compacts its context.

    Content that leaves the context is archived; the model reads it with ``read_memory`` and
    ``search_memory``. If the model that summarises fails, the context is compacted without it: no
    reply fails for that reason.

    Args:
        trigger_threshold: The largest prompt in tokens, instructions and tools included. A longer
            prompt is compacted.
        enable: Whether to compact at all.
        agent_token_counter: Counts the tokens; estimated by default.
        keep_recent: How many of the newest messages to keep as long as possible.
        compression_prompt: Replaces the default instructions for the summary.
        summary_template: How the fields of the summary become text.
        summary_schema: The fields of the summary.
        compression_model: The model that summarises; the agent's own by default.
        compression_formatter: The formatter of ``compression_model``.
        summariser: Makes the summary instead of a model.
        archive: Where the removed content goes; RAM by default.
        store_dir: A folder to archive to instead. Each agent gets its own subfolder for its
            memory's session; a memory in RAM without a session gets one that is part of the
            agent's state.

    Raises:
        InvalidInput: If an option has the wrong type, or two options exclude each other.

    Examples:
        >>> CompressionConfig(trigger_threshold=8_000).keep_recent
        3
    """

    trigger_threshold: int
    enable: bool = True
    agent_token_counter: TokenCounterBase | None = None
    keep_recent: int = 3
    compression_prompt: str | None = None
    summary_template: str | None = None
    summary_schema: StructuredModel = SummaryFields
    compression_model: ChatModel | None = None
    compression_formatter: FormatterBase | None = None
    summariser: Summariser | None = None
    archive: Archive | None = None
    store_dir: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        counter = self.agent_token_counter
        if not isinstance(self.trigger_threshold, int):
            kind = type(self.trigger_threshold).__name__
            raise InvalidInput(f"trigger_threshold must be a whole number of tokens, got a {kind}")
        if counter is not None and not callable(getattr(counter, "count", None)):
            kind = type(counter).__name__
            raise InvalidInput(f"agent_token_counter must be a TokenCounterBase, got a {kind}")
        if self.archive is not None and self.store_dir is not None:
            raise InvalidInput("pass archive= or store_dir=, not both")
        if isinstance(self.compression_model, ChatModelBase) and self.compression_formatter is None:
            raise InvalidInput("a compression_model needs its compression_formatter")


def counter_of(config: CompressionConfig | None) -> TokenCounterBase:
    """Return the token counter of an agent."""
    counter = config.agent_token_counter if config is not None else None
    return counter if counter is not None else EstimatedTokenCounter()


def window_of(
    config: CompressionConfig | None,
    scope: Scope,
    memory: MemoryBase,
    model: ChatModelBase,
    formatter: FormatterBase,
) -> ContextWindow | None:
    """Return the context window of an agent's memory; None if it has no limit.

    ``scope`` is the owner of the archived files.
    """
    if config is None or not config.enable:
        return None
    budget = config.trigger_threshold
    limits = Limits(budget=budget, keep_recent=config.keep_recent, tool_result=big_result(budget))
    compactor = Compactor(
        limits,
        archive=_archive(config, scope),
        meter=Meter(config.agent_token_counter, formatter),
        summariser=_summariser(config, model, formatter),
    )
    return ContextWindow(memory, compactor)


def scope_of(memory: MemoryBase, agent: str, fallback: str) -> Scope:
    """Return the owner of an agent's files: its user and session, separate for each agent.

    Memories in RAM all have the default session unless they are given one, although they belong to
    different users; for those the session is ``fallback``.
    """
    if not isinstance(memory, StoredMemory):
        return Scope(DEFAULT_USER, _joined(fallback, agent))
    is_default = isinstance(memory, InMemoryMemory) and memory.session_id == DEFAULT_SESSION
    return Scope(memory.user_id, _joined(fallback if is_default else memory.session_id, agent))


def _joined(session: str, agent: str) -> str:
    """Join two arbitrary names so that no other pair gives the same result."""
    return json.dumps([session, agent])


def _archive(config: CompressionConfig, scope: Scope) -> Archive:
    if config.archive is not None:
        return config.archive
    if config.store_dir is None:
        return RAMArchive()
    return FileArchive(config.store_dir, scope.user, str(scope.session))


def _summariser(
    config: CompressionConfig, model: ChatModel, formatter: FormatterBase | None
) -> Summariser:
    if config.summariser is not None:
        return config.summariser
    if config.compression_model is not None:
        model, formatter = config.compression_model, config.compression_formatter
    return ModelSummary(
        model, config.summary_schema, config.compression_prompt, config.summary_template, formatter
    )
