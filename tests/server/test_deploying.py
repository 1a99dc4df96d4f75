"""The files for containers are what their programs read, and name what exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import convert

from memoryspace.door.config import load_config
from memoryspace.server import load_server_config

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_compose_file_configures_the_server(name: str) -> None:
    text = (ROOT / f"deploy/compose.{name}.yaml").read_text("utf-8")
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    assert convert(services["memory"]["ports"], list[str]) == ["127.0.0.1:8710:8710"]
    [needed] = services["memory"]["depends_on"]
    assert "healthcheck" in services[needed]
    environment = services["memory"]["environment"]
    address = load_config(environment=environment).settings.address
    assert address is not None
    assert needed in address
    assert load_server_config(environment=environment).settings.workers == 2
    assert (ROOT / "deploy" / services["memory"]["build"]["dockerfile"]).exists()


def test_the_container_file_names_settings_and_extras_that_exist() -> None:
    text = (ROOT / "deploy/Containerfile").read_text("utf-8")
    environment = dict(re.findall(r"(MEMORYSPACE_\w+)=(\S+)", text))
    assert load_server_config(environment=environment).settings.host == "0.0.0.0"
    assert load_config(environment=environment).settings.address == "/data/memories"
    extras = re.findall(r"memoryspace\[([\w,]+)\]", text)[0].split(",")
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert [each for each in extras if f"\n{each} = " not in project] == []
    assert "USER memory" in text
