"""``Config``: a file, then variables, then arguments; what is wrong is said, secrets are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import memoryspace
from memoryspace.door import Config, Memory, load_config
from memoryspace.door.address import shown
from memoryspace.door.config import _OTHERS, config_file
from memoryspace.errors import InvalidInput

SOURCES = Path(memoryspace.__file__).parent


def test_a_file_a_variable_and_an_argument_come_in_this_order(tmp_path: Path) -> None:
    file = tmp_path / "memoryspace.toml"
    file.write_text('user = "ann"\nsecrets = "mask"\nmax-tokens = 100\n[server]\nport = 1\n')
    environment = {
        "MEMORYSPACE_CONFIG": str(file),
        "MEMORYSPACE_USER": "bob",
        "MEMORYSPACE_TTL_DAYS": "30",
    }
    found = load_config({"max_tokens": 300}, environment=environment)
    assert found.settings == Config(user="bob", secrets="mask", max_tokens=300, ttl_days=30)
    assert found.sources["user"] == "the variable MEMORYSPACE_USER"
    assert found.sources["secrets"] == str(file)
    assert found.sources["max_tokens"] == "argument"
    assert found.sources["quarantine"] == "default"


def test_a_named_file_goes_before_the_working_folder_s_and_that_before_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setattr("sys.platform", "linux")
    assert config_file({}) is None
    own = tmp_path / "settings" / "memoryspace" / "memoryspace.toml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    assert config_file({}) == own
    (tmp_path / "memoryspace.toml").write_text("")
    assert config_file({}) == Path("memoryspace.toml")
    assert config_file({"MEMORYSPACE_CONFIG": "other.toml"}) == Path("other.toml")


def test_a_memory_is_opened_as_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memoryspace.toml").write_text('address = "memory:"\nuser = "ann"\n')
    with Memory() as memory:
        assert (memory.address, memory.config.user) == ("memory:", "ann")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("embedder", "bets"),
        ("search", "elsewhere"),
        ("secrets", "hide"),
        ("review", "all"),
        ("keep_days", -1),
        ("keep_days", float("nan")),
        ("ttl_days", 0),
        ("ttl_days", float("inf")),
        ("min_relevance", 2),
        ("max_tokens", 0),
        ("max_recalls", -1),
        ("max_indexed", 0),
        ("user", ""),
    ],
)
def test_a_value_out_of_range_is_an_error_that_names_the_setting(setting: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=setting):
        Config(**{setting: value})


def test_an_error_of_range_names_the_variable_too() -> None:
    with pytest.raises(InvalidInput, match="variable MEMORYSPACE_KEEP_DAYS: keep_days must be 0"):
        load_config(environment={"MEMORYSPACE_KEEP_DAYS": "-1"})


def test_the_nearest_setting_is_named() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'min_relevance'"):
        load_config(environment={"MEMORYSPACE_MIN_RELEVENCE": "0.1"})


def test_every_variable_that_the_package_reads_is_a_setting_or_known_to_be_none() -> None:
    texts = (path.read_text("utf-8") for path in SOURCES.rglob("*.py"))
    named = {each for text in texts for each in re.findall(r"\bMEMORYSPACE_([A-Z_]+)\b", text)}
    starts = tuple(each[:-1] for each in _OTHERS if each.endswith("*"))
    settings = {name.upper() for name in Config.__struct_fields__}
    unknown = {each for each in named - settings - set(_OTHERS) if not each.startswith(starts)}
    assert {"HOME", "CONFIG", "TRACEBACK"} <= named
    assert unknown == set()


def test_a_configuration_does_not_print_its_secrets() -> None:
    config = Config(address="redis://:hunter2@db/0", api_key="hunter3", user="ann")
    assert "hunter" not in repr(config)
    assert "user='ann'" in repr(config)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("memory:", "memory:"),
        ("/data/memory", "/data/memory"),
        ("sqlite:///memory.db", "sqlite:///memory.db"),
        ("redis://db:6379/0?timeout=3", "redis://db:6379/0?timeout=3"),
        ("postgresql://ann:hunter2@db/x", "postgresql://ann:•••@db/x"),
        ("postgresql://ann:p@hunter2@db/x", "postgresql://ann:•••@db/x"),
        ("redis://:hunter2@db", "redis://:•••@db"),
        ("postgresql://db/x?user=a&password=hunter2", "postgresql://db/x?user=a&password=•••"),
        ("https://db/x?api_key=hunter2", "https://db/x?api_key=•••"),
        ("redis://:hunter2@[db", "redis://•••"),
    ],
)
def test_an_address_is_shown_without_passwords(address: str, expected: str) -> None:
    assert shown(address) == expected
