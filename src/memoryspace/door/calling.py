"""What a call with wrong arguments is told: the arguments that there are, and the nearest one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any


def misused(verb: Callable[..., Any], options: Mapping[str, object], error: TypeError) -> TypeError:
    """Return the error for a call that does not fit the signature of a verb.

    Args:
        verb: What was called.
        options: The named arguments it was called with.
        error: What Python said.
    """
    name, known = verb.__name__, list(signature(verb).parameters)
    wrong = next((each for each in options if each not in known), None)
    if wrong is None:
        said = str(error).partition("() ")[2]
        return TypeError(f"{name}() {said}; its arguments are {', '.join(known)}")
    near = get_close_matches(wrong, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return TypeError(f"{name}() has no argument {wrong!r}; {hint}")
