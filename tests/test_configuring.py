"""Settings from a file, the environment and arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct

from memoryspace.configuring import Gathered, from_text, gathered
from memoryspace.errors import InvalidInput


class Shop(Struct, frozen=True, kw_only=True):
    name: str | None = None
    password: str | None = None
    shelves: int = 3
    rate: float = 0.5
    is_open: bool = True
    size: Literal["small", "large"] = "small"

    def __post_init__(self) -> None:
        if self.shelves < 1:
            raise InvalidInput(f"shelves must be 1 or more, got {self.shelves}")


class Needy(Struct, frozen=True):
    must: str
    may: int = 1


def shop(
    toml: str | bytes | None = None,
    tmp_path: Path | None = None,
    *,
    environment: dict[str, str] | None = None,
    given: dict[str, Any] | None = None,
    **options: Any,
) -> Gathered[Shop]:
    file = None
    if toml is not None:
        assert tmp_path is not None
        file = tmp_path / "shop.toml"
        file.write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    return gathered(
        Shop, file=file, environment=environment or {}, prefix="SHOP_", given=given or {}, **options
    )


def test_later_places_win_and_each_value_says_where_it_is_from(tmp_path: Path) -> None:
    found = shop(
        'name = "corner"\nshelves = 4\nrate = 1\n',
        tmp_path,
        environment={"SHOP_SHELVES": "5", "SHOP_IS_OPEN": "no", "HOME": "/"},
        given={"rate": 0.25, "name": None},
    )
    assert found.settings == Shop(name="corner", shelves=5, rate=0.25, is_open=False)
    assert found.sources == {
        "name": str(tmp_path / "shop.toml"),
        "password": "default",
        "shelves": "the variable SHOP_SHELVES",
        "rate": "argument",
        "is_open": "the variable SHOP_IS_OPEN",
        "size": "default",
    }


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({"toml": "shelfs = 4"}, r"shop\.toml: there is no setting 'shelfs'; did you mean 'shelve"),
        ({"environment": {"SHOP_NAMES": "x"}}, "SHOP_NAMES: there is no setting .*mean 'name'"),
        ({"given": {"is_opened": True}}, "argument: .*did you mean 'is_open'"),
        ({"given": {"zzz": 1}}, "there are is_open, name, password, rate, shelves, size"),
    ],
)
def test_an_unknown_setting_is_an_error_that_names_the_place_and_the_nearest_name(
    tmp_path: Path, places: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        shop(tmp_path=tmp_path, **places)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({"toml": "shelves = 'four'"}, r"shop\.toml: shelves must be a whole number, got 'four'"),
        ({"toml": "shelves = true"}, "shelves must be a whole number, got True"),
        ({"toml": "rate = nan"}, "rate must be a number, got nan"),
        ({"toml": "size = 'huge'"}, "size must be 'small' or 'large', got 'huge'"),
        ({"toml": "is_open = 1"}, "is_open must be true or false, got 1"),
        ({"environment": {"SHOP_SHELVES": "four"}}, "SHOP_SHELVES must be a whole number, but"),
        ({"environment": {"SHOP_RATE": "nan"}}, "the variable SHOP_RATE: rate must be a number"),
        ({"environment": {"SHOP_SIZE": "huge"}}, "SHOP_SIZE must be 'small' or 'large'"),
        ({"toml": "shelves = 0"}, r"shop\.toml: shelves must be 1 or more, got 0"),
        ({"given": {"shelves": 0}}, "argument: shelves must be 1 or more, got 0"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_place(
    tmp_path: Path, places: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        shop(tmp_path=tmp_path, **places)


@pytest.mark.parametrize("value", ["12345", "['hunter2']", "{ is = 'hunter2' }"])
def test_an_error_does_not_show_what_may_be_a_secret(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidInput, match="password must be none or a text") as caught:
        shop(f"password = {value}", tmp_path)
    assert "hunter2" not in str(caught.value)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"name = ",
        b"\xff\xfe",
        b"a = " + b"[" * 5000,
        b"shelves = " + b"9" * 5000,
        b"#" * ((1 << 20) + 1),
    ],
    ids=["broken", "not UTF-8", "deep", "long number", "large"],
)
def test_a_hostile_file_is_an_error_that_names_it(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"shop\.toml"):
        shop(data, tmp_path)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            gathered(Shop, file=path, environment={}, prefix="SHOP_", given={})


def test_a_file_may_begin_with_a_byte_order_mark_and_use_dashes(tmp_path: Path) -> None:
    assert not shop(b"\xef\xbb\xbfis-open = false", tmp_path).settings.is_open


def test_a_top_level_may_have_further_tables_and_a_table_its_own_settings(tmp_path: Path) -> None:
    toml = "shelves = 2\n[server]\nshelves = 7\nport = 80\n"
    assert shop(toml, tmp_path).settings.shelves == 2
    with pytest.raises(InvalidInput, match=r"\[server\]: there is no setting 'port'"):
        shop(toml, tmp_path, table="server")
    found = shop("[server]\nshelves = 7\n", tmp_path, table="server")
    assert (found.settings.shelves, found.sources["shelves"][-8:]) == (7, "[server]")
    assert shop(toml, tmp_path, table="client").settings == Shop()
    with pytest.raises(InvalidInput, match="must be a table"):
        shop("server = 1", tmp_path, table="server")


def test_variables_that_are_no_settings_are_named_one_by_one_or_by_their_beginning() -> None:
    environment = {"SHOP_HOME": "x", "SHOP_TEST_REDIS": "y"}
    assert shop(environment=environment, others=("HOME", "TEST_*")).settings == Shop()
    with pytest.raises(InvalidInput, match="SHOP_HOME"):
        shop(environment=environment, others=("TEST_*",))


def test_a_setting_without_a_default_must_have_a_value() -> None:
    with pytest.raises(InvalidInput, match="'must' has no value"):
        gathered(Needy, environment={}, prefix="X_", given={})
    found = gathered(Needy, environment={"X_MUST": "x"}, prefix="X_", given={})
    assert found.settings == Needy("x")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12", int, 12),
        ("12", int | str, 12),
        ("twelve", int | str, "twelve"),
        ("1.5", float | None, 1.5),
        ("", float | None, None),
        ("None", str | None, None),
        ("none", Literal["none", "best"], "none"),
        ("YES", bool, True),
        ("off", bool, False),
        ("", str, ""),
    ],
)
def test_a_text_is_read_as_the_type_asks(text: str, kind: Any, value: object) -> None:
    assert from_text("it", text, kind) == value


def test_a_text_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(InvalidInput, match=r"^it must be a number or none, but") as caught:
        from_text("it", "hunter2", float | None)
    assert "hunter2" not in str(caught.value)
