"""``OpenAICompatibleModel``: any server with OpenAI's ``/chat/completions``, without an SDK.

Ollama, vLLM, LiteLLM, llama.cpp and most providers have it. A schema is requested in the strictest
form that the server accepts: as a schema, as "some JSON", or in words. The form is remembered.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ModelFailed, ModelUnavailable
from ..http import Refused, Server, Unreachable
from .addresses import OPENAI
from .contract import Completion

_PATH = "/chat/completions"
_NOT_UNDERSTOOD = frozenset({400, 404, 415, 422, 501})  # responses to an unknown format
_WHO_AND_WHAT = frozenset({401, 403, 404})  # about the key or the model, not the prompt
_SCHEMA, _JSON, _WORDS = range(3)  # how a schema is requested, the strictest first

logger = logging.getLogger(__name__)


class OpenAICompatibleModel:
    """A ``ChatModel`` on an OpenAI-compatible server. Requests run in a thread.

    Args:
        model: The name of the model.
        base_url: The address of the server.
        api_key: The key, if the server needs one.
        temperature: Sent only if set: not every model accepts it.
        max_tokens: Sent only if set.
        timeout: Seconds to wait for an answer.
        attempts: How often to try if the failure may pass: no connection, a busy server, a
            timeout.
        sleep: Waits between attempts.

    Raises:
        InvalidInput: If the address, the key or a number is invalid.

    Examples:
        >>> OpenAICompatibleModel("llama3", base_url="http://localhost:11434/v1").name
        'llama3'
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        timeout: float = 120.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = Server(base_url, api_key, timeout, attempts, sleep)
        self._model = model
        options = {"temperature": temperature, "max_tokens": max_tokens}
        self._options = {name: value for name, value in options.items() if value is not None}
        self._form = _SCHEMA

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Answer messages; see ``ChatModel``."""
        return await asyncio.to_thread(self._complete, messages, schema)

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel({self._model!r}, base_url={self._server.base_url!r})"

    def _complete(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None
    ) -> Completion:
        if schema is None:
            return self._ask({"messages": [dict(each) for each in messages]})
        for form in range(self._form, _WORDS):
            try:
                found = self._ask(_body(messages, schema, form))
            except _FormRefused:
                continue
            self._form = form
            return found
        found = self._ask(_body(messages, schema, _WORDS))
        self._form = _WORDS
        return found

    def _ask(self, body: dict[str, Any]) -> Completion:
        try:
            answer = self._server.post(_PATH, {"model": self._model, **self._options, **body})
        except Unreachable as trouble:
            raise ModelUnavailable(str(trouble)) from trouble.__cause__
        except Refused as trouble:
            logger.debug("%s: %s", self._server.url(_PATH), trouble)
            is_form = trouble.status in _NOT_UNDERSTOOD and "response_format" in body
            raise (_FormRefused if is_form else ModelFailed)(
                f"{self._server.url(_PATH)} refused model {self._model!r}: {_reason(trouble)}"
            ) from trouble.__cause__
        return self._completion(answer)

    def _completion(self, answer: bytes) -> Completion:
        try:
            found = json.loads(answer)
            text = _text_of(found["choices"][0]["message"]["content"])
            usage = found.get("usage") or {}
            return Completion(text, usage.get("prompt_tokens"), usage.get("completion_tokens"))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ModelFailed(
                f"{self._server.url(_PATH)} returned {len(answer)} bytes that are not a completion "
                f"of model {self._model!r}"
            ) from error


class _FormRefused(ModelFailed):
    """The server rejects this response_format, or rejects the request for another reason."""


def _reason(trouble: Refused) -> str:
    """Return the server's message, unless it may repeat the prompt."""
    if trouble.status in _WHO_AND_WHAT:
        return str(trouble)
    return f"status {trouble.status} (its message is logged at level DEBUG)"


def _body(
    messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], form: int
) -> dict[str, Any]:
    said = [dict(each) for each in messages]
    if form == _SCHEMA:
        wanted = {"name": "answer", "strict": True, "schema": schema}
        return {
            "messages": said,
            "response_format": {"type": "json_schema", "json_schema": wanted},
        }
    told = f"Answer with one JSON document of this JSON schema:\n{json.dumps(schema)}"
    body: dict[str, Any] = {"messages": [{"role": "system", "content": told}, *said]}
    return {**body, "response_format": {"type": "json_object"}} if form == _JSON else body


def _text_of(content: Any) -> str:
    """Return the text of an answer, also if sent in parts; raise ``TypeError`` if there is none."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError("the content is not text")
    return content
