"""``ExtractiveSummary``: a summary without a model, of what was said itself.

It keeps the goal, what was decided, found out and done, what is open, and names and numbers as they
were written. It can read itself back, so a summary merges into the next one, and never grows beyond
the room it is given: what is said to be important stays longest, and new things before old ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..message import Msg
from ..token import estimate_tokens
from .notes import TITLES, Notes, Point, Section
from .sentences import is_chinese
from .stand_in import clipped

_SHARES: dict[Section, float] = {"goal": 0.2, "done": 0.1, "names": 0.4}
_MOST_POINTS = 4000  # that are weighed; of more, the newest
_LEAST_ROOM = 8  # tokens; no sentence fits in less
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
    """Put a summary together: each list within its share, and points in what is left."""
    lists: dict[Section, str] = {
        "goal": clipped_to(notes.goal, int(room * _SHARES["goal"])),
        "done": _listed("; ", _counted(notes.done), int(room * _SHARES["done"])),
        "names": _listed(", ", _by_use(notes.names), int(room * _SHARES["names"])),
    }
    points = _chosen(notes, room - sum(estimate_tokens(each) + 4 for each in lists.values()))
    language = int(is_chinese(notes.goal + " ".join(point.text for point in points)))
    lines: list[str] = []
    for section, titles in TITLES.items():
        of_section = [f"- {point.text}" for point in points if point.section == section]
        if lists.get(section):
            lines.append(f"{titles[language]}: {lists[section]}")
        elif of_section:
            lines += [f"{titles[language]}:", *of_section]
    return "\n".join(lines)


def clipped_to(text: str, max_tokens: int) -> str:
    """Return at most so many tokens of a text, by estimate."""
    tokens = estimate_tokens(text)
    while text and tokens > max_tokens:
        text = clipped(text, len(text) * max_tokens // tokens - 1)
        tokens = estimate_tokens(text)
    return text


def _chosen(notes: Notes, room: int) -> list[Point]:
    """Return the points worth most that fit, in the order they were said, none twice."""
    said = {point.text.casefold(): point for point in notes.points[-_MOST_POINTS:]}
    points = [each for each in said.values() if each.worth > 0 and each.text not in notes.goal]
    chosen: list[int] = []
    for place in sorted(range(len(points)), key=lambda at: (-points[at].worth, -at)):
        cost = estimate_tokens(points[place].text) + 2
        if cost <= room:
            chosen.append(place)
            room -= cost
        if room < _LEAST_ROOM:
            break
    return [points[place] for place in sorted(chosen)]


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
