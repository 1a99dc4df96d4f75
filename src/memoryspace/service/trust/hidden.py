"""Detection of text that a model sees and a reader does not. Every search is bounded."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

_MAX_PIECE = 4096  # characters read of a comment that is not closed

_SPELT = re.compile(r"(?<![a-z])(?:[a-z][ .\-*/|]){7,200}[a-z](?![a-z])", re.IGNORECASE)
_LEAST_BASE64 = 24  # characters: fewer cannot hold an instruction
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{_LEAST_BASE64},4096}}={{0,2}}")
_INVISIBLE_STYLE = re.compile(
    r"(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0|opacity\s?:\s?0\b)"
    r"[^>]{0,200}>([^<]{1,400})",
    re.IGNORECASE,
)
_TO_A_MODEL = re.compile(
    r"\b(?:ai|llms?|assistants?|language models?|chatbots?|chatgpt|claude|agents?|instructions?"
    r"|system prompt)\b|助手|模型|指令|人工智能",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:must|ignore|disregard|send|call|do not|don't|always|never|reply|respond|say|output"
    r"|recommend|obey|rate|execute|delete|forward)\b|必须|忽略|不要|调用|发送|回复|执行|删除",
    re.IGNORECASE,
)
_OVERRIDE = re.compile("[\u202d\u202e]([^\u202c\u202d\u202e\n]{4,400})")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
_INVISIBLE_RUN = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff]{16}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{8}")  # flags such as England's have five


def hidden_in(text: str) -> tuple[str, int] | None:
    """Return the kind and position of text hidden by invisible characters or mark-up."""
    for name, found in (("unseen signs", _INVISIBLE_RUN), ("unseen signs", _TAGS)):
        if match := found.search(text):
            return name, match.start()
    match = _OVERRIDE.search(text)
    if match is not None and _RIGHT_TO_LEFT.search(text) is None:
        return "reversed text", match.start()
    return _orders_in_markup(text)


def decoded_parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the spelled-out and encoded parts of a text, decoded, with their positions."""
    for match in _SPELT.finditer(text):
        yield re.sub(r"[^A-Za-z]", "", match[0]), match.start()
    if max(map(len, text.split()), default=0) < _LEAST_BASE64:
        return
    for match in _BASE64.finditer(text):
        if (plain := _decoded(match[0])) is not None:
            yield plain, match.start()


def _orders_in_markup(text: str) -> tuple[str, int] | None:
    for comment, start in _comments(text):
        if _TO_A_MODEL.search(comment) and _ORDER.search(comment):
            return "orders in a comment", start
    if "style" in text:
        for match in _INVISIBLE_STYLE.finditer(text):
            if _TO_A_MODEL.search(match[1]) and _ORDER.search(match[1]):
                return "orders in unseen text", match.start()
    return None


def _comments(text: str) -> Iterator[tuple[str, int]]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start, start + _MAX_PIECE)
        end = end if end >= 0 else start + _MAX_PIECE
        yield text[start:end], start
        start = text.find("<!--", end)


def _decoded(blob: str) -> str | None:
    """Return decoded base64 if it is text."""
    blob = blob.rstrip("=").replace("-", "+").replace("_", "/")
    blob = blob[: len(blob) - (len(blob) % 4 == 1)]
    try:
        plain = base64.b64decode(blob + "=" * (-len(blob) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return plain if plain.isprintable() or "\n" in plain else None
