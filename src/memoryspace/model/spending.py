"""``Spending``: counts model calls, failures, tokens and seconds, by purpose."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace as change

from .contract import Completion

Clock: TypeAlias = Callable[[], float]


class Call(Struct, frozen=True, kw_only=True):
    """One call of a model. A call without a usable answer is a failure."""

    purpose: str
    model: str
    seconds: float
    input_tokens: int | None = None
    output_tokens: int | None = None
    is_failure: bool = False


class Spent(Struct, frozen=True):
    """The sum of some calls. ``uncounted`` calls are those without token counts."""

    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    uncounted: int = 0
    seconds: float = 0.0

    def plus(self, call: Call) -> Spent:
        """Return the sum with one more call."""
        is_uncounted = call.input_tokens is None and call.output_tokens is None
        return Spent(
            self.calls + 1,
            self.failures + call.is_failure,
            self.input_tokens + (call.input_tokens or 0),
            self.output_tokens + (call.output_tokens or 0),
            self.uncounted + (is_uncounted and not call.is_failure),
            self.seconds + call.seconds,
        )


class Spending:
    """Adds up model calls, in total and by purpose.

    Args:
        listener: Called with each ``Call``, which contains no text of the conversation.
        clock: Measures durations.

    Examples:
        >>> Spending().total.calls
        0
    """

    def __init__(
        self,
        listener: Callable[[Call], None] | None = None,
        *,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.clock = clock
        self._listener = listener
        self._by_purpose: dict[str, Spent] = {}
        self._total = Spent()
        self._lock = threading.Lock()  # event loops in several threads may share it

    @property
    def total(self) -> Spent:
        """All calls together."""
        return self._total

    @property
    def by_purpose(self) -> dict[str, Spent]:
        """The sums by purpose, as a copy."""
        with self._lock:
            return dict(self._by_purpose)

    def add(self, call: Call) -> None:
        """Count a call."""
        with self._lock:
            self._total = self._total.plus(call)
            self._by_purpose[call.purpose] = self._by_purpose.get(call.purpose, Spent()).plus(call)
        if self._listener is not None:
            self._listener(call)


def priced(call: Call, completion: Completion) -> Call:
    """Return the call with the token counts of its answer."""
    return change(
        call, input_tokens=completion.input_tokens, output_tokens=completion.output_tokens
    )
