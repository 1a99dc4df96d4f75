"""``memoryspace config``: every setting with its place, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryspace import Config

from commands import run


def shown(*options: str) -> dict[str, tuple[object, str]]:
    settings = run("config", "show", "--json", *options).data["settings"]
    return {each["setting"]: (each["value"], each["from"]) for each in settings}


def test_every_setting_says_where_it_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYSPACE_SECRETS", "mask")
    Path("memoryspace.toml").write_text("max_tokens = 150\nsecrets = 'refuse'\n")
    found = shown("--address", "memory:")
    assert found.keys() == set(Config.__struct_fields__)
    assert found["address"] == ("memory:", "argument")
    assert found["max_tokens"] == (150, "memoryspace.toml")
    assert found["secrets"] == ("mask", "the variable MEMORYSPACE_SECRETS")
    assert found["ttl_days"] == (None, "default")
    rows = {row[0]: row[1:] for row in run("config", "show").rows}
    assert rows["secrets"] == ["mask", "the variable MEMORYSPACE_SECRETS"]
    assert (rows["quarantine"], rows["ttl_days"]) == (["true", "default"], ["none", "default"])
    other = tmp_path / "other.toml"
    other.write_text("max-tokens = 160\n")
    assert shown("--config", str(other))["max_tokens"] == (160, str(other))


def test_the_user_is_your_login_name_if_no_place_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORYSPACE_USER")
    monkeypatch.setenv("LOGNAME", "carol")
    assert shown()["user"] == ("carol", "your login name")


def test_secrets_are_not_shown() -> None:
    Path("memoryspace.toml").write_text(
        'api_key = "hunter2"\naddress = "postgresql://ann:hunter2@db/x?sslpassword=hunter2"\n'
    )
    for command in ("show", "path"):
        for option in ([], ["--json"]):
            assert "hunter2" not in run("config", command, *option).out
    assert shown()["api_key"][0] == "•••"
    assert shown()["address"][0] == "postgresql://ann:•••@db/x?sslpassword=•••"


def test_the_paths_are_shown(home: Path) -> None:
    assert run("config", "path").rows == [["file", "none"], ["address", str(home)]]
    Path("memoryspace.toml").write_text("")
    assert run("config", "path", "--json").data["file"] == "memoryspace.toml"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("file", "memoryspace.toml: there is no setting 'max_tokns'; did you mean 'max_tokens'?"),
        ("variable", "MEMORYSPACE_MAX_TOKNS: there is no setting 'max_tokns'; did you mean"),
    ],
)
def test_an_unknown_setting_is_an_error_that_names_the_nearest(
    place: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "file":
        Path("memoryspace.toml").write_text("max_tokns = 1\n")
    else:
        monkeypatch.setenv("MEMORYSPACE_MAX_TOKNS", "1")
    for command in (["config", "show"], ["stats"]):
        done = run(*command)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
