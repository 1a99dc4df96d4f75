"""Texts from the command line or from standard input, which ``-`` stands for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from ..errors import InvalidInput

STDIN = "-"
AT_ONCE = 100  # messages that are added together
MOST_LINE = 8 << 20  # bytes of a line: more than the longest message takes as JSON
MOST_TEXT = 8 << 20  # bytes of a text that is read whole


def whole(words: Sequence[str]) -> str:
    """Return the words as one text, or standard input as a text."""
    if list(words) != [STDIN]:
        return " ".join(words)
    data = sys.stdin.buffer.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise InvalidInput(f"standard input has more than {MOST_TEXT} bytes; give less")
    return _decoded(data, "standard input").strip()


def batches(texts: Sequence[str], *, as_json: bool) -> Iterator[tuple[int, list[Any]]]:
    """Yield messages in batches, each with the number of its first: texts, or dicts from JSON."""
    if list(texts) == [STDIN]:
        each = _lines()
    else:
        each = ((number, text) for number, text in enumerate(texts, 1))
    read = ((number, _message(number, text) if as_json else text) for number, text in each)
    while batch := list(islice(read, AT_ONCE)):
        yield batch[0][0], [message for _, message in batch]


def _lines() -> Iterator[tuple[int, str]]:
    """Yield the lines of standard input that are not empty, with their numbers."""
    number = 0
    while line := sys.stdin.buffer.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            raise InvalidInput(f"line {number} has more than {MOST_LINE} bytes; split it")
        text = _decoded(line, f"line {number}").strip()
        if text:
            yield number, text


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{what} is not UTF-8 text (byte {error.start} of it is 0x{data[error.start]:02x})"
        ) from None


def _message(number: int, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise InvalidInput(f"message {number} is not a JSON object: {error}") from None
