"""Default addresses of the providers."""

from __future__ import annotations

import os

DASHSCOPE = "https://dashscope.aliyuncs.com"
DEEPSEEK = "https://api.deepseek.com/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta"
OPENAI = "https://api.openai.com/v1"
OLLAMA_PORT = 11434


def ollama_address(host: str | None) -> str:
    """Return the address of Ollama: ``host``, ``OLLAMA_HOST``, or this machine.

    A bare host name, with or without a port, becomes a URL.
    """
    found = host if host is not None else os.environ.get("OLLAMA_HOST", "")
    if "://" in found:
        return found.rstrip("/")
    name, _, port = found.rstrip("/").partition(":")
    return f"http://{name or 'localhost'}:{port or OLLAMA_PORT}"
