"""Child processes of an experiment: to measure their own memory, or to be killed.

A child is a module of this package. Its only argument is its instructions as JSON; its output is
lines of JSON on standard output.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ...errors import MemorySpaceError
from ..harness.experiment import Cell, CellResult

Tick = Callable[[int, int], None]
_Order = TypeVar("_Order")


class _ChildLine(msgspec.Struct, omit_defaults=True):
    """A child's progress, or the result of its cell."""

    done: int = 0
    of: int = 0
    result: CellResult | None = None


def spawn(module: str, order: Any) -> subprocess.Popen[bytes]:
    """Start a child. The caller owns both pipes; errors go to standard error."""
    return subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.{module}", msgspec.json.encode(order).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def order_of(kind: type[_Order]) -> _Order:
    """Return the instructions of this child."""
    return msgspec.json.decode(sys.argv[1], type=kind)


def say(value: Any) -> None:
    """Write a line and flush it."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def run_apart(module: str, cell: Cell, tick: Tick) -> CellResult:
    """Run a cell in a process of its own, so that its memory can be measured alone."""
    result = None
    with spawn(module, dict(cell)) as child:
        assert child.stdout is not None
        for line in child.stdout:
            report = msgspec.json.decode(line, type=_ChildLine)
            result = report.result
            tick(report.done, report.of)
    if child.returncode or result is None:
        raise MemorySpaceError(f"the process of {module} ended with {child.returncode}")
    return result


def answer(run: Callable[[Cell, Tick], CellResult]) -> None:
    """Run as the child of ``run_apart``."""
    cell: Mapping[str, Any] = order_of(dict)
    result = run(cell, lambda done, of: say(_ChildLine(done, of)))
    say(_ChildLine(result=result))
