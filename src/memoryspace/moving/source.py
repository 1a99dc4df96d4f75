"""Where an import reads: lines of bounded length from a file, a pipe or a compressed file."""

from __future__ import annotations

import gzip
import io
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from ..errors import ImportRefused

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BUFFER = 1 << 20
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)


class LineSource:
    """The lines of a file, read from its beginning; at most ``longest`` bytes each."""

    def __init__(self, raw: BinaryIO, name: str, longest: int) -> None:
        raw.seek(0)
        first = raw.read(4)
        raw.seek(0)
        self._name = name
        self._longest = longest
        self._raw = raw
        self.line = 0
        if first == _ZSTD:
            raise self.refused("it is compressed with zstd; decompress it first, or use gzip")
        self._lines: BinaryIO = raw
        if first[:2] == _GZIP:
            opened = gzip.GzipFile(fileobj=raw, mode="rb")
            self._lines = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, opened), _BUFFER))

    def position(self) -> int:
        """Return how many bytes of the file were read."""
        return self._raw.tell()

    def next(self) -> bytes:
        """Return the next line with its end; empty at the end of the file."""
        self.line += 1
        try:
            data = self._lines.readline(self._longest + 1)
        except _DAMAGED as error:
            raise self.refused(f"the compressed file is damaged or cut off ({error})") from None
        if len(data) > self._longest:
            raise self.refused(f"the line is longer than {self._longest} bytes")
        return data

    def refused(self, why: str, what_to_do: str = "") -> ImportRefused:
        """Return the error that the present line is to blame for."""
        advice = f"; {what_to_do}" if what_to_do else ""
        line = max(1, self.line)
        return ImportRefused(f"{self._name}, line {line}: {why}{advice}", line)


@contextmanager
def seekable(source: Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open a source that can be read twice; a pipe is copied to a temporary file."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file
    elif source.seekable():
        yield source
    else:
        with TemporaryFile() as copy:
            shutil.copyfileobj(source, copy)
            yield copy


def size_of_file(file: BinaryIO) -> int:
    """Return the length of a file in bytes."""
    return file.seek(0, io.SEEK_END)


def name_of(source: Path | BinaryIO) -> str:
    """Return the name of a source, for errors."""
    if isinstance(source, Path):
        return source.name
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the export"
