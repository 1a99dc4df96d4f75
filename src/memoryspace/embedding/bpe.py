"""Llama's byte-pair tokenizer: merges pairs of pieces, the most frequent ones first."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import CorruptData

_SPACE = "▁"
_UNIT = re.compile(f"{_SPACE}*[^{_SPACE}]+|{_SPACE}+")  # merges never cross the boundary of a unit
_LONGEST_UNIT = 48  # characters: the time to merge grows with the square of the length
_REMEMBERED = 50_000  # units


class BytePairs:
    """A vocabulary and its merges. Special tokens ("<s>") in a text are plain text."""

    def __init__(self, model: dict[str, Any]) -> None:
        self._numbers: dict[str, int] = model["vocab"]
        joins = (pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"])
        self._ranks = {pair: rank for rank, pair in enumerate(joins)}
        self._remembered: dict[str, list[int]] = {}

    @classmethod
    def read(cls, path: Path) -> BytePairs:
        """Read a tokenizer file in the format of the ``tokenizers`` package."""
        try:
            return cls(json.loads(path.read_text("utf-8"))["model"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptData(f"{path} is not a byte-pair tokenizer; reinstall it") from error

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        tokens: list[int] = []
        for unit in _UNIT.findall(_SPACE + text.replace(" ", _SPACE)):
            for begin in range(0, len(unit), _LONGEST_UNIT):
                tokens += self._tokens(unit[begin : begin + _LONGEST_UNIT])
        return tokens

    def _tokens(self, unit: str) -> list[int]:
        found = self._remembered.get(unit)
        if found is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            found = self._remembered[unit] = self._join(unit)
        return found

    def _join(self, unit: str) -> list[int]:
        pieces = [piece for character in unit for piece in self._characters(character)]
        never = len(self._ranks)
        while len(pieces) > 1:
            ranks = [self._ranks.get(f"{left} {right}", never) for left, right in pairwise(pieces)]
            best = min(ranks)
            if best == never:
                break
            at = ranks.index(best)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
        return [self._numbers[piece] for piece in pieces]

    def _characters(self, character: str) -> list[str]:
        """Return a character, or its bytes if the vocabulary lacks it."""
        if character in self._numbers:
            return [character]
        return [f"<0x{byte:02X}>" for byte in character.encode("utf-8", "replace")]
