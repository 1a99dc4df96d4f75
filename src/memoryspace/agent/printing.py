"""Console output of messages that grow: prints only the new part of each block.

The text of a block may grow between calls; its beginning must not change. Control characters that
could move the cursor or change the terminal are replaced, because the text may be untrusted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, TextIO, TypeAlias

from ..message import Msg
from ..message.msg import peek_content

Stream: TypeAlias = tuple[str, int]  # the id of a message, and the index of a block

_CONTROLS = {sign: "\ufffd" for sign in (*range(32), *range(127, 160)) if chr(sign) not in "\n\t"}
_CONTROLS[ord("\r")] = ""


class Console:
    """How much of each incomplete message an agent has printed."""

    def __init__(self) -> None:
        self._shown: dict[Stream, int] = {}

    def show(self, msg: Msg, last: bool) -> None:
        """Write what is new in ``msg``; with ``last`` also its tool calls and a line break."""
        for place, (header, text) in enumerate(_parts(msg, last)):
            stream = (msg.id, place)
            _line.write(stream, header, text[self._shown.get(stream, 0) :])
            self._shown[stream] = len(text)
        if last:
            _line.end(msg.id)
            self._shown = {key: size for key, size in self._shown.items() if key[0] != msg.id}

    def forget(self) -> None:
        """Drop messages that will never be completed."""
        self._shown.clear()


class _Line:
    """The console's current line, which all agents share; a new ``sys.stdout`` has a new line."""

    def __init__(self) -> None:
        self._stream: Stream | None = None
        self._output: TextIO | None = None

    def write(self, stream: Stream, header: str, text: str) -> None:
        if not text:
            return
        if self._output is not sys.stdout:
            self._output, self._stream = sys.stdout, None
        if stream != self._stream:
            text = f"{'' if self._stream is None else chr(10)}{header}: {text}"
            self._stream = stream
        _write(text)

    def end(self, msg_id: str) -> None:
        if self._stream is not None and self._stream[0] == msg_id:
            self._stream = None
            _write("\n")


_line = _Line()


def _parts(msg: Msg, last: bool) -> Iterator[tuple[str, str]]:
    """Yield a header and a text for each block; the text is empty if the block is not printed."""
    content = peek_content(msg)
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            yield msg.name, block.get("text") or ""
        elif kind == "thinking":
            yield f"{msg.name}(thinking)", block.get("thinking") or ""
        elif kind in ("tool_use", "tool_result") and last:
            yield msg.name, json.dumps(block, ensure_ascii=False, indent=4, default=str)
        else:
            yield msg.name, ""


def _write(text: str) -> None:
    out = sys.stdout
    if out is None:  # a program without a console
        return
    text = text.translate(_CONTROLS)
    try:
        out.write(text)
    except UnicodeEncodeError:  # a console with a limited character set, or a lone surrogate
        encoding = out.encoding or "ascii"
        out.write(text.encode(encoding, "replace").decode(encoding))
    out.flush()
