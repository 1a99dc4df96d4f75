"""``EventLog``: events as lines of JSON in a file. A batch is written as a whole or not at all.

Values that JSON cannot express are written as text, so one bad value never costs other events.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..errors import StoreUnavailable
from ..events import Event


class EventLog:
    """A file of JSON lines. Lines are appended to those already in it."""

    def __init__(self, path: Path) -> None:
        self._fd: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            self._size = os.fstat(self._fd).st_size
            self._end_torn_line(path)
        except OSError as error:
            self.close()
            raise StoreUnavailable(
                f"{path}: {error.strerror}; choose a writable output_dir"
            ) from error

    def append(self, batch: list[Event]) -> int:
        """Write a line for each event; return how many were written. Never raises."""
        try:
            lines, encoded = _encoder.encode_lines(batch), len(batch)
        except Exception:  # from a value's own __str__: it must not cost the other events
            each = [line for line in map(_encode_one, batch) if line is not None]
            lines, encoded = b"".join(each), len(each)
        return encoded if self._write(lines) else 0

    def close(self) -> None:
        """Close the file. May be called more than once."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _write(self, lines: bytes) -> bool:
        """Write everything and return ``True``, or leave the file unchanged."""
        if self._fd is None:
            return False
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._fd, lines[written:] if written else lines)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            return False
        self._size += written
        return True

    def _end_torn_line(self, path: Path) -> None:
        """End a partial line that a killed process may have left."""
        if self._size:
            with open(path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    self._write(b"\n")


def as_utf8(text: str) -> str:
    """Return text that can be encoded as UTF-8, with lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _encode_one(event: Event) -> bytes | None:
    """Return an event as a line, with values that JSON cannot express as text."""
    try:
        data = {as_utf8(field): _plain(value) for field, value in event.data.items()}
        return _encoder.encode_lines([Event(as_utf8(event.name), event.at, data)])
    except Exception:  # not written; counted as lost
        return None


def _plain(value: Any) -> Any:
    try:
        return msgspec.Raw(_encoder.encode(value))
    except Exception:  # a lone surrogate, a huge number, a cycle
        return as_utf8(_as_text(value))


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # from the value's own __str__; its type is still worth recording
        return f"<{type(value).__name__} without text>"


_encoder = msgspec.json.Encoder(enc_hook=_as_text)
