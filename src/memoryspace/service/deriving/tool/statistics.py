"""What is kept of a tool's calls, and what can be read from them without a model.

Of each tool the newest calls are kept, each in a few words and by its hash. Two of these
collections that were made apart are united call by call, so nothing is counted twice.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from ....record import is_number
from ..task.trajectory import clipped
from .call import ToolCallResult
from .causes import cause_of

KEPT_CALLS = 100  # of each tool

_MAX_VALUE = 60  # characters of an argument's value, and of an error, that are kept
_MAX_ERROR = 120
_MAX_ARGUMENTS = 12  # of one call
_MAX_OUTPUT = 60  # of an answer
_SHOWN = 5  # errors that are told
_EXAMPLES = 3  # calls that worked
_LEAST_APART = 3  # calls before and after a change that is told
_SURE = 10.0  # how unlikely a change by chance must be (G statistic; about one in 600)

_VARYING = re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}|\d[\d.,:]*)\b", re.I)
_QUOTED = re.compile(r"'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|`[^`\n]{1,80}`")


class KeptCall(Struct, frozen=True, omit_defaults=True):
    """A call in a few words. ``source`` is the memory that tells of it."""

    hash: str
    source: str
    ok: bool
    arguments: dict[str, str] = {}
    error: str | None = None
    seconds: float | None = None
    tokens: int | None = None
    score: float | None = None
    output: str | None = None
    at: str | None = None


class Drift(Struct, frozen=True):
    """That a tool began to fail, or to work: its success rates before and since a call."""

    since: str | None
    before: float
    after: float
    calls: int  # since then


class Statistics(Struct, frozen=True):
    """The figures of some calls; one is ``None`` where nothing was measured."""

    calls: int
    successes: int
    p50_seconds: float | None
    p95_seconds: float | None
    mean_seconds: float | None
    mean_tokens: float | None
    mean_score: float | None
    errors: dict[str, int]
    drift: Drift | None = None

    @property
    def success_rate(self) -> float:
        """The share of calls that succeeded."""
        return self.successes / self.calls if self.calls else 0.0


def kept(call: ToolCallResult, source: str) -> KeptCall:
    """Return what is kept of a call."""
    arguments = {
        clipped(str(name), _MAX_VALUE): clipped(_shown(value), _MAX_VALUE)
        for name, value in list(call.arguments.items())[:_MAX_ARGUMENTS]
    }
    return KeptCall(
        call.call_hash,
        source,
        call.success,
        arguments,
        None if call.success else error_group(call.output_text, arguments),
        call.time_cost if call.time_cost > 0 else None,
        call.token_cost if call.token_cost >= 0 else None,
        call.score,
        clipped(call.output_text, _MAX_OUTPUT) if call.success else None,
        None if call.create_time is None else str(call.create_time),
    )


def kept_in(details: Mapping[str, Any]) -> list[KeptCall]:
    """Return the calls in a memory's details; what does not read back is passed over."""
    calls = details.get("recent")
    found = []
    for each in calls if isinstance(calls, list | tuple) else ():
        try:
            found.append(msgspec.convert(each, KeptCall))
        except msgspec.ValidationError:
            continue
    return found


def united(*collections: Iterable[KeptCall]) -> list[KeptCall]:
    """Return calls of several collections, each once, the newest last."""
    return list({call.hash: call for calls in collections for call in calls}.values())


def in_order(calls: Sequence[KeptCall]) -> list[KeptCall]:
    """Return calls by when they were made, where all of them say so; else as they came."""
    times = [_moment(call.at) for call in calls]
    if None in times:
        return list(calls)
    order = sorted(range(len(calls)), key=lambda at: times[at] or 0.0)
    return [calls[at] for at in order]


def _moment(told: str | None) -> float | None:
    """Return seconds since 1970 of a time as calls have it: a number, or as ISO 8601 writes it."""
    try:
        return float(told) if told is not None else None
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(told) if told is not None else None
        return None if moment is None else moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def error_group(output: str, arguments: Mapping[str, str] | None = None) -> str:
    """Return an error without what varies from one time to the next: arguments, numbers, ids."""
    first = next((line for line in output.splitlines() if line.strip()), "no message")
    for name, value in (arguments or {}).items():
        if len(value) > 1:
            first = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"<{name}>", first)
    return clipped(_VARYING.sub("#", _QUOTED.sub("'…'", first)), _MAX_ERROR)


def statistics(calls: Sequence[KeptCall]) -> Statistics:
    """Return the figures of calls, the oldest first."""
    errors = Counter(call.error for call in calls if call.error is not None)
    seconds = sorted(_measured(call.seconds for call in calls))
    return Statistics(
        len(calls),
        sum(call.ok for call in calls),
        _quantile(seconds, 0.5),
        _quantile(seconds, 0.95),
        _mean(seconds),
        _mean(_measured(call.tokens for call in calls)),
        _mean(_measured(call.score for call in calls)),
        dict(errors.most_common()),
        drift(calls),
    )


def drift(calls: Sequence[KeptCall]) -> Drift | None:
    """Return from which call on a tool works better or worse than before, if that is sure."""
    best, surest = None, _SURE
    good = [call.ok for call in calls]
    for at in range(_LEAST_APART, len(calls) - _LEAST_APART + 1):
        sure = _surprise(sum(good[:at]), at, sum(good), len(calls))
        if sure > surest:
            best, surest = at, sure
    if best is None:
        return None
    before, after = good[:best], good[best:]
    return Drift(calls[best].at, sum(before) / len(before), sum(after) / len(after), len(after))


def headline(tool: str, figures: Statistics) -> str:
    """Return the figures of a tool in one line."""
    rate = f"{100 * figures.success_rate:.0f} % of {figures.calls} recent calls succeeded"
    told = (
        (figures.p50_seconds, "p50 {:.2g} s"),
        (figures.p95_seconds, "p95 {:.2g} s"),
        (figures.mean_tokens, "{:.0f} tokens on average"),
        (figures.mean_score, "score {:.2g} on average"),
    )
    means = [form.format(figure) for figure, form in told if figure is not None]
    return f"Tool {tool}: {rate}" + (f"; {', '.join(means)}." if means else ".")


def guidelines(calls: Sequence[KeptCall]) -> list[str]:
    """Return what can be advised from the calls alone, one line each."""
    lines = _changed(statistics(calls).drift)
    lines += _errors(calls)
    lines += [f"Worked: {_written(call)}" for call in _examples(calls)]
    return lines


def _changed(change: Drift | None) -> list[str]:
    if change is None:
        return []
    since = f"the last {change.calls} calls" if change.since is None else change.since
    how = "fails more often" if change.after < change.before else "works more often"
    rates = f"{100 * change.after:.0f} % succeeded, {100 * change.before:.0f} % before"
    return [f"It {how} since {since}: {rates}."]


def _errors(calls: Sequence[KeptCall]) -> list[str]:
    """Return the errors, the most frequent first, each with what causes it if that shows."""
    worked = [call.arguments for call in calls if call.ok]
    lines = []
    for error, times in list(statistics(calls).errors.items())[:_SHOWN]:
        cause = cause_of([call.arguments for call in calls if call.error == error], worked)
        last = next(call for call in reversed(calls) if call.error == error)
        told = f"Cause: {cause}" if cause is not None else f"Arguments: {_arguments(last)}"
        lines.append(
            f"Error seen {times}×: {error}. {told}."
            if last.arguments
            else f"Error seen {times}×: {error}"
        )
    return lines


def _examples(calls: Sequence[KeptCall]) -> list[KeptCall]:
    """Return the newest calls that worked, each with a value that those before it lack."""
    found: list[KeptCall] = []
    seen: set[str] = set()
    for call in reversed(calls):
        if call.ok and call.arguments and not seen.issuperset(_pairs(call)):
            found.append(call)
            seen.update(_pairs(call))
    return found[:_EXAMPLES]


def _written(call: KeptCall) -> str:
    return _arguments(call) + (f" ⇒ {call.output}" if call.output else "")


def _arguments(call: KeptCall) -> str:
    return ", ".join(_pairs(call))


def _pairs(call: KeptCall) -> list[str]:
    return [f"{name}={value}" for name, value in call.arguments.items()]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _measured(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and is_number(value)]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value below which a share of them lies, between two where it falls there."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def _surprise(good: int, calls: int, good_in_all: int, in_all: int) -> float:
    """Return how much better two success rates describe calls than one does (G statistic)."""
    apart = _likelihood(good, calls) + _likelihood(good_in_all - good, in_all - calls)
    return 2 * (apart - _likelihood(good_in_all, in_all))


def _likelihood(good: int, calls: int) -> float:
    return sum(each * math.log(each / calls) for each in (good, calls - good) if each)
