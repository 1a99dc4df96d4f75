"""Standard input: lines, JSON lines, and what is not what it should be."""

from __future__ import annotations

import json

import pytest

from memoryspace.cli import texts

from commands import run


def listed() -> list[str]:
    return [each["text"] for each in run("list", "--all", "--oldest", "--json").lines]


def test_every_line_is_a_message() -> None:
    done = run("add", "-", stdin="\ufefftea\r\n\n  coffee  \n水\n最后".encode())
    assert done.code == 0
    assert listed() == ["tea", "coffee", "水", "最后"]


def test_lines_are_added_in_batches_each_with_a_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "AT_ONCE", 2)
    done = run("add", "-", "--json", stdin="a\nb\nc\n")
    assert [len(each["new"]) for each in done.lines] == [2, 1]
    assert listed() == ["a", "b", "c"]


def test_json_lines_are_messages_with_roles() -> None:
    lines = [{"role": "assistant", "content": "tea"}, {"content": "two", "id": "m2"}]
    done = run("add", "-", "--jsonl", "--json", stdin="\n".join(map(json.dumps, lines)))
    assert done.data["ids"][1] == "m2"
    assert run("get", done.data["ids"][0], "--json").data["role"] == "assistant"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "message 2 is not a JSON object"),
        (b"[1]", "message 2 is not a JSON object"),
        (b"[" * 100_000, "message 2 is not a JSON object"),
        (b'{"content": ' + b'{"a":' * 3000 + b"1" + b"}" * 3001, ""),
        (b'{"content": 7}', ""),
        (b'{"content": "\xff"}', "line 2 is not UTF-8"),
        (b'{"content": "' + b"x" * (9 << 20) + b'"}', "line 2 has more than"),
    ],
    ids=["cut", "list", "deep list", "deep", "number", "encoding", "long"],
)
def test_a_hostile_line_is_refused_in_one_line(line: bytes, message: str) -> None:
    done = run("add", "-", "--jsonl", stdin=b'{"content": "tea"}\n' + line + b"\n")
    assert done.code == 2
    assert done.err.startswith("memoryspace: ")
    assert done.err.count("\n") == 1
    assert len(done.err) < 500
    assert message in done.err


def test_what_was_added_before_a_bad_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "AT_ONCE", 1)
    monkeypatch.setenv("MEMORYSPACE_SECRETS", "refuse")
    done = run("add", "-", stdin="tea\nmy password is hunter2-Xy9!kkQ\nmilk\n")
    assert done.code == 3
    assert "the messages before number 2 were added" in done.err
    assert "hunter2" not in done.err + done.out
    assert listed() == ["tea"]


def test_a_long_text_is_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    run("add", "tea")
    monkeypatch.setattr(texts, "MOST_TEXT", 1000)
    done = run("search", "-", stdin="x" * 2000)
    assert (done.code, done.out) == (2, "")
    assert run("search", "-", stdin=b"\xff").code == 2
