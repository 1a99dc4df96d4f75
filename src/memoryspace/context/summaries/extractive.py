"""``ExtractiveSummary``: a summary without a model, made of the messages' own sentences.

It keeps binding statements (see ``reasons``), the goal, decisions, findings, actions, open points,
and names and numbers as written. It can parse itself, so a summary merges into the next one. It
never exceeds its budget: the most binding statements stay longest, and new ones before old ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...message import Msg
from ...token import estimate_tokens
from .notes import TITLES, USES_SAID, ConversationNotes, Point, Section
from .sentences import is_chinese
from .summary import clipped

_SHARES: dict[Section, float] = {"binding": 0.5, "goal": 0.2, "done": 0.1, "names": 0.4}  # at most
_MOST_POINTS = 4000  # considered; of more, the newest
_LEAST_TOKENS = 8  # tokens; no sentence fits in fewer
_BULLET = 2  # tokens, with the end of the line
_LITTLE = 1.0  # the worth of a point that comes after names
_MOST_DIGITS = 6  # of a repeat count


class ExtractiveSummary:
    """Selects sentences, actions and names, in English and Chinese.

    It needs no model and never fails.

    Example::

        text = await ExtractiveSummary()("", messages, 200)
    """

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return one text that replaces both; see ``Summariser``."""
        notes = ConversationNotes()
        notes.read(earlier)
        notes.add(messages)
        return clipped_to(written(notes, max_tokens), max_tokens)


def written(notes: ConversationNotes, budget: int) -> str:
    """Compose a summary: binding statements first, then each list within its share, then points."""
    points = _best_first(notes)
    builder = _SummaryBuilder(
        budget, is_chinese(notes.goal + " ".join(point.text for point in points))
    )
    builder.choose([each for each in points if each.section == "binding"], builder.share("binding"))
    builder.put("goal", clipped_to(notes.goal, builder.share("goal")))
    builder.put("done", _listed("; ", _counted(notes.done), builder.share("done")))
    share = builder.share("names")
    said = {name: uses for name, uses in notes.names.items() if uses >= USES_SAID}
    builder.put("names", _listed(", ", _by_use(said), share))
    builder.choose([each for each in points if each.worth > _LITTLE])
    if len(said) < len(notes.names):  # names in tables, logs and results get what is left
        share = min(share, builder.share("names"))
        builder.put("names", _listed(", ", _by_use(notes.names), share))
    builder.choose(points)
    return builder.text(notes.points)


class _SummaryBuilder:
    """A summary being composed, and the tokens that are left."""

    def __init__(self, budget: int, in_chinese: bool) -> None:
        self._budget = self._left = budget
        self._titles = {section: both[in_chinese] for section, both in TITLES.items()}
        self._lists: dict[Section, str] = {}
        self._points: dict[Point, int] = {}  # with what each costs

    def share(self, section: Section) -> int:
        """Return the tokens that a section may take now."""
        left = self._left + self._cost_of_list(section) - self._cost_of_title(section)
        return max(0, min(int(self._budget * _SHARES[section]), left))

    def put(self, section: Section, text: str) -> None:
        """Set the list of a section. Points that it already contains are removed."""
        self._left += self._cost_of_list(section)
        self._lists[section] = text
        self._left -= self._cost_of_list(section)
        for point in [each for each in self._points if each.text in text]:
            self._left += self._points.pop(point)

    def choose(self, points: Iterable[Point], most: int | None = None) -> None:
        """Add points in order while they fit into the budget, or into ``most`` tokens of it."""
        kept = 0 if most is None else max(0, self._left - most)
        for point in points:
            if self._left - kept < _LEAST_TOKENS:
                break
            if point in self._points or point.text in self._lists.get("goal", ""):
                continue
            cost = self._cost_of(point)
            if cost <= self._left - kept:
                self._points[point] = cost
                self._left -= cost

    def text(self, said: Sequence[Point]) -> str:
        """Return the summary by section, points in the order they were said."""
        places = {point: place for place, point in enumerate(said)}
        points = sorted(self._points, key=places.__getitem__)
        lines: list[str] = []
        for section, title in self._titles.items():
            of_section = [f"- {point.text}" for point in points if point.section == section]
            if self._lists.get(section):
                lines.append(f"{title}: {self._lists[section]}")
            elif of_section:
                lines += [f"{title}:", *of_section]
        return "\n".join(lines)

    def _cost_of(self, point: Point) -> int:
        is_first = all(other.section != point.section for other in self._points)
        title = self._cost_of_title(point.section) if is_first else 0
        return estimate_tokens(point.text) + _BULLET + title

    def _cost_of_list(self, section: Section) -> int:
        text = self._lists.get(section, "")
        return estimate_tokens(text) + self._cost_of_title(section) if text else 0

    def _cost_of_title(self, section: Section) -> int:
        return estimate_tokens(f"{self._titles[section]}:\n")


def clipped_to(text: str, max_tokens: int) -> str:
    """Return at most ``max_tokens`` of a text, by estimate."""
    tokens = estimate_tokens(text)
    while text and tokens > max_tokens:
        text = clipped(text, len(text) * max_tokens // tokens - 1)
        tokens = estimate_tokens(text)
    return text


def _best_first(notes: ConversationNotes) -> list[Point]:
    """Return the distinct points with a positive worth, best first, of equals the newest."""
    said = {point.text.casefold(): point for point in notes.points[-_MOST_POINTS:]}
    newest_first = [point for point in said.values() if point.worth > 0][::-1]
    return sorted(newest_first, key=lambda point: -point.worth)


def _counted(actions: Iterable[str]) -> list[str]:
    """Return distinct actions with their counts, newest first."""
    times: dict[str, int] = {}
    for action in actions:
        name, _, count = action.rpartition(" ×")
        is_counted = bool(name) and count.isdecimal() and len(count) <= _MOST_DIGITS
        name, more = (name, int(count)) if is_counted else (action, 1)
        times[name] = times.pop(name, 0) + more
    return [f"{name} ×{often}" if often > 1 else name for name, often in [*times.items()][::-1]]


def _by_use(names: Mapping[str, int]) -> list[str]:
    """Return names by use, of equals the newest first."""
    newest_first = [*names][::-1]
    return sorted(newest_first, key=lambda name: -names[name])


def _listed(separator: str, items: Iterable[str], budget: int) -> str:
    """Return as many items as fit, on one line."""
    taken: list[str] = []
    for item in items:
        budget -= estimate_tokens(item) + 1
        if budget < 0:
            break
        taken.append(item)
    return separator.join(taken)
