"""Bounded reading of files from outside: text, JSON, JSON Lines, and JSON inside a zip.

Nothing is unpacked to the disk, and no name inside an archive is ever used as a path. Long arrays
are read one item at a time.
"""

from __future__ import annotations

import codecs
import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from ...errors import ImportRefused
from ..source import LineSource

MAX_ITEM = 64 << 20  # characters of one item, or bytes of one document or line
MAX_UNPACKED = 16 << 30  # bytes of one file in an archive
MAX_RATIO = 200  # of compression, for files larger than LARGE
LARGE = 64 << 20  # bytes
MAX_MEMBERS = 100_000

_CHUNK = 1 << 18
_SPACE = " \t\r\n"
_ENCRYPTED = 0x1

_decoder = json.JSONDecoder()


def text_of_file(path: Path) -> str:
    """Return the text of a file in UTF-8."""
    with path.open("rb") as file:
        return decoded(_bounded(file, path.name), path.name)


def decoded(data: bytes, name: str) -> str:
    """Return bytes as text; raise ``ImportRefused`` unless they are UTF-8."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ImportRefused(
            f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8 and try again"
        ) from None
    if "\0" in text:
        raise ImportRefused(f"{name}: this is no text: it holds null characters")
    return text


def document(path: Path) -> Any:
    """Return the JSON in a file."""
    with path.open("rb") as file:
        return parsed_json(_bounded(file, path.name), path.name)


def parsed_json(data: bytes | str, name: str) -> Any:
    """Return JSON from outside; raise ``ImportRefused`` if it is not valid or nested too deep."""
    text = decoded(data, name) if isinstance(data, bytes) else data
    try:
        return json.loads(text)
    except RecursionError:
        raise ImportRefused(f"{name}: the JSON is nested too deep") from None
    except ValueError as error:  # also an integer with too many digits
        raise ImportRefused(f"{name}: this is not JSON ({error})") from None


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of every line of a JSON Lines file."""
    with path.open("rb") as file:
        lines = LineSource(file, path.name, MAX_ITEM)
        while data := lines.next():
            if data.strip():
                yield lines.line, parsed_json(data, f"{path.name}, line {lines.line}")


def items_in(file: IO[bytes], name: str) -> Iterator[Any]:
    """Yield the items of a JSON array, one at a time; a single object is one item."""
    text = _Text(file, name)
    if not text.has("["):
        yield text.item()
        return
    text.skip("[")
    while not text.has("]"):
        yield text.item()
        if text.has(","):
            text.skip(",")
        elif not text.has("]"):
            raise text.refused("an item is followed by neither ',' nor ']'")


@contextmanager
def in_zip(path: Path, pattern: str) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Open a zip; yield an iterator over the files in it whose last name matches."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield _members(archive, path.name, pattern)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ImportRefused(f"{path.name}: the archive is damaged ({error})") from None


def _members(archive: zipfile.ZipFile, name: str, pattern: str) -> Iterator[tuple[str, IO[bytes]]]:
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise ImportRefused(f"{name}: {len(infos)} files in the archive, at most {MAX_MEMBERS}")
    for info in sorted(infos, key=lambda each: each.filename):
        last = PurePosixPath(info.filename.replace("\\", "/")).name
        if info.is_dir() or not fnmatchcase(last, pattern):
            continue
        _check_member(info, f"{name}, {last}")
        with archive.open(info) as file:
            yield f"{name}, {last}", file


def _check_member(info: zipfile.ZipInfo, name: str) -> None:
    if info.flag_bits & _ENCRYPTED:
        raise ImportRefused(f"{name}: it is encrypted; unpack it first")
    is_bomb = info.file_size > max(LARGE, MAX_RATIO * info.compress_size)
    if is_bomb or info.file_size > MAX_UNPACKED:
        raise ImportRefused(
            f"{name}: {info.compress_size} bytes would become {info.file_size}, which is no "
            "export; unpack it yourself if you trust it"
        )


class _Text:
    """The text of a JSON file, read as far as needed."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._buffer = ""
        self._at = 0
        self._passed = 0  # characters before the buffer
        self._is_over = False

    def has(self, sign: str) -> bool:
        """Return whether this comes next, after any space."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at] == sign
            if self._is_over:
                raise self.refused("the file is cut off")
            self._read(_CHUNK)

    def skip(self, sign: str) -> None:
        """Pass over what comes next."""
        self._at += len(sign)

    def item(self) -> Any:
        """Return the value that comes next."""
        self.has("")
        wanted = _CHUNK
        while True:
            try:
                value, end = _decoder.raw_decode(self._buffer, self._at)
            except RecursionError:
                raise self.refused("the JSON is nested too deep") from None
            except ValueError as error:
                if self._is_over:
                    raise self.refused(f"this is not JSON ({error})") from None
            else:
                if end < len(self._buffer) or self._is_over:
                    self._at = end
                    return value
            if len(self._buffer) - self._at > MAX_ITEM:
                raise self.refused(f"an item is not JSON, or longer than {MAX_ITEM} characters")
            self._read(wanted)
            wanted *= 2

    def refused(self, why: str) -> ImportRefused:
        """Return an error that says where."""
        return ImportRefused(f"{self._name}, character {self._passed + self._at + 1}: {why}")

    def _read(self, size: int) -> None:
        data = self._file.read(size)
        self._is_over = not data
        try:
            text = self._decoder.decode(data, final=self._is_over)
        except UnicodeDecodeError as error:
            raise self.refused(f"this is not UTF-8 ({error.reason})") from None
        self._passed += self._at
        self._buffer, self._at = self._buffer[self._at :] + text, 0


def _bounded(file: BinaryIO | IO[bytes], name: str) -> bytes:
    data = file.read(MAX_ITEM + 1)
    if len(data) > MAX_ITEM:
        raise ImportRefused(f"{name}: the file is larger than {MAX_ITEM} bytes; split it")
    return data
