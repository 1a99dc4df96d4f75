"""Models of other providers: ``OpenAIChatModel`` at their OpenAI-compatible servers.

Each takes prompts in its own provider's form, as the formatter of that name writes them, and in
OpenAI's. ``base_url`` leads to another server of the same kind: a proxy, or another region.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput
from .addresses import DASHSCOPE, DEEPSEEK, GEMINI, ollama_address
from .dialects import as_openai
from .forms import Form, Question
from .openai import OpenAIChatModel

_NATIVE, _COMPATIBLE = "/api/v1", "/compatible-mode/v1"  # DashScope's two ways to be spoken to
_OLLAMA_OPTIONS = {  # as Ollama's own API calls them, and as its compatible one does
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "num_predict": "max_tokens",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}


class _CompatibleModel(OpenAIChatModel):
    """A model at another provider. Its key must be given: OpenAI's is not to be sent there."""

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

    def _messages(self, question: Question) -> list[dict[str, Any]]:
        return as_openai(question.messages)


class DashScopeChatModel(_CompatibleModel):
    """Qwen and others at Alibaba Cloud.

    ``base_http_api_url`` is the address of the native API: the compatible one stands beside it.
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
    """DeepSeek's models. Its server guarantees no schema: a tool call takes its place."""

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
    """Google's models. ``thinking_config`` is Gemini's own option."""

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
    """Models on one's own machine, or on ``host`` (else that of ``OLLAMA_HOST``).

    ``options`` are Ollama's names; those that its compatible server does not take are refused.
    ``enable_thinking=False`` asks a model that thinks not to.
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
            "ollama",  # the SDK wants one, the server does not
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
            f"Ollama's OpenAI-compatible server takes no {', '.join(unknown)}; "
            f"set it in the Modelfile of the model"
        )
    return {_OLLAMA_OPTIONS[name]: value for name, value in given.items()}
