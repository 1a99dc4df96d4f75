"""Adding, reading, changing, deleting and finding memories from the command line."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from memoryspace import Memory
from memoryspace.door.results import Memories, SearchResult
from memoryspace.service.values.receipt import Receipt

from commands import run


def add(text: str, *options: str) -> str:
    """Add a text and return its id."""
    receipt = run("--json", "add", *options, "--", text).data
    [memory_id] = receipt["ids"]
    return str(memory_id)


def test_what_is_added_is_found_by_the_next_command(home: Path) -> None:
    done = run("add", "I moved to Oslo.", "I like tea.")
    assert done.code == 0
    assert [row[0] for row in done.rows] == ["new", "new"]
    found = run("search", "Where", "do", "I", "live?", "--limit", "1")
    [[score, text, _day, who, _note, memory_id]] = found.rows
    assert (text, who, memory_id) == ("I moved to Oslo.", "user", done.rows[0][1])
    assert 0 < float(score) <= 1
    with Memory(home) as memory:
        assert set(memory.list(user="ann").texts) == {"I moved to Oslo.", "I like tea."}


def test_a_message_that_is_known_is_said_to_be() -> None:
    message = '{"id": "m1", "content": "tea"}'
    assert run("add", "--jsonl", message).rows == [["new", "m1", ""]]
    assert run("add", "--jsonl", message).rows == [["known", "m1", ""]]


def test_a_text_is_added_with_what_the_options_say() -> None:
    memory_id = add(
        "Tea is ready.", "--session", "kitchen", "--role", "assistant", "--name", "Bo",
        "--mark", "hot", "--mark", "drink", "--when", "2026-11-01T12:00",
    )  # fmt: skip
    shown = run("get", memory_id, "--json").data
    assert (shown["session_id"], shown["role"], shown["name"]) == ("kitchen", "assistant", "Bo")
    assert (shown["marks"], shown["created_at"]) == (["drink", "hot"], 1793534400.0)
    fields = dict(run("get", memory_id).rows)
    assert (fields["who"], fields["when"]) == ("Bo", "2026-11-01 12:00:00 UTC")


def test_the_user_is_named_by_option_setting_or_login(monkeypatch: pytest.MonkeyPatch) -> None:
    run("add", "mine")
    run("add", "yours", "--user", "bob")
    monkeypatch.delenv("MEMORYSPACE_USER")
    run("add", "the login's")
    names = {row[0] for row in run("users").rows}
    assert names == {"ann", "bob", getpass.getuser()}
    assert [row[0] for row in run("list", "-u", "bob").rows] == ["yours"]


def test_options_may_stand_before_a_command_and_after_it(tmp_path: Path) -> None:
    before = run("-a", str(tmp_path / "b"), "-u", "bob", "--json", "add", "tea")
    after = run("add", "tea", "-a", str(tmp_path / "b"), "-u", "bob", "--json")
    assert (len(before.data["new"]), len(after.data["new"])) == (1, 1)
    listed = run("list", "--json", "--address", str(tmp_path / "b"), "--user", "bob").data
    assert len(listed["memories"]) == 2


def test_json_is_what_the_values_in_python_read() -> None:
    assert Receipt.from_dict(run("add", "I live in Rome.", "--json").data).derived == ("personal",)
    found = SearchResult.from_dict(run("search", "Rome", "--json", "--explain").data)
    assert found.texts == ("I live in Rome.",)
    assert found[0].why is not None
    assert Memories.from_dict(run("facts", "--json").data).texts == ("The user lives in Rome.",)


def test_a_search_explains_itself_if_asked() -> None:
    add("I live in Rome.")
    plain, explained = run("search", "Rome").rows, run("search", "Rome", "--explain").rows
    assert len(explained[0]) == len(plain[0]) + 1
    assert "known: The user lives in Rome." in explained[0][5]


def test_a_search_is_narrowed_by_options() -> None:
    add("tea one", "--session", "a", "--when", "2026-01-01")
    add("tea two", "--session", "b", "--when", "2026-02-01")
    add("tea three", "--session", "b", "--role", "assistant", "--when", "2026-03-01")
    for options, texts in (
        (["--session", "a"], {"tea one"}),
        (["--since", "2026-02-01"], {"tea two", "tea three"}),
        (["--until", "2026-01-15"], {"tea one"}),
        (["--filters", '{"role": "assistant"}'], {"tea three"}),
        (["--limit", "1"], None),
    ):
        found = {row[1] for row in run("search", "tea", *options).rows}
        assert found == texts if texts is not None else len(found) == 1


def test_a_context_is_text_for_a_prompt_and_empty_if_nothing_is_relevant() -> None:
    add("My sister Clara is allergic to peanuts.")
    made = run("context", "What must Clara not eat?")
    assert made.code == 0
    assert '"My sister Clara is allergic to peanuts."' in made.out
    nothing = run("context", "How far is the moon?")
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "nothing relevant\n")
    assert run("context", "How far is the moon?", "--json").data["text"] == ""


def test_nothing_found_is_exit_code_1() -> None:
    add("tea")
    irrelevant = ["search", "xylophone", "--min-relevance", "0.3"]
    assert run(*irrelevant)[:2] == (1, "")
    assert run(*irrelevant, "--json").data["hits"] == []
    for command in (["get", "none"], ["history", "none"], ["delete", "none", "--yes"]):
        assert run(*command).code == 1
    assert run("update", "none", "x").code == 1
    assert run("list", "--user", "nobody")[:2] == (0, "")


def test_a_question_is_read_from_standard_input() -> None:
    add("I live in Rome.")
    assert run("search", "-", stdin="Where in Rome\ndo I live?\n").rows[0][1] == "I live in Rome."


def test_a_memory_is_changed_and_its_history_kept() -> None:
    memory_id = add("I live in Rome.")
    changed = run(
        "update", memory_id, "-", "--importance", "0.9", "--json", stdin="I live in Oslo.\n"
    )
    assert (changed.data["text"], changed.data["importance"]) == ("I live in Oslo.", 0.9)
    versions = [row[:2] for row in run("history", memory_id).rows]
    assert versions == [["1", "I live in Rome."], ["2", "I live in Oslo."]]
    late = run("update", memory_id, "too late", "--version", "1")
    assert (late.code, late.out) == (3, "")
    assert run("update", memory_id, "--metadata", '{"a": 1}', "--json").data["metadata"] == {"a": 1}


def test_deleting_is_refused_without_a_terminal_and_without_yes() -> None:
    memory_id = add("I live in Rome.")
    refused = run("delete", memory_id)
    assert refused.code == 3
    assert "--yes" in refused.err
    assert len(run("list").rows) == 1
    done = run("delete", memory_id, "--yes")
    assert (done.code, done.out) == (0, "deleted: 1 messages, 1 derived\n")
    assert run("list").rows == []
    assert run("facts").rows == []


def test_a_conversation_or_everything_of_a_user_is_deleted() -> None:
    add("one", "--session", "a")
    add("two", "--session", "b")
    assert run("delete", "--session", "a", "--yes").code == 0
    assert [row[0] for row in run("list").rows] == ["two"]
    erased = run("delete", "--everything", "--yes", "--json").data
    assert erased["left"]["is_complete"] is True
    assert run("users").rows == []
    for wrong in ([], ["x", "--everything"], ["--session", "a", "--everything"]):
        assert run("delete", *wrong, "--yes").code == 2


def test_a_search_says_why_something_is_not_found_and_the_log_what_helped() -> None:
    memory_id = add("I live in Rome.")
    assert dict(run("why-not", memory_id, "Rome").rows)["reason"] == "found"
    assert run("why-not", "none", "Rome").code == 1
    other = add("xylophones are loud")
    recall = run("search", "Rome", "--limit", "1", "--json").data["recall_id"]
    assert run("feedback", recall, memory_id).code == 0
    log = run("recalls", "--json").data
    assert (log["count"], log["answered"], log["helped"]) == (1, 1, 1)
    assert "1 recalls" in run("recalls").err
    assert [row[-1] for row in run("recalls", "--never").rows] == [other]


def test_a_list_goes_on_page_by_page_or_shows_all() -> None:
    run("add", *(f"note {number}" for number in range(5)), "--when", "2026-01-01")
    first = run("list", "--limit", "2", "--oldest")
    assert [row[0] for row in first.rows] == ["note 0", "note 1"]
    assert "there are more" in first.err
    assert run("list", "--limit", "2", "--quiet").err == ""
    cursor = run("list", "--limit", "2", "--oldest", "--json").data["cursor"]
    then = run("list", "--limit", "2", "--oldest", "--cursor", cursor)
    assert [row[0] for row in then.rows] == ["note 2", "note 3"]
    everything = run("list", "--all", "--limit", "2", "--oldest", "--json").lines
    assert [each["text"] for each in everything] == [f"note {number}" for number in range(5)]
    assert len(run("list", "--all", "--limit", "2").rows) == 5
    run("add", "x", "-u", "bob")
    assert [each["user"] for each in run("users", "--all", "--limit", "1", "--json").lines] == [
        "ann",
        "bob",
    ]


def test_figures_are_shown() -> None:
    add("I live in Rome.")
    figures = dict(run("stats").rows)
    assert (figures["user"], figures["memories"], figures["facts"]) == ("ann", "1", "1")
    assert figures["durable"] == "yes"
    assert run("stats", "--json").data["usage"]["sessions"] == 1


def test_a_mistyped_folder_does_not_become_an_empty_memory(tmp_path: Path) -> None:
    wrong = str(tmp_path / "no-such-folder")
    done = run("list", "--address", wrong)
    assert done.code == 1
    assert "no-such-folder" in done.err
    assert not Path(wrong).exists()
