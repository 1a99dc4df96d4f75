"""The data files of an experiment: the user's, or a generated sample of the same format."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...errors import CorruptData, InvalidInput
from .options import Options

SAMPLE = "sample"

_Made = TypeVar("_Made")
_UNPACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
    ".zip": lambda packed: _only_member(packed),
}


class Data:
    """The files of one run by name, their checksums, and values derived from them."""

    def __init__(self, files: Mapping[str, Path], label: str, options: Options) -> None:
        self.files = dict(files)
        self.label = label  # "sample", or the name of the data set
        self.options = options
        self.checksums = {name: _sha256(path) for name, path in self.files.items()}
        self.tick: Callable[[int, int], None] = _ignore  # lets a long cell report its progress
        self.folder: Path | None = None  # where results go, and what may be cached beside them
        self._made: dict[Hashable, Any] = {}

    def path_of(self, name: str) -> Path:
        """Return the path of a file that the experiment declares."""
        return self.files[name]

    def bytes_of(self, name: str) -> bytes:
        """Return a file's content, decompressed according to its suffix."""
        return unpacked(self.files[name])

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return ``make()``, computed once per key."""
        if key not in self._made:
            self._made[key] = make()
        found: _Made = self._made[key]
        return found


def find_files(path: Path, names: Sequence[str]) -> tuple[dict[str, Path], str]:
    """Return the path of each file, in a folder or, if there is only one, as the path itself."""
    if path.is_dir():
        files = {name: _in_folder(path, name) for name in names}
        return files, "+".join(_label(file.name) for file in files.values())
    if not path.exists():
        raise InvalidInput(f"no such file or folder: {path}; check --data-path")
    if len(names) != 1:
        wanted = ", ".join(names) or "no file at all"
        raise InvalidInput(f"{path} is one file; pass a folder that holds {wanted}")
    return {names[0]: path}, _label(path.name)


def unpacked(path: Path) -> bytes:
    """Return the content of a file, decompressed according to its suffix."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    unpack = _UNPACKERS.get(path.suffix)
    if unpack is None:
        return content
    try:
        return unpack(content)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise CorruptData(f"{path} does not unpack ({error}): fetch it again") from error


def _in_folder(folder: Path, name: str) -> Path:
    """Return a file of a folder, packed or plain; accept its development part, ``_dev``."""
    stem, dot, rest = name.partition(".")
    for whole in (name, f"{stem}_dev{dot}{rest}"):
        for candidate in (folder / whole, (folder / whole).with_suffix("")):
            if candidate.is_file():
                return candidate
    raise InvalidInput(f"{folder} has no file {name}; pass the folder or the file that holds it")


def _only_member(packed: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = [each for each in archive.infolist() if not each.is_dir()]
        if len(members) != 1:
            raise zipfile.BadZipFile(f"expected one file, found {len(members)}")
        return archive.read(members[0])


def _label(name: str) -> str:
    return name.split(".", 1)[0]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ignore(done: int, of: int) -> None:
    return None
