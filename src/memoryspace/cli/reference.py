"""``python -m memoryspace.cli.reference docs/cli.md`` writes the commands into their page.

What stands above the mark is written by hand; everything below comes from the help of the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .app import command as whole
from .exits import MEANINGS
from .running import PROGRAM

MARK = "<!-- From here on: python -m memoryspace.cli.reference docs/cli.md -->\n"

Named = tuple[tuple[str, ...], Any]  # a command of Typer, and the words that call it


def page(written: str) -> str:
    """Return a page with everything below its mark made anew."""
    above, mark, _ = written.partition(MARK)
    if not mark:
        raise ValueError(f"the page has no line {MARK.strip()!r}")
    return "".join((above, MARK, *_sections()))


def commands() -> Iterator[Named]:
    """Yield every command and group with the words that call it, the program first."""
    yield from _below((), whole())


def parameters(command: Any) -> list[Any]:
    """Return the parameters that the help of a command shows, without those of all commands."""
    return [each for each in command.params if not getattr(each, "hidden", False)]


def _below(words: tuple[str, ...], command: Any) -> Iterator[Named]:
    yield words, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _below((*words, name), each)


def _sections() -> Iterator[str]:
    yield "\n## Exit codes\n\n| code | meaning |\n|---|---|\n"
    yield from (f"| {code.value} | {meaning} |\n" for code, meaning in MEANINGS.items())
    everything = list(commands())
    top = {words[0] for words, _ in everything if len(words) == 1}
    for words, command in everything:
        if words[:1] == ("at",) and words[-1] in top and len(words) > 1:
            continue  # the same command, in the past
        yield from _section(words, command)


def _section(words: tuple[str, ...], command: Any) -> Iterator[str]:
    title = f"`{' '.join(words)}`" if words else "Options of all commands"
    yield f"\n{'#' * max(2, 1 + len(words))} {title}\n\n{_text(command.help)}\n"
    shown = parameters(command)
    if words:
        yield f"\n```text\n{_usage(words, command, shown)}\n```\n"
    if shown:
        yield "\n| | |\n|---|---|\n"
        yield from (f"| {_names(each)} | {_help(each)} |\n" for each in shown)


def _usage(words: tuple[str, ...], command: Any, shown: list[Any]) -> str:
    arguments = [each for each in shown if each.param_type_name == "argument"]
    has_options = len(arguments) < len(shown)
    is_group = bool(getattr(command, "commands", {}))
    parts = [PROGRAM, *words, *(["[OPTION…]"] if has_options else []), *map(_argument, arguments)]
    return " ".join([*parts, *(["COMMAND"] if is_group else [])])


def _argument(argument: Any) -> str:
    name = f"{argument.metavar}{'…' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    value = "" if parameter.is_flag else f" {parameter.metavar or ''}".rstrip()
    longest_last = sorted(parameter.opts, key=len)
    names = ", ".join(f"`{name}`" for name in longest_last[:-1])
    return f"{names}, `{longest_last[-1]}{value}`".removeprefix(", ").replace("|", "\\|")


def _help(parameter: Any) -> str:
    default = parameter.default
    is_told = isinstance(default, str | int | float | Path) and not isinstance(default, bool)
    return _text(parameter.help) + (f" By default {default}." if is_told else "")


def _text(text: str | None) -> str:
    return "\n".join(line.strip() for line in (text or "").strip().splitlines())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(page(path.read_text("utf-8")), "utf-8")
