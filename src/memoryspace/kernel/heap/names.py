"""Ids that callers chose, by handle and back, in many small dicts.

One big dict would stop everything for tens of milliseconds whenever it grows.
"""

from __future__ import annotations

_SHARDS = 256


class ObjectNames:
    """A two-way mapping between names and handles."""

    def __init__(self) -> None:
        self._handles: list[dict[str, int]] = [{} for _ in range(_SHARDS)]
        self._names: list[dict[int, str]] = [{} for _ in range(_SHARDS)]
        self._count = 0

    def __setitem__(self, name: str, handle: int) -> None:
        self._handles[hash(name) % _SHARDS][name] = handle
        self._names[handle % _SHARDS][handle] = name
        self._count += 1

    def get(self, name: str) -> int:
        """Return the handle of a name, or 0."""
        return self._handles[hash(name) % _SHARDS].get(name, 0)

    def of(self, handle: int) -> str | None:
        """Return the name of a handle, or ``None``."""
        return self._names[handle % _SHARDS].get(handle)

    def forget(self, handle: int) -> None:
        """Drop a handle's name, unless another object has taken it since."""
        name = self._names[handle % _SHARDS].pop(handle, None)
        if name is None:
            return
        self._count -= 1
        if self.get(name) == handle:
            del self._handles[hash(name) % _SHARDS][name]

    def __len__(self) -> int:
        return self._count
