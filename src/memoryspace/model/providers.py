"""Chat models of other providers, through their OpenAI-compatible servers.

Each takes prompts in its provider's native format, as the formatter of that name writes them, and
in OpenAI's. ``base_url`` selects another server of the same kind: a proxy, or another region.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput
from .addresses import DASHSCOPE, DEEPSEEK, GEMINI, ollama_address
from .dialects import as_openai
from .forms import Form, ModelRequest
from .openai import OpenAIChatModel

_NATIVE, _COMPATIBLE = "/api/v1", "/compatible-mode/v1"  # DashScope's two APIs
_OLLAMA_OPTIONS = {  # names in Ollama's native API, and in its compatible one
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "num_predict": "max_tokens",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}


class _CompatibleModel(OpenAIChatModel):
    """A model of another provider. The key is required: OpenAI's must not be sent there."""

    def __init__(
        self,
        model_name: str,
        api_key: str,
        stream: bool,
        *,
        base_url: str,
        client_kwargs: Mapping[str, Any] | None,
        generate_kwargs: Mapping[str, Any] | None,
        extra_body: Mapping[str, Any] | None = None,
        client: Any = None,
    ) -> None:
        if not api_key:
            raise InvalidInput(f"{type(self).__name__} needs an api_key")
        options = dict(generate_kwargs) if generate_kwargs is not None else {}
        if extra_body:
            options["extra_body"] = {**extra_body, **options.get("extra_body", {})}
        super().__init__(
            model_name,
            api_key,
            stream,
            client_kwargs={"base_url": base_url, **(client_kwargs or {})},
            generate_kwargs=options,
            client=client,
        )

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        return as_openai(request.messages)


class DashScopeChatModel(_CompatibleModel):
    """Qwen and other models of Alibaba Cloud.

    Args:
        model_name: The name of the model.
        api_key: The key.
        stream: Whether answers are streamed.
        enable_thinking: DashScope's option.
        generate_kwargs: Options of every request.
        base_http_api_url: The address of the native API; the compatible one is derived from it.
        base_url: The address of the compatible API.
        client_kwargs: Options of the SDK's client.
        client: An ``AsyncOpenAI`` to use; it stays open.
    """

    def __init__(
        self,
        model_name: str,
        api_key: str,
        stream: bool = True,
        enable_thinking: bool | None = None,
        generate_kwargs: Mapping[str, Any] | None = None,
        base_http_api_url: str | None = None,
        *,
        base_url: str = DASHSCOPE + _COMPATIBLE,
        client_kwargs: Mapping[str, Any] | None = None,
        client: Any = None,
    ) -> None:
        if base_http_api_url is not None:
            base_url = base_http_api_url.rstrip("/").removesuffix(_NATIVE) + _COMPATIBLE
        super().__init__(
            model_name,
            api_key,
            stream,
            base_url=base_url,
            client_kwargs=client_kwargs,
            generate_kwargs=generate_kwargs,
            extra_body={} if enable_thinking is None else {"enable_thinking": enable_thinking},
            client=client,
        )


class DeepSeekChatModel(_CompatibleModel):
    """DeepSeek's models. The server guarantees no schema, so a tool call takes its place."""

    structured_forms = (Form.TOOL, Form.WORDS)

    def __init__(
        self,
        model_name: str,
        api_key: str,
        stream: bool = True,
        generate_kwargs: Mapping[str, Any] | None = None,
        *,
        base_url: str = DEEPSEEK,
        client_kwargs: Mapping[str, Any] | None = None,
        client: Any = None,
    ) -> None:
        super().__init__(
            model_name,
            api_key,
            stream,
            base_url=base_url,
            client_kwargs=client_kwargs,
            generate_kwargs=generate_kwargs,
            client=client,
        )


class GeminiChatModel(_CompatibleModel):
    """Google's Gemini models. ``thinking_config`` is Gemini's option."""

    def __init__(
        self,
        model_name: str,
        api_key: str,
        stream: bool = True,
        thinking_config: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        generate_kwargs: Mapping[str, Any] | None = None,
        *,
        base_url: str = GEMINI + "/openai/",
        client: Any = None,
    ) -> None:
        google = {"google": {"thinking_config": dict(thinking_config)}} if thinking_config else {}
        super().__init__(
            model_name,
            api_key,
            stream,
            base_url=base_url,
            client_kwargs=client_kwargs,
            generate_kwargs=generate_kwargs,
            extra_body={"extra_body": google} if google else {},
            client=client,
        )


class OllamaChatModel(_CompatibleModel):
    """Models of an Ollama server.

    Args:
        model_name: The name of the model.
        stream: Whether answers are streamed.
        options: Ollama's options; those that its compatible API lacks are refused.
        enable_thinking: Whether a reasoning model reasons.
        host: The server; by default ``OLLAMA_HOST``, or this machine.
        client_kwargs: Options of the SDK's client.
        generate_kwargs: Options of every request.
        client: An ``AsyncOpenAI`` to use; it stays open.

    Raises:
        InvalidInput: If an option is not supported.
    """

    def __init__(
        self,
        model_name: str,
        stream: bool = False,
        options: Mapping[str, Any] | None = None,
        enable_thinking: bool | None = None,
        host: str | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        generate_kwargs: Mapping[str, Any] | None = None,
        *,
        client: Any = None,
    ) -> None:
        super().__init__(
            model_name,
            "ollama",  # the SDK needs a key, the server does not
            stream,
            base_url=f"{ollama_address(host)}/v1",
            client_kwargs=client_kwargs,
            generate_kwargs={**_ollama_options(options), **(generate_kwargs or {})},
            client=client,
        )
        if enable_thinking is not None:
            self.reasoning_effort = "medium" if enable_thinking else "none"


def _ollama_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    given = options if options is not None else {}
    unknown = sorted(set(given) - set(_OLLAMA_OPTIONS))
    if unknown:
        raise InvalidInput(
            f"Ollama's OpenAI-compatible server does not accept {', '.join(unknown)}; "
            f"set it in the Modelfile of the model"
        )
    return {_OLLAMA_OPTIONS[name]: value for name, value in given.items()}
