"""``ExtractiveSummary``: a summary without a model, of what was said itself.

It keeps what binds (``binding`` says why), the goal, what was decided, found out and done, what is
open, and names and numbers as they were written. It can read itself back, so a summary merges into
the next one, and never grows beyond the room it is given: what binds most stays longest, and new
things before old ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...message import Msg
from ...token import estimate_tokens
from .notes import TITLES, USES_SAID, Notes, Point, Section
from .sentences import is_chinese
from .summary import clipped

_SHARES: dict[Section, float] = {"binding": 0.5, "goal": 0.2, "done": 0.1, "names": 0.4}  # at most
_MOST_POINTS = 4000  # that are weighed; of more, the newest
_LEAST_ROOM = 8  # tokens; no sentence fits in less
_BULLET = 2  # tokens, with the end of the line
_LITTLE = 1.0  # the worth of a point that comes after names
_MOST_DIGITS = 6  # of how often something was done


class ExtractiveSummary:
    """Picks sentences, actions and names. English and Chinese; needs nothing, and never fails."""

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return one text that stands for both."""
        notes = Notes()
        notes.read(earlier)
        notes.take(messages)
        return clipped_to(written(notes, max_tokens), max_tokens)


def written(notes: Notes, room: int) -> str:
    """Put a summary together: first what binds, then each list within its share, and points."""
    points = _best_first(notes)
    sheet = _Sheet(room, is_chinese(notes.goal + " ".join(point.text for point in points)))
    sheet.choose([each for each in points if each.section == "binding"], sheet.share("binding"))
    sheet.put("goal", clipped_to(notes.goal, sheet.share("goal")))
    sheet.put("done", _listed("; ", _counted(notes.done), sheet.share("done")))
    share = sheet.share("names")
    said = {name: uses for name, uses in notes.names.items() if uses >= USES_SAID}
    sheet.put("names", _listed(", ", _by_use(said), share))
    sheet.choose([each for each in points if each.worth > _LITTLE])
    if len(said) < len(notes.names):  # those of tables, logs and results: in what is left
        share = min(share, sheet.share("names"))
        sheet.put("names", _listed(", ", _by_use(notes.names), share))
    sheet.choose(points)
    return sheet.text(notes.points)


class _Sheet:
    """A summary being written, and the room that is left."""

    def __init__(self, room: int, in_chinese: bool) -> None:
        self._room = self._left = room
        self._titles = {section: both[in_chinese] for section, both in TITLES.items()}
        self._lists: dict[Section, str] = {}
        self._points: dict[Point, int] = {}  # with what each costs

    def share(self, section: Section) -> int:
        """Return the tokens that a section may have now."""
        left = self._left + self._cost_of_list(section) - self._cost_of_title(section)
        return max(0, min(int(self._room * _SHARES[section]), left))

    def put(self, section: Section, text: str) -> None:
        """Write a list in the place of the one that was there; it need not be said elsewhere."""
        self._left += self._cost_of_list(section)
        self._lists[section] = text
        self._left -= self._cost_of_list(section)
        for point in [each for each in self._points if each.text in text]:
            self._left += self._points.pop(point)

    def choose(self, points: Iterable[Point], most: int | None = None) -> None:
        """Take the first points that fit into the room, or into a part of it."""
        kept = 0 if most is None else max(0, self._left - most)
        for point in points:
            if self._left - kept < _LEAST_ROOM:
                break
            if point in self._points or point.text in self._lists.get("goal", ""):
                continue
            cost = self._cost_of(point)
            if cost <= self._left - kept:
                self._points[point] = cost
                self._left -= cost

    def text(self, said: Sequence[Point]) -> str:
        """Return what was written, section by section, points in the order they were said."""
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
    """Return at most so many tokens of a text, by estimate."""
    tokens = estimate_tokens(text)
    while text and tokens > max_tokens:
        text = clipped(text, len(text) * max_tokens // tokens - 1)
        tokens = estimate_tokens(text)
    return text


def _best_first(notes: Notes) -> list[Point]:
    """Return the points worth anything, none twice, of equals the newest first."""
    said = {point.text.casefold(): point for point in notes.points[-_MOST_POINTS:]}
    newest_first = [point for point in said.values() if point.worth > 0][::-1]
    return sorted(newest_first, key=lambda point: -point.worth)


def _counted(actions: Iterable[str]) -> list[str]:
    """Return actions, the newest first, each once with how often it was done."""
    times: dict[str, int] = {}
    for action in actions:
        name, _, count = action.rpartition(" ×")
        is_counted = bool(name) and count.isdecimal() and len(count) <= _MOST_DIGITS
        name, more = (name, int(count)) if is_counted else (action, 1)
        times[name] = times.pop(name, 0) + more
    return [f"{name} ×{often}" if often > 1 else name for name, often in [*times.items()][::-1]]


def _by_use(names: Mapping[str, int]) -> list[str]:
    """Return names, those used most first, of equals the newest."""
    newest_first = [*names][::-1]
    return sorted(newest_first, key=lambda name: -names[name])


def _listed(separator: str, items: Iterable[str], room: int) -> str:
    """Return as many items as fit, in one line."""
    taken: list[str] = []
    for item in items:
        room -= estimate_tokens(item) + 1
        if room < 0:
            break
        taken.append(item)
    return separator.join(taken)
