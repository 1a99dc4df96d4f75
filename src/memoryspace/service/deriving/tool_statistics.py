"""What is kept of a tool's calls, and what can be read from them without a model.

Of each tool the newest calls are kept, each in a few words and by its hash. Two of these
collections that were made apart are united call by call, so nothing is counted twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...record import is_number
from .task_trajectory import clipped
from .tool_call import ToolCallResult

KEPT_CALLS = 100  # of each tool

_MAX_VALUE = 60  # characters of an argument's value, and of an error, that are kept
_MAX_ERROR = 120
_MAX_ARGUMENTS = 12  # of one call
_SHOWN = 5  # errors, and remarks on arguments, that are told
_ENOUGH = 2  # calls that must speak for a remark

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


class Statistics(Struct, frozen=True):
    """The sums over some calls; a mean is ``None`` where nothing was measured."""

    calls: int
    successes: int
    mean_seconds: float | None
    mean_tokens: float | None
    mean_score: float | None
    errors: dict[str, int]

    @property
    def success_rate(self) -> float:
        """The share of calls that succeeded."""
        return self.successes / self.calls if self.calls else 0.0


def kept(call: ToolCallResult, source: str) -> KeptCall:
    """Return what is kept of a call."""
    arguments = list(call.arguments.items())[:_MAX_ARGUMENTS]
    return KeptCall(
        call.call_hash,
        source,
        call.success,
        {
            clipped(str(name), _MAX_VALUE): clipped(_shown(value), _MAX_VALUE)
            for name, value in arguments
        },
        None if call.success else error_group(call.output_text),
        call.time_cost if call.time_cost > 0 else None,
        call.token_cost if call.token_cost >= 0 else None,
        call.score,
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


def error_group(output: str) -> str:
    """Return an error without what varies from one time to the next: numbers, ids, names."""
    first = next((line for line in output.splitlines() if line.strip()), "no message")
    return clipped(_VARYING.sub("#", _QUOTED.sub("'…'", first)), _MAX_ERROR)


def statistics(calls: Sequence[KeptCall]) -> Statistics:
    """Return the sums over calls."""
    errors = Counter(call.error for call in calls if call.error is not None)
    return Statistics(
        len(calls),
        sum(call.ok for call in calls),
        _mean(call.seconds for call in calls),
        _mean(call.tokens for call in calls),
        _mean(call.score for call in calls),
        dict(errors.most_common()),
    )


def headline(tool: str, figures: Statistics) -> str:
    """Return the figures of a tool in one line."""
    rate = f"{100 * figures.success_rate:.0f} % of {figures.calls} recent calls succeeded"
    means = (
        (figures.mean_seconds, "{:.2g} s"),
        (figures.mean_tokens, "{:.0f} tokens"),
        (figures.mean_score, "score {:.2g}"),
    )
    told = [form.format(mean) for mean, form in means if mean is not None]
    return f"Tool {tool}: {rate}" + (f"; on average {', '.join(told)}." if told else ".")


def guidelines(calls: Sequence[KeptCall]) -> list[str]:
    """Return what can be advised from the calls alone, one line each."""
    lines = [f"Error seen {n}×: {error}" for error, n in statistics(calls).errors.items()][:_SHOWN]
    lines += _remarks(calls)[:_SHOWN]
    good = next((call for call in reversed(calls) if call.ok and call.arguments), None)
    bad = next((call for call in reversed(calls) if not call.ok and call.arguments), None)
    if good is not None:
        lines.append(f"Worked: {_written(good)}")
    if bad is not None:
        lines.append(f"Failed: {_written(bad)}, with: {bad.error}")
    return lines


def _remarks(calls: Sequence[KeptCall]) -> list[str]:
    """Return which arguments went with failures only, or were there in successes only."""
    good, bad = [call for call in calls if call.ok], [call for call in calls if not call.ok]
    if not good or len(bad) < _ENOUGH:
        return []
    remarks = [
        f"Give {name}: every successful call had it, {n} failed ones did not."
        for name in sorted(set.intersection(*(set(call.arguments) for call in good)))
        if (n := sum(name not in call.arguments for call in bad)) >= _ENOUGH
    ]
    for traits, wording in ((_names, "Without"), (_pairs, "Avoid")):
        seen_good = {trait for call in good for trait in traits(call)}
        seen_bad = Counter(trait for call in bad for trait in traits(call))
        remarks += [
            f"{wording} {trait}: all {n} calls with it failed."
            for trait, n in seen_bad.most_common()
            if n >= _ENOUGH and trait not in seen_good
        ]
    return remarks


def _names(call: KeptCall) -> list[str]:
    return list(call.arguments)


def _pairs(call: KeptCall) -> list[str]:
    return [f"{name}={value}" for name, value in call.arguments.items()]


def _written(call: KeptCall) -> str:
    return ", ".join(_pairs(call))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None and is_number(value)]
    return sum(there) / len(there) if there else None
