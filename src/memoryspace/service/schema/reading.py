"""Extraction of a message's readable text, in any form, for searches.

Text is taken whole. Data (a tool's input and output) is taken with its keys, including JSON inside
strings, up to a limit. Reasoning, images, audio, the bytes of files and call ids are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

MAX_DATA_CHARACTERS = 100_000  # of one part; more would drown the rest
MAX_DATA_DEPTH = 50

# Bytes as text, such as an image in base64: not worth searching.
_BLOB = re.compile(r"(?:data:[^,\s]{0,100},)?[A-Za-z0-9+/=_-]{400,}")


def text_of_content(content: object) -> str:
    """Return the text of a message's content: a str, or a list of parts, each a dict or a str."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    return joined(map(text_of_part, content))


def text_of_part(part: object) -> str:
    """Return the text of one content part."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind = part.get("type")
    return _READERS.get(kind, _text)(part) if isinstance(kind, str) else _text(part)


def text_of_call(name: object, arguments: object) -> str:
    """Return the text of a tool call."""
    return joined([name if isinstance(name, str) else "", text_of_data(arguments)])


def text_of_data(data: object) -> str:
    """Return the text of JSON data with its keys, one item a line, up to a limit."""
    return joined(_bounded(_lines(_opened(data), 0)))


def joined(texts: Iterable[str]) -> str:
    """Join the non-empty texts as lines."""
    return "\n".join(text for text in texts if text)


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    left = MAX_DATA_CHARACTERS
    for line in lines:
        yield line[:left]
        left -= len(line) + 1
        if left <= 0:
            return


def _lines(data: object, depth: int) -> Iterator[str]:
    if depth > MAX_DATA_DEPTH:
        return
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _named(key, _opened(value), depth)
    elif isinstance(data, list | tuple):
        for item in data:
            yield from _lines(_opened(item), depth + 1)
    else:
        yield _scalar(data)


def _named(key: object, value: object, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple):
        yield f"{key}:"
        yield from _lines(value, depth + 1)
    elif scalar := _scalar(value):
        yield f"{key}: {scalar}"


def _opened(value: object) -> Any:
    """Decode JSON inside a string, whose escapes hide words (北京 as \\u5317\\u4eac)."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return value if isinstance(value, str) and not _BLOB.fullmatch(value) else ""


def _text(part: Mapping[str, Any]) -> str:
    return _str(part, "text")


def _refusal(part: Mapping[str, Any]) -> str:
    return _str(part, "refusal")


def _data(part: Mapping[str, Any]) -> str:
    data = part.get("data")
    if isinstance(data, Mapping):
        data = {key: value for key, value in data.items() if key != "call_id"}
    return text_of_data(data)


def _file(part: Mapping[str, Any]) -> str:
    inner = part.get("file")  # in OpenAI's format
    return _str(part, "filename") or (_str(inner, "filename") if isinstance(inner, dict) else "")


def _tool_use(part: Mapping[str, Any]) -> str:
    return text_of_call(part.get("name"), part.get("input"))


def _tool_result(part: Mapping[str, Any]) -> str:
    output = part.get("output", part.get("content"))
    return text_of_content(output) if isinstance(output, list) else text_of_data(output)


def _nothing(part: Mapping[str, Any]) -> str:
    return ""


def _str(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""


_READERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "refusal": _refusal,
    "data": _data,
    "file": _file,
    "input_file": _file,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "thinking": _nothing,
    "reasoning": _nothing,
}
