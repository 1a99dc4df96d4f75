"""A crash-safe file of finished cells: one line each, appended and synced."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...errors import CorruptData
from .experiment import Cell, CellResult, Experiment, Parameter


@dataclass(frozen=True)
class Finished:
    """A finished cell: its key, its result, and how long it took."""

    key: str
    cell: dict[str, Parameter]
    result: CellResult
    seconds: float
    code: str = ""  # the commit it was run at


def key_of(experiment: Experiment, cell: Cell, checksums: Mapping[str, str], package: str) -> str:
    """Return the key of a cell: experiment, versions, data, parameters."""
    said = [experiment.name, experiment.version, package, dict(checksums), dict(cell)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]


class CellFile:
    """The file of finished cells. A truncated last line is dropped; all others must be valid."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.finished = {each.key: each for each in self._read()}

    def append(self, finished: Finished) -> None:
        """Append a cell durably: once this returns, a power cut does not lose it."""
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(finished) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.finished[finished.key] = finished

    def _read(self) -> list[Finished]:
        if not self.path.exists():
            return []
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)  # else the next append would continue it
        lines = enumerate(content[:whole].splitlines(), 1)
        return [self._decoded(line, number) for number, line in lines]

    def _decoded(self, line: bytes, number: int) -> Finished:
        try:
            return msgspec.json.decode(line, type=Finished)
        except msgspec.MsgspecError as error:
            raise CorruptData(
                f"line {number} of {self.path} is malformed ({error}): start over with --fresh"
            ) from error
