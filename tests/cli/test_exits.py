"""Exit codes, questions before what cannot be undone, and errors of one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryspace import Memory
from memoryspace.cli import finding
from memoryspace.cli.work import Work

from commands import on_terminal, run


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["nonsense"], 2, "No such command"),
        (["list", "--nonsense"], 2, "No such option"),
        (["list", "--limit", "0"], 2, "limit"),
        (["add"], 2, "TEXT"),
        (["add", "x", "--role", "pope"], 2, "role"),
        (["add", "x", "--when", "yesterday"], 2, "time such as"),
        (["add", "x", "--user", ""], 2, "user"),
        (["update", "x"], 2, "name what to change"),
        (["list", "--kind", "nonsense"], 2, "'nonsense'"),
        (["list", "--filters", "[]"], 2, "--filters must be a JSON object"),
        (["search", " "], 2, "question is empty"),
        (["snapshot", "--address", "memory:"], 2, "needs a memory space"),
        (["list", "--address", "ftp://x"], 2, "ftp"),
        (["list", "--config", "none.toml"], 2, "none.toml cannot be read"),
        (["list", "--address", "redis://127.0.0.1:1/0"], 4, "127.0.0.1"),
        (["at", "sometime", "list"], 2, "time such as"),
        (["session", "expand", "s", "none"], 1, "a handle is"),
        (["session", "show", "none"], 1, "none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_has_its_code_and_says_what_is_wrong(
    command: list[str], code: int, words: str
) -> None:
    run("add", "tea")
    done = run(*command)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "Traceback" not in done.err
    assert done.err.endswith("\n")
    assert done.err.startswith("Usage") or done.err.count("\n") == 1


def test_a_folder_in_use_is_said_to_be(home: Path) -> None:
    with Memory(home) as memory:
        memory.add("tea", user="ann")
        done = run("list")
    assert done.code == 4
    assert str(home) in done.err


def test_a_bug_is_one_line_too_and_a_variable_shows_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by\x1bzero")

    monkeypatch.setattr(Work, "memory", broken)
    done = run("stats")
    assert done.code == 4
    assert done.err == (
        "memoryspace: a bug: ZeroDivisionError: by\\x1bzero (MEMORYSPACE_TRACEBACK=1 shows where)\n"
    )
    monkeypatch.setenv("MEMORYSPACE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run("stats")


def test_an_interrupted_command_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    run("add", "tea")
    monkeypatch.setattr(finding, "whole", interrupted)
    assert run("search", "tea")[:2] == (130, "")


@pytest.mark.parametrize(
    ("typed", "code", "left"),
    [("y\n", 0, 0), ("YES\n", 0, 0), ("n\n", 3, 1), ("\n", 3, 1), ("yep\n", 3, 1), ("\x04", 3, 1)],
)
def test_a_terminal_is_asked_before_something_is_deleted(typed: str, code: int, left: int) -> None:
    memory_id = run("add", "tea", "--json").data["ids"][0]
    done = on_terminal("delete", memory_id, typed=typed)
    assert done.code == code
    assert "Delete 1 memory of 'ann', with what was derived? [y/N]" in done.out
    assert len(run("list").rows) == left


@pytest.mark.parametrize("command", [["delete", "--everything"], ["rewind", "1"]])
def test_all_that_destroys_asks(command: list[str]) -> None:
    run("add", "tea")
    refused = run(*command)
    assert (refused.code, refused.out) == (3, "")
    assert on_terminal(*command, typed="n\n").code == 3
    assert len(run("list").rows) == 1
    assert run(*command, "--yes").code == 0
    assert run("list").rows == []


def test_the_version_is_shown() -> None:
    done = run("--version")
    assert (done.code, done.out[:12]) == (0, "memoryspace ")
