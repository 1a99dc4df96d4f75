"""What is shown: a terminal never obeys a memory, tables fit, programs get JSON alone."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from memoryspace.cli.plain import block, json_text, one_line
from memoryspace.showing import width_of

from commands import on_terminal, run
from length import at_length

HOSTILE = (
    "\x1b]0;title\x07\x1b[2J\x1b[31mred \x9b31m \x08\x7f\rover "
    "\u202eright\u2066to left \u2028 [bold]marked[/bold] [link=http://x]l[/link] :boom: "
    "\x1b]8;;x\x07"
)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def unsafe_in(shown: str) -> list[str]:
    """Return what a terminal would obey, besides styles and the ends of lines."""
    return _UNSAFE.findall(_STYLE.sub("", shown))


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MEMORYSPACE_QUARANTINE", "false")
    message = json.dumps({"content": HOSTILE, "name": "a\x1b[1mb", "id": "m1"})
    assert run("add", "--jsonl", message).code == 0
    return "m1"


@pytest.mark.parametrize(
    "command",
    [
        ["list"], ["list", "--json"], ["get", "m1"], ["get", "m1", "--json"], ["search", "red"],
        ["search", "red", "--explain"], ["search", "red", "--json"], ["context", "red"],
        ["history", "m1"], ["facts"], ["recalls"], ["review", "quarantined"],
        ["why-not", "m1", "red"],
        ["get", "\x1b[31mnobody"], ["search", "red", "--session", "\x1b[31m"], ["\x1b[31mnone"],
        ["list", "--filters", "{\x1b[31m"], ["list", "--since", "\x1b[31m"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_terminal_never_obeys_a_memory(hostile: str, command: list[str]) -> None:
    run("search", HOSTILE)
    for done in (on_terminal(*command), run(*command)):
        assert unsafe_in(done.out.replace("\t", "")) == []
        assert unsafe_in(done.err) == []
        styles = set(_STYLE.findall(done.out + done.err))
        assert styles <= {"\x1b[0m", "\x1b[1m", "\x1b[2m"}, "no style is of the memory"
    assert done.out or done.err or command[0] in ("facts", "review")


def test_a_hostile_text_is_shown_written_out_and_its_markup_is_text(hostile: str) -> None:
    shown = on_terminal("get", hostile, columns=1000).out
    assert "\\x1b[2J\\x1b[31mred \\x9b31m" in shown
    assert "[bold]marked[/bold] [link=http://x]l[/link] :boom:" in shown
    assert "\\u202eright" in shown


def test_json_keeps_what_is_hostile_without_loss(hostile: str) -> None:
    assert run("get", hostile, "--json").data["text"] == HOSTILE
    assert json.loads(on_terminal("get", hostile, "--json").out)["text"] == HOSTILE


@settings(max_examples=at_length(20, 300))
@given(some.text())
def test_any_text_becomes_safe_and_json_stays_equal(text: str) -> None:
    assert unsafe_in(block(text).replace("\t", "")) == []
    assert unsafe_in(one_line(text)) == []
    assert "\n" not in one_line(text)
    for indent in (None, 2):
        written = json_text({"text": text}, indent=indent)
        assert unsafe_in(written) == []
        assert json.loads(written) == {"text": text}


def test_what_is_harmless_stays() -> None:
    text = "naïve 水　（好） 👩\u200d👧 می\u200cخواهم a\u00a0b"
    assert block(text) == text
    assert block("a\r\n\tb\nc") == "a\n\tb\nc"
    assert one_line("a\n\t b\u3000c") == "a b c"


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_a_table_fits_the_terminal_in_chinese_too(columns: int) -> None:
    run("add", "我叫王芳，住在上海，" * 12, "An English text that goes on. " * 12)
    for command in (["list"], ["search", "上海"], ["stats"], ["config", "show"]):
        lines = _STYLE.sub("", on_terminal(*command, columns=columns).out).splitlines()
        assert len(lines) > 1
        assert max(map(width_of, lines)) <= columns


def test_a_pipe_gets_whole_texts_and_a_terminal_their_beginning() -> None:
    text = "word " * 400
    run("add", text)
    assert run("list").rows[0][0] == text.strip()
    shown = on_terminal("list", columns=80).out
    assert "…" in shown
    assert shown.count("word") < 100


def test_no_color_leaves_no_colour(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal("list").out
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shown)


def test_programs_get_json_and_nothing_else() -> None:
    run("add", "I live in Rome.")
    for command in (
        ["list"], ["search", "Rome"], ["context", "Rome"], ["facts"], ["users"], ["stats"],
        ["recalls"], ["config", "show"], ["config", "path"], ["snapshot"], ["gc", "--explain"],
        ["gc"], ["review", "quarantined"], ["diff", "1"], ["session", "add", "s", "x"],
        ["session", "show", "s"], ["at", "1", "list"], ["demo"],
    ):  # fmt: skip
        done = run(*command, "--json")
        assert (done.code, done.err) == (0, ""), command
        assert isinstance(done.data, dict), command


def test_on_a_terminal_json_is_indented() -> None:
    assert on_terminal("config", "path", "--json").out.startswith('{\n  "file"')
