"""What a caller is told who passes something wrong: which argument, and what to pass instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryspace import AsyncMemory, Memory
from memoryspace.door import Config
from memoryspace.errors import ImportRefused, InvalidInput, NotOffered

from doors import WORDS

Call = Callable[[Any], object]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory("memory:", user="ann", config=WORDS) as opened:
        opened.add({"id": "car", "content": "My car is a Volvo."})
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    place = tmp_path_factory.mktemp("space") / "memories"
    with Memory(place, user="ann", config=WORDS) as opened:
        opened.add({"id": "car", "content": "My car is a Volvo."})
        yield opened


ARGUMENTS: dict[str, tuple[Call, str]] = {
    "a name of mem0": (lambda m: m.add("x", user_id="ann"), r"add\(\) .*'user_id'.*mean 'user'"),
    "a typo": (lambda m: m.search("car", limt=3), r"search\(\) .*'limt'; did you mean 'limit'"),
    "a strange name": (lambda m: m.search("car", zzz=3), "no argument 'zzz'; there are question"),
    "one too many": (lambda m: m.add("x", "ann"), r"add\(\) takes .* its arguments are messages"),
    "one missing": (lambda m: m.delete_user(), r"delete_user\(\) missing .*'user'"),
    "nothing": (lambda m: m.add(None), "NoneType is not a message: pass a text"),
    "bytes": (lambda m: m.add(b"x"), "bytes is not a message"),
    "a generator": (lambda m: m.add(each for each in "ab"), "generator .* make it a list"),
    "a pair": (lambda m: m.add([("user", "x")]), r"messages\[0\]: tuple is not a message"),
    "to a session": (lambda m: m.session("s").add(None), "NoneType is not a message"),
    "a mark": (lambda m: m.session("s").add("x", marks=3), "marks must be a str"),
    "ids of a session": (lambda m: m.session("s").mark("a", None), "ids must be a str or a list"),
    "filters": (lambda m: m.search("car", filters="role"), "filters must be a dict"),
    "a question": (lambda m: m.why_not(3, "car"), "a question must be a str"),
    "feedback": (lambda m: m.feedback("x", None), "ids must be a str or a list"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_a_wrong_argument_is_named(memory: Memory, case: str) -> None:
    call, message = ARGUMENTS[case]
    with pytest.raises(TypeError, match=message):
        call(memory)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.search("car", limit=0),
        lambda m: m.facts(limit=0),
        lambda m: m.why_not("car", "car", limit=0),
    ],
)
def test_a_limit_is_called_as_the_caller_called_it(memory: Memory, call: Call) -> None:
    with pytest.raises(InvalidInput, match=r"^limit must be"):
        call(memory)


def test_an_update_without_a_change_names_what_can_be_changed(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="pass message, metadata, importance or marks"):
        memory.update("car")


WRONG_CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "embedder": ({"embedder": "nope"}, "embedder must be 'best' or .*got 'nope'"),
    "a text for a number": ({"ttl_days": "3"}, "^ttl_days must be a number or none, got '3'$"),
    "a text for a truth": ({"quarantine": "no"}, "quarantine must be true or false"),
    "too short a life": ({"ttl_days": -1}, "ttl_days must be more than 0"),
    "too few tokens": ({"max_tokens": 5}, "max_tokens must be 100 or more"),
    "no room": ({"max_indexed": 0}, "max_indexed must be 1 or more"),
    "a long text": ({"keep_days": "9" * 1000}, "^.{20,200}$"),
}


@pytest.mark.parametrize("case", WRONG_CONFIGS)
def test_a_configuration_is_checked_when_it_is_made(case: str) -> None:
    options, message = WRONG_CONFIGS[case]
    with pytest.raises(InvalidInput, match=message):
        Config(**options)


def test_a_configuration_shows_what_differs_but_no_secret() -> None:
    config = Config(address="redis://me:secret@host", api_key="secret", keep_days=3)
    assert repr(config) == ("Config(address='redis://me:•••@host', api_key='•••', keep_days=3)")
    assert repr(Config()) == "Config()"


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
@pytest.mark.parametrize("what", ["config", "settings", "model"])
def test_an_option_of_another_type_is_refused_at_once(kind: Any, what: str) -> None:
    with pytest.raises(TypeError, match=f"{what} must be a .*, got dict"):
        kind("memory:", **{what: {}})


def test_a_memory_in_ram_is_not_taken_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="'memory:'"):
        Memory(":memory:", config=WORDS)
    assert not list(tmp_path.iterdir())


def test_an_address_with_a_password_is_not_shown_in_an_error() -> None:
    with pytest.raises(InvalidInput, match="not the address of a server") as error:
        Memory("https://me:secret@host", config=WORDS)
    assert "secret" not in str(error.value)


FILES: dict[str, tuple[Call, type[Exception], str]] = {
    "export to no folder": (lambda m: m.export("no/a.jsonl"), InvalidInput, "no folder no"),
    "export to a folder": (lambda m: m.export("."), InvalidInput, "is a folder; name a file"),
    "import nothing": (lambda m: m.import_("no.jsonl"), ImportRefused, "no file no.jsonl"),
    "import a folder": (lambda m: m.import_("."), ImportRefused, "no file ."),
    "fork to a file": (lambda m: m.fork(__file__), InvalidInput, "is a file; fork into"),
    "a change to come": (lambda m: m.diff(1_800_000_000), InvalidInput, "seconds is a float"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_place_is_named(
    folder: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    call, kind, message = FILES[case]
    with pytest.raises(kind, match=message):
        call(folder)
    assert not list(tmp_path.iterdir())


def test_a_tilde_is_the_users_folder(
    folder: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder.export("~/all.jsonl")
    assert folder.import_("~/all.jsonl").added == 0
    assert folder.backup("~/backups").kind == "full"
    assert {each.name for each in tmp_path.iterdir()} >= {"all.jsonl", "backups"}
    (tmp_path / "notes.txt").write_text("I live in Oslo.")
    assert folder.import_("~/notes.txt", kind="text", user="bob").added == 1


def test_a_backup_elsewhere_is_not_offered(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotOffered, match=r"this memory is in memory:.*export\(\)"):
        memory.backup(tmp_path / "backup")
