"""Where an export is written: a file that appears only when complete, or an open one."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, cast

from ..files import replacing
from .arrivals import Arrival
from .lines import Check, Done, End, Header, Line, encoded, record_line

CHECK_EVERY = 1000  # records

_LEVEL = 6  # of compression


class LineWriter:
    """Writes the lines of an export and their checksums."""

    def __init__(self, file: BinaryIO, header: Header) -> None:
        self._file = file
        self._hash = sha256()
        self._user: str | None = None
        self._own = 0
        self.users = self.records = self.vectors = 0
        self._write(encoded(Line(memoryspace=header)))

    def begin(self, user: str) -> None:
        """Begin the section of a user."""
        self._user, self._own = user, 0
        self._write(encoded(Line(user=user)))

    def write(self, batch: list[Arrival]) -> None:
        """Write some records of the user."""
        done = 0
        while done < len(batch):
            part = batch[done : done + CHECK_EVERY - self._own % CHECK_EVERY]
            self._write(b"".join(map(record_line, part)))
            self.vectors += sum(len(each.vectors) for each in part)
            done += len(part)
            self._own += len(part)
            if self._own % CHECK_EVERY == 0:
                self._write(encoded(Line(check=Check(self._own, self._hash.hexdigest()))))

    def done(self) -> None:
        """End the section of the user."""
        assert self._user is not None  # set by begin()
        self._write(encoded(Line(done=Done(self._user, self._own, self._hash.hexdigest()))))
        self.users += 1
        self.records += self._own

    def end(self) -> str:
        """Write the last line; return its checksum."""
        checksum = self._hash.hexdigest()
        self._write(encoded(Line(end=End(self.users, self.records, checksum))))
        return checksum

    def _write(self, data: bytes) -> None:
        self._hash.update(data)
        self._file.write(data)


@contextmanager
def written(target: Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open a target; a file is replaced once it is complete, compressed if its name ends so."""
    if not isinstance(target, Path):
        yield target
        return
    with replacing(target) as file:
        if target.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as compressed:
            yield cast(BinaryIO, compressed)
