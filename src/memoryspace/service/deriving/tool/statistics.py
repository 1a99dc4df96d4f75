"""Statistics and guidelines over a tool's newest calls, without a model.

The newest calls of each tool are stored in short form, identified by hash. Collections made by
different processes are merged call by call, so nothing counts twice.
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

_MAX_VALUE = 60  # characters kept of an argument's value,
_MAX_ERROR = 120  # of an error,
_MAX_OUTPUT = 60  # of an answer
_MAX_ARGUMENTS = 12  # of one call
_SHOWN = 5  # errors shown
_EXAMPLES = 3  # successful calls shown
_LEAST_APART = 3  # calls needed before and after a change
_SURE = 10.0  # how unlikely a change by chance must be (G statistic; about one in 600)

_VARYING = re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}|\d[\d.,:]*)\b", re.I)
_QUOTED = re.compile(r"'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|`[^`\n]{1,80}`")


class KeptCall(Struct, frozen=True, omit_defaults=True):
    """The short form of a call. ``source`` is the id of its raw memory."""

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
    """A change in a tool's success rate, before and since a call."""

    since: str | None
    before: float
    after: float
    calls: int  # since then


class ToolStatistics(Struct, frozen=True):
    """Statistics over calls; a value is ``None`` if nothing was measured."""

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


def kept_call(call: ToolCallResult, source: str) -> KeptCall:
    """Return the short form of a call."""
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


def kept_calls_in(details: Mapping[str, Any]) -> list[KeptCall]:
    """Return the calls in a memory's details; unreadable ones are skipped."""
    calls = details.get("recent")
    found = []
    for each in calls if isinstance(calls, list | tuple) else ():
        try:
            found.append(msgspec.convert(each, KeptCall))
        except msgspec.ValidationError:
            continue
    return found


def merged_calls(*collections: Iterable[KeptCall]) -> list[KeptCall]:
    """Return the calls of several collections, each once, newest last."""
    return list({call.hash: call for calls in collections for call in calls}.values())


def in_order(calls: Sequence[KeptCall]) -> list[KeptCall]:
    """Return calls in order of time if all have one; otherwise in the given order."""
    times = [_moment(call.at) for call in calls]
    if None in times:
        return list(calls)
    order = sorted(range(len(calls)), key=lambda at: times[at] or 0.0)
    return [calls[at] for at in order]


def _moment(told: str | None) -> float | None:
    """Return seconds since 1970 for a number or an ISO 8601 time; ``None`` for anything else."""
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
    """Return an error without its varying parts: arguments, numbers and ids."""
    first = next((line for line in output.splitlines() if line.strip()), "no message")
    for name, value in (arguments or {}).items():
        if len(value) > 1:
            first = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"<{name}>", first)
    return clipped(_VARYING.sub("#", _QUOTED.sub("'…'", first)), _MAX_ERROR)


def statistics(calls: Sequence[KeptCall]) -> ToolStatistics:
    """Return the statistics of calls, given oldest first."""
    errors = Counter(call.error for call in calls if call.error is not None)
    seconds = sorted(_measured(call.seconds for call in calls))
    return ToolStatistics(
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
    """Return the most significant change in the success rate, if there is one."""
    best, surest = None, _SURE
    good = [call.ok for call in calls]
    for at in range(_LEAST_APART, len(calls) - _LEAST_APART + 1):
        sure = _g_statistic(sum(good[:at]), at, sum(good), len(calls))
        if sure > surest:
            best, surest = at, sure
    if best is None:
        return None
    before, after = good[:best], good[best:]
    return Drift(calls[best].at, sum(before) / len(before), sum(after) / len(after), len(after))


def headline(tool: str, figures: ToolStatistics) -> str:
    """Return the statistics of a tool in one line."""
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
    """Return guidelines from the calls alone, one line each."""
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
    """Return the errors, most frequent first, each with its cause if one is found."""
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
    """Return the newest successful calls, each with an argument value the others lack."""
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
    """Return a quantile of sorted values, with linear interpolation."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def _g_statistic(good: int, calls: int, good_in_all: int, in_all: int) -> float:
    """Return the G statistic of two success rates against a single one."""
    apart = _log_likelihood(good, calls) + _log_likelihood(good_in_all - good, in_all - calls)
    return 2 * (apart - _log_likelihood(good_in_all, in_all))


def _log_likelihood(good: int, calls: int) -> float:
    return sum(each * math.log(each / calls) for each in (good, calls - good) if each)
