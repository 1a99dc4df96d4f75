"""Access traces: which objects were stored, used and dropped, when, and their sizes.

``TraceRecorder`` listens to any ``MemoryManager``, so your own runs can be replayed too.

Example::

    with TraceRecorder(space.events) as recorder:
        ...
    write_trace(path, recorder.steps, {"what": "my agent, one day"})

The file is gzipped JSON Lines: a header that describes the trace, then one step per line:
``[seconds, "s" | "u" | "e", number of the object, bytes]``, for stored, used, ended.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ...errors import CorruptData
from ...events import Event, EventStream
from ...files import write_atomic
from ...lifecycle import ClosingNow
from ..harness.data import unpacked

Verb: TypeAlias = Literal["s", "u", "e"]
STORED: Verb = "s"
USED: Verb = "u"
ENDED: Verb = "e"
FORM = "memoryspace access trace 1"

_VERBS: Mapping[str, Verb] = {
    "allocation": STORED,
    "allocation_post_gc": STORED,
    "load": USED,
    "retrieve_hit": USED,
    "free": ENDED,
}


class TraceStep(NamedTuple):
    """An event of one object; ``size`` is set when it is stored."""

    at: float
    verb: Verb
    key: int
    size: int = 0


class _Head(msgspec.Struct):
    form: str
    about: dict[str, Any]


class TraceRecorder(ClosingNow):
    """Records the events of a space until closed.

    Objects stored earlier are unknown, and so are their uses.
    """

    def __init__(self, events: EventStream) -> None:
        self.steps: list[TraceStep] = []
        self._keys: dict[str, int] = {}
        self._start: float | None = None
        self._stop = events.subscribe(self._hear)

    def close(self) -> None:
        """Stop listening."""
        self._stop()

    def _hear(self, event: Event) -> None:
        verb = _VERBS.get(event.name)
        if verb is None:
            return
        name = event.data["id"]
        if verb is STORED:
            self._keys[name] = len(self._keys)
        key = self._keys.get(name)
        if key is None:
            return
        if self._start is None:
            self._start = event.at
        at = round(event.at - self._start, 6)
        self.steps.append(TraceStep(at, verb, key, event.data["size"] if verb is STORED else 0))


def write_trace(path: Path, steps: Sequence[TraceStep], about: Mapping[str, Any]) -> None:
    """Write a trace atomically: the file is the old or the new one, never a part."""
    lines = [_Head(FORM, dict(about)), *steps]
    write_atomic(path, gzip.compress(msgspec.json.Encoder().encode_lines(lines), mtime=0))


def read_trace(path: Path) -> tuple[list[TraceStep], dict[str, Any]]:
    """Return the steps of a trace and its header; an error names the malformed line."""
    first, *lines = unpacked(path).splitlines() or [b""]
    try:
        head = msgspec.json.decode(first, type=_Head)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"{path} is no access trace: {error}") from error
    if head.form != FORM:
        raise CorruptData(f"{path} is no access trace in a known format: {head.form!r}")
    return list(_checked(path, lines)), head.about


def _checked(path: Path, lines: Sequence[bytes]) -> Iterator[TraceStep]:
    """Yield steps that are possible: in order, on objects that exist."""
    decode = msgspec.json.Decoder(TraceStep).decode
    living: set[int] = set()
    last = float("-inf")
    for number, line in enumerate(lines, 2):
        try:
            step = decode(line)
        except msgspec.MsgspecError as error:
            raise CorruptData(f"line {number} of {path} is malformed: {error}") from error
        if step.at < last or (step.verb == STORED) == (step.key in living) or step.size < 0:
            raise CorruptData(f"line {number} of {path} cannot have happened: {line.decode()}")
        last = step.at
        if step.verb == STORED:
            living.add(step.key)
        elif step.verb == ENDED:
            living.discard(step.key)
        yield step


def peak_bytes(steps: Sequence[TraceStep]) -> int:
    """Return the peak of bytes held at once."""
    sizes: dict[int, int] = {}
    now = peak = 0
    for step in steps:
        if step.verb == STORED:
            sizes[step.key] = step.size
            now += step.size
            peak = max(peak, now)
        elif step.verb == ENDED:
            now -= sizes.pop(step.key)
    return peak
