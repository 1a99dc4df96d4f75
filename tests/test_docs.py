"""What the documents show is run, what they link to exists, what they promise is true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryspace.cli import reference

from backends import cluster_url, server_url

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
REDIS = "redis://localhost:6379/0"
CLUSTER = "redis+cluster://localhost:7000,localhost:7001"


def python_blocks() -> list[tuple[str, str]]:
    return [
        (f"{path.name}-{number}", code)
        for path in DOCUMENTS
        for number, code in enumerate(
            re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S)
        )
    ]


@pytest.mark.parametrize(("name", "code"), python_blocks(), ids=lambda value: value[:20])
def test_a_code_block_runs(name: str, code: str, tmp_path: Path) -> None:
    if REDIS in code:
        code = code.replace(REDIS, server_url("redis"))
    if CLUSTER in code:
        code = code.replace(CLUSTER, cluster_url("redis-cluster"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{name}: {done.stderr}"
    expected = re.findall(r"# (\d+)\b", code)
    assert [line for line in done.stdout.split() if line.isdigit()][: len(expected)] == expected


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8"))
    missing = [
        link
        for link in links
        if not link.startswith("http") and not (path.parent / link).resolve().exists()
    ]
    assert missing == []


def test_the_readme_names_the_commands_that_the_makefile_has() -> None:
    readme, makefile = (
        (ROOT / "README.md").read_text("utf-8"),
        (ROOT / "Makefile").read_text("utf-8"),
    )
    targets = re.findall(r"\$ make (\w+)", readme)
    assert targets == ["run", "test"]
    for target in [*targets, "bench", "lint"]:
        assert re.search(rf"^{target}:", makefile, re.M)


@pytest.mark.parametrize("name", ["README", "docs/quickstart"])
def test_the_chinese_page_says_what_the_english_one_says(name: str) -> None:
    english, chinese = (_parts(ROOT / f"{name}{end}.md") for end in ("", ".zh"))
    assert english["code"] <= chinese["code"]
    assert english["sections"] == chinese["sections"]
    assert english["rows"] == chinese["rows"]
    assert english["links"] == chinese["links"]


def _parts(path: Path) -> dict[str, Any]:
    """Return what a page and its translation have in common."""
    text = path.read_text("utf-8")
    links = {link.replace(".zh.md", ".md") for link in re.findall(r"\]\(([^)]+)\)", text)}
    return {
        "code": set(re.findall(r"```(?:python|text)\n(.*?)```", text, re.S)),
        "sections": len(re.findall(r"^## ", text, re.M)),
        "rows": len(re.findall(r"^\| ", text, re.M)),
        "links": links - {"README.md"},
    }


def test_every_command_is_in_the_documents() -> None:
    text = "".join(path.read_text("utf-8") for path in DOCUMENTS)
    commands = [words[0] for words, _ in reference.commands() if len(words) == 1]
    assert [name for name in commands if f"memoryspace {name}" not in text] == []


def test_every_example_is_tested() -> None:
    tests = (ROOT / "tests" / "test_examples.py").read_text("utf-8")
    examples = [path.stem for path in (ROOT / "examples").glob("*.py")]
    assert examples
    assert [name for name in examples if f'"{name}"' not in tests] == []
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
