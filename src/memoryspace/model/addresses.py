"""Where providers are reached, unless another address is given."""

from __future__ import annotations

import os

DASHSCOPE = "https://dashscope.aliyuncs.com"
DEEPSEEK = "https://api.deepseek.com/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta"
OPENAI = "https://api.openai.com/v1"
OLLAMA_PORT = 11434


def ollama_address(host: str | None) -> str:
    """Return where Ollama is: at ``host``, at ``OLLAMA_HOST``, or on this machine.

    A bare name, or one with a port, is made an address.
    """
    found = host if host is not None else os.environ.get("OLLAMA_HOST", "")
    if "://" in found:
        return found.rstrip("/")
    name, _, port = found.rstrip("/").partition(":")
    return f"http://{name or 'localhost'}:{port or OLLAMA_PORT}"
