"""A file of model answers keyed by model and prompt, so that no prompt is paid for twice."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class _Line(msgspec.Struct, frozen=True):
    key: str
    said: msgspec.Raw


class AnswerCache:
    """Model answers by model and prompt. Unreadable lines are ignored."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._answers: dict[str, bytes] = {}
        if path is not None and path.exists():
            _drop_torn_line(path)
            for line in path.read_bytes().splitlines():
                self._read(line)

    def get(self, model: str, messages: Sequence[Mapping[str, str]], answer: type[T]) -> T | None:
        """Return the model's stored answer to exactly this prompt, if there is one."""
        found = self._answers.get(_key(model, messages))
        if found is None:
            return None
        try:
            return msgspec.json.decode(found, type=answer)
        except msgspec.MsgspecError:
            return None

    def keep(self, model: str, messages: Sequence[Mapping[str, str]], said: msgspec.Struct) -> None:
        """Store an answer durably: once this returns, a power cut does not lose it."""
        key, encoded = _key(model, messages), msgspec.json.encode(said)
        self._answers[key] = encoded
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(_Line(key, msgspec.Raw(encoded))) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, line: bytes) -> None:
        try:
            found = msgspec.json.decode(line, type=_Line)
        except msgspec.MsgspecError:
            return
        self._answers[found.key] = bytes(found.said)


def _key(model: str, messages: Sequence[Mapping[str, str]]) -> str:
    return hashlib.sha256(msgspec.json.encode([model, list(messages)])).hexdigest()


def _drop_torn_line(path: Path) -> None:
    """Drop an incomplete last line, so that the next append starts on a line of its own."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
