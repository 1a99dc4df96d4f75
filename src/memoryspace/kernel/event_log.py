"""``EventLog``: events as lines of JSON in a file that grows by whole batches, or not at all.

What JSON cannot hold is written as text, so no value of an event can cost the events beside it.
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
    """A file of JSON lines. Lines that are in it already stay."""

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
                f"{path}: {error.strerror}; choose an output_dir that can be written"
            ) from error

    def append(self, batch: list[Event]) -> int:
        """Write a line for each event; return how many were written. Never raises."""
        try:
            lines, encoded = _encoder.encode_lines(batch), len(batch)
        except Exception:  # whatever a value's own text raises: it must not cost the others
            each = [line for line in map(_encode_one, batch) if line is not None]
            lines, encoded = b"".join(each), len(each)
        return encoded if self._write(lines) else 0

    def close(self) -> None:
        """Close the file. Once is enough, more does no harm."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _write(self, lines: bytes) -> bool:
        """Write all of this and return True, or leave the file as it was."""
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
        """A run that was killed may have left half a line: the next one begins on its own."""
        if self._size:
            with open(path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    self._write(b"\n")


def as_utf8(text: str) -> str:
    """Return text that can be written as UTF-8: a lone surrogate is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _encode_one(event: Event) -> bytes | None:
    """Return an event as a line; each value that JSON cannot hold, as text."""
    try:
        data = {as_utf8(field): _plain(value) for field, value in event.data.items()}
        return _encoder.encode_lines([Event(as_utf8(event.name), event.at, data)])
    except Exception:  # not written, and so counted as lost
        return None


def _plain(value: Any) -> Any:
    try:
        return msgspec.Raw(_encoder.encode(value))
    except Exception:  # a lone surrogate, a huge number, a cycle
        return as_utf8(_as_text(value))


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # its own fault; that it was there is still worth a word
        return f"<{type(value).__name__} without text>"


_encoder = msgspec.json.Encoder(enc_hook=_as_text)
