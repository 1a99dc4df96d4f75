"""``CompressionConfig``: how an agent's context is kept within its window."""

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
    """A prompt over ``trigger_threshold`` tokens is compacted: instructions and tools count too.

    The newest ``keep_recent`` messages are left alone while there is another way. What leaves goes
    to ``archive``, or into a folder below ``store_dir`` that is this agent's own in its memory's
    session (a memory in RAM without a session gets one that is part of the agent's state), or stays
    in RAM; the model reads it with ``read_memory`` and ``search_memory``.

    The summary is made by ``summariser`` or else by a model: ``compression_model`` (with its
    ``compression_formatter``), or the agent's own. ``compression_prompt`` takes the place of our
    instructions, ``summary_schema`` says what the summary consists of, ``summary_template`` how it
    is put together. A model that fails is done without; no reply fails for it.
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
            raise InvalidInput("give an archive or a store_dir, not both")
        if isinstance(self.compression_model, ChatModelBase) and self.compression_formatter is None:
            raise InvalidInput("a compression_model needs its compression_formatter")


def counter_of(config: CompressionConfig | None) -> TokenCounterBase:
    """Return what an agent's tokens are counted with."""
    counter = config.agent_token_counter if config is not None else None
    return counter if counter is not None else EstimatedTokenCounter()


def window_of(
    config: CompressionConfig | None,
    scope: Scope,
    memory: MemoryBase,
    model: ChatModelBase,
    formatter: FormatterBase,
) -> ContextWindow | None:
    """Return the window on an agent's memory; None where there is no limit.

    ``scope`` is whose files those in a folder are.
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
    """Return whose an agent's files are: of its user and session, each agent's apart.

    All memories in RAM have the same session unless they are given one, and are different people's:
    for those it is ``fallback``.
    """
    if not isinstance(memory, StoredMemory):
        return Scope(DEFAULT_USER, _joined(fallback, agent))
    is_nobodys = isinstance(memory, InMemoryMemory) and memory.session_id == DEFAULT_SESSION
    return Scope(memory.user_id, _joined(fallback if is_nobodys else memory.session_id, agent))


def _joined(session: str, agent: str) -> str:
    """Join two names that may have any signs in them, so that no other two give the same."""
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
