"""The colour table: a system has the same colour in every plot.

The first colours can be told apart by most people (after Okabe and Ito) and are dark enough for
white paper. Names that are not in the table take colours in order of appearance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#444444", "#a14000",
    "#7b3294", "#e69f00", "#b2182b", "#8fbf3f",
)  # fmt: skip

_BLUE, _ORANGE, _GREEN, _PINK, _OLIVE, _SKY, _GREY, _BROWN, _PURPLE, _AMBER, _RED, _LIME = PALETTE

COLOURS: Mapping[str, str] = {
    # memories
    "memoryspace": _BLUE,
    "manager": _BLUE,
    "manager-newest": _SKY,
    "tiered": _GREEN,
    "flat": _GREY,
    "no-gc": _BROWN,
    "sliding": _ORANGE,
    "reservoir": _PINK,
    "bag-of-words": _OLIVE,
    "langchain": _PURPLE,
    "mem0": _AMBER,
    "agentscope": _RED,
    "agentscope-runtime": _RED,
    "unbounded": _GREY,
    # ways to rank
    "sparse": _ORANGE,
    "dense": _SKY,
    "fused": _BLUE,
    "fused + rerank": _GREEN,
    "word counts": _OLIVE,
    "bm25": _BLUE,
    # ways to keep a context
    "AgentScope truncation": _RED,
    "truncation": _RED,
    # backends
    "memory": _GREY,
    "space": _BLUE,
    "space-os": _SKY,
    "sqlite": _ORANGE,
    "postgres": _GREEN,
    "mariadb": _PINK,
    "redis": _RED,
    # paging policies
    "arc": _BLUE,
    "lru": _ORANGE,
    "lfu": _GREEN,
    "clock": _PINK,
}


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name: its own, or the next unused one."""
    asked = list(dict.fromkeys(names))
    taken = {COLOURS[name] for name in asked if name in COLOURS}
    free = [colour for colour in PALETTE if colour not in taken] or list(PALETTE)
    others = [name for name in asked if name not in COLOURS]
    rest = {name: free[place % len(free)] for place, name in enumerate(others)}
    return {name: COLOURS.get(name, rest.get(name, PALETTE[0])) for name in asked}
