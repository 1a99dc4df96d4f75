"""Batches of texts of similar length: a network is fastest with many tokens of few shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def batches(tokens: Mapping[int, Sequence[int]], most: int) -> Iterator[list[int]]:
    """Yield the indices of texts by increasing length, in batches of up to ``most`` tokens."""
    batch: list[int] = []
    size = 0
    for number in sorted(tokens, key=lambda number: len(tokens[number])):
        if batch and size + len(tokens[number]) > most:
            yield batch
            batch, size = [], 0
        batch.append(number)
        size += len(tokens[number])
    if batch:
        yield batch
