"""Archived content as plain text lines, and its JSON form.

Blocks and messages are written as text; media data is named, not shown. A line longer than
``LONGEST_LINE`` counts as several, so that every part of it has a line number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from ..errors import CorruptData, NotSerializable
from ..message import Msg
from ..message.msg import peek_content

Kind: TypeAlias = Literal["text", "blocks", "messages"]  # how archived data is to be read

LONGEST_LINE = 1000  # characters
_LONGEST_ADDRESS = 200
_MEDIA = ("image", "audio", "video")


def shown(kind: Kind, data: str) -> str:
    """Return an archived content as readable text."""
    if kind == "text":
        return data
    if kind == "blocks":
        return text_of_blocks(parse(data))
    return "\n\n".join(map(_text_of_dict, parse(data)))


def text_of_message(msg: Msg) -> str:
    """Return a message as text, after a line with its role, name, time and id."""
    return f"[{msg.role} {msg.name}, {msg.timestamp}, message {msg.id}]\n{text_of_content(msg)}"


def _text_of_dict(msg: dict[str, Any]) -> str:
    """Return the text of a serialised message, without building a ``Msg``."""
    head = f"[{msg['role']} {msg['name']}, {msg['timestamp']}, message {msg['id']}]"
    said = msg["content"]
    return f"{head}\n{said if isinstance(said, str) else text_of_blocks(said)}"


def text_of_content(msg: Msg) -> str:
    """Return the content of a message as text."""
    said = peek_content(msg)
    return said if isinstance(said, str) else text_of_blocks(said)


def text_of_blocks(blocks: Sequence[Any]) -> str:
    """Return blocks as text, one per line."""
    return "\n".join(map(text_of_block, blocks))


def text_of_block(block: Any) -> str:
    """Return a block as text."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "thinking":
        return f"(thinking) {block.get('thinking', '')}"
    if kind == "tool_use":
        return f"(calls {block.get('name')}) {_compact(block.get('input'))}"
    if kind == "tool_result":
        return f"(result of {block.get('name')}) {text_of_output(block.get('output'))}"
    if kind in _MEDIA:
        return f"({media_name(block)})"
    return _compact(block)


def text_of_output(output: Any) -> str:
    """Return the output of a tool as text."""
    if isinstance(output, str):
        return output
    return text_of_blocks(output) if isinstance(output, list) else _compact(output)


def media_name(block: dict[str, Any]) -> str:
    """Return a description of an image, audio or video block, without its data."""
    source = block.get("source")
    if not isinstance(source, dict):
        return str(block.get("type"))
    if source.get("type") == "base64":
        size = len(str(source.get("data", "")))
        return f"{source.get('media_type', block.get('type'))}, {size:,} characters of data"
    address = str(source.get("url", ""))
    short = address if len(address) <= _LONGEST_ADDRESS else f"{address[:_LONGEST_ADDRESS]}…"
    return f"{block.get('type')} at {short}"


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, long ones split at ``LONGEST_LINE``."""
    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= LONGEST_LINE:
            lines.append(line)
        else:
            starts = range(0, len(line), LONGEST_LINE)
            lines += [line[start : start + LONGEST_LINE] for start in starts]
    return lines


def count_lines(text: str) -> int:
    """Return how many lines ``lines_of`` would return."""
    if len(text) <= LONGEST_LINE:
        return text.count("\n") + 1
    return sum(max(1, -(-len(line) // LONGEST_LINE)) for line in text.split("\n"))


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dump(data: Any) -> str:
    """Return JSON that reads back as equal data; raise ``NotSerializable`` if there is none."""
    try:
        _check_keys(data)
        return _ENCODER.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerializable(
            f"a value cannot be written as JSON ({type(error).__name__}); use plain data instead"
        ) from error


def parse(text: str) -> Any:
    """Return the data of JSON text. The error does not show the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{len(text)} characters are not valid JSON") from error


def _check_keys(data: Any) -> None:
    """Raise ``TypeError`` for keys that are not str: JSON would turn the key 1 into "1"."""
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                raise TypeError("a key is not a str")
            if not isinstance(value, str):
                _check_keys(value)
    elif isinstance(data, list | tuple):
        for value in data:
            _check_keys(value)


def _compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of other types, or a cycle
        return f"({type(value).__name__}, not JSON)"
