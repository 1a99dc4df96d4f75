"""The help of every command, the page made from it, and completion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memoryspace.cli import reference

from commands import run

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
COMMANDS = list(reference.commands())
_ASKED = """add search context list get update delete history facts users stats why-not recalls
    review session import export backup restore snapshot at diff fork gc doctor config demo tour
    bench"""


def words_of(case: object) -> str:
    return " ".join(case[0]) if isinstance(case, tuple) else ""


def test_all_commands_are_there() -> None:
    names = {words[0] for words, _ in COMMANDS if words}
    assert set(_ASKED.split()) <= names
    below = {" ".join(words) for words, _ in COMMANDS}
    for name in ("list", "approve", "reject", "undo", "quarantined", "release"):
        assert f"review {name}" in below
    assert {"session add", "session show", "session expand", "config show", "config path"} <= below


@pytest.mark.parametrize("case", COMMANDS, ids=words_of)
def test_every_command_and_every_option_is_explained(case: reference.Named) -> None:
    words, command = case
    first = (command.help or "").strip().splitlines()[0]
    assert first[0].isupper()
    assert first.endswith(".")
    assert len(first) <= 64, "the list of commands would cut it"
    for each in command.params:
        assert each.help, (words, each.name)
        assert each.help.endswith((".", "…")), each.help
        if each.param_type_name == "argument" or not each.is_flag:
            assert each.metavar, (words, each.name)


@pytest.mark.parametrize("case", COMMANDS, ids=words_of)
def test_every_command_shows_its_help(case: reference.Named) -> None:
    words, command = case
    at = ["at", "1", *words[1:]] if words[:1] == ("at",) and len(words) > 1 else list(words)
    if words == ("bench",):
        return  # has help of its own
    done = run(*at, "--help")
    assert (done.code, done.err) == (0, "")
    assert (command.help or "").split(".")[0] in " ".join(done.out.split())
    assert run(*at, "-h").out == done.out


def test_the_page_of_commands_is_current() -> None:
    written = PAGE.read_text("utf-8")
    assert reference.page(written) == written, "python -m memoryspace.cli.reference docs/cli.md"


def test_commands_named_above_the_mark_exist() -> None:
    above = PAGE.read_text("utf-8").partition(reference.MARK)[0]
    named = set(re.findall(r"(?:\$ |\| |`)memoryspace ([a-z][a-z-]*)", above))
    assert named <= {words[0] for words, _ in COMMANDS if words}
    assert len(named) > 3


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MEMORYSPACE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "memoryspace se")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "memoryspace se")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    done = run()
    assert {"search", "session"} <= set(re.findall(r"[a-z-]+", done.out))


def test_bench_parses_its_own_arguments() -> None:
    listed = run("bench", "list")
    assert listed.code == 0
    assert "capacity-sweep" in listed.out
    assert "memoryspace bench" in run("bench", "--help").out
    assert "--quick" in run("bench", "capacity-sweep", "--help").out
