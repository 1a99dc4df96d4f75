"""What contributors rely on agrees: documents, make targets, hooks, workflows and metadata."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import memoryspace

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
GUIDES = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z][\w-]*):", makefile, re.M))


def pages_of(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation, whatever sections they are in."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_of(each)


def steps_of(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in read_yaml(workflow)["jobs"].values():
        yield from job["steps"]


def test_every_page_is_in_the_navigation() -> None:
    pages = set(pages_of(read_yaml(ROOT / "mkdocs.yml")["nav"]))
    in_docs = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    at_root = {path.name.lower().replace("_", "-") for path in ROOT.glob("*.md")}
    assert pages == in_docs | at_root - {"readme.md"} | {"index.md"}


@pytest.mark.parametrize("name", GUIDES)
def test_every_make_target_a_guide_names_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    named = set(re.findall(r"(?:`|^\$ |^)make ([a-z][\w-]*)", text, re.M))
    assert named <= make_targets()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_make_target_a_workflow_runs_exists(path: Path) -> None:
    runs = "\n".join(step.get("run", "") for step in steps_of(path))
    named = set(re.findall(r"make ([\w-]+)", runs))
    assert named
    assert named <= make_targets()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_major_version(path: Path) -> None:
    used = [step["uses"] for step in steps_of(path) if "uses" in step]
    assert used
    assert [each for each in used if not re.search(r"@(release/)?v\d+$", each)] == []


def test_ci_runs_the_tests_on_every_python_that_the_classifiers_name() -> None:
    prefix = "Programming Language :: Python :: 3."
    named = [each for each in project()["project"]["classifiers"] if each.startswith(prefix)]
    versions = [each.rpartition(" ")[2] for each in named]
    jobs = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    for system in ("linux", "macos"):
        assert jobs[system]["strategy"]["matrix"]["python"] == versions
    assert project()["project"]["requires-python"] == f">={versions[0]}"


def test_the_git_hooks_run_the_linters_of_the_lint_group() -> None:
    [repository] = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    programs = {hook["entry"].split()[0] for hook in repository["hooks"]}
    linters = [re.match(r"[\w-]+", each) for each in project()["dependency-groups"]["lint"]]
    assert programs == {f".venv/bin/{linter[0]}" for linter in linters if linter is not None}


def test_publishing_needs_no_secret_and_runs_no_code_of_the_project() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    publish = yaml.safe_load(text)["jobs"]["publish"]
    assert "secrets." not in text
    assert publish["permissions"] == {"id-token": "write"}
    assert all("run" not in step for step in publish["steps"])


def test_the_version_is_the_same_everywhere() -> None:
    version = project()["project"]["version"]
    assert memoryspace.__version__ == version
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"memoryspace-{version}-py3-none-any.whl" in (ROOT / "README.md").read_text("utf-8")


def test_the_servers_a_contributor_may_run_are_those_of_the_tests() -> None:
    done = run("tests/support/servers.py", "unknown")
    assert done.returncode == 1
    assert "redis, postgres, mariadb" in done.stderr


class TestCheckDist:
    """The check that ``make dist`` makes of a wheel and an sdist."""

    def test_complete_packages_pass(self, tmp_path: Path) -> None:
        done = self.check(tmp_path, tag="v1.0")
        assert done.returncode == 0, done.stderr
        assert "memoryspace-1.0-py3-none-any.whl: 0.00 MB" in done.stdout

    @pytest.mark.parametrize("name", ["tests/test_a.py", "results/a.json", "data/a.txt"])
    def test_a_foreign_file_in_the_wheel_is_refused(self, name: str, tmp_path: Path) -> None:
        done = self.check(tmp_path, more=(name,))
        assert f"whl holds {name}" in done.stderr
        assert done.returncode == 1

    @pytest.mark.parametrize("name", ["py.typed", "licenses/LICENSE"])
    def test_what_is_missing_in_the_wheel_is_named(self, name: str, tmp_path: Path) -> None:
        done = self.check(tmp_path, without=name)
        assert "whl lacks" in done.stderr
        assert name in done.stderr

    def test_a_tag_that_is_not_the_version_is_refused(self, tmp_path: Path) -> None:
        done = self.check(tmp_path, tag="v2.0")
        assert "the tag is v2.0, the version 1.0" in done.stderr

    def test_results_in_the_sdist_are_refused(self, tmp_path: Path) -> None:
        done = self.check(tmp_path, in_sdist=("results/a.json",))
        assert "tar.gz holds memoryspace-1.0/results/a.json" in done.stderr

    def check(
        self,
        folder: Path,
        *,
        more: tuple[str, ...] = (),
        without: str = "nothing",
        in_sdist: tuple[str, ...] = (),
        tag: str = "v1.0",
    ) -> subprocess.CompletedProcess[str]:
        """Check packages of one's own, of empty files."""
        about = "memoryspace-1.0.dist-info"
        names = ["memoryspace/__init__.py", "memoryspace/py.typed", *more]
        names += [f"{about}/METADATA", f"{about}/licenses/LICENSE"]
        with zipfile.ZipFile(folder / "memoryspace-1.0-py3-none-any.whl", "w") as wheel:
            for name in names:
                if not name.endswith(without):
                    wheel.writestr(name, "")
        documents = ["LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"]
        with tarfile.open(folder / "memoryspace-1.0.tar.gz", "w:gz") as sdist:
            for name in [*documents, "src/memoryspace/py.typed", *in_sdist]:
                sdist.addfile(tarfile.TarInfo(f"memoryspace-1.0/{name}"))
        return run("tools/check_dist.py", str(folder), tag)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / program), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_is_built_is_ignored() -> None:
    built = ["build/site/index.html", "dist/a.whl", ".venv-docs/a", ".venv-wheel/a"]
    done = subprocess.run(
        ["git", "check-ignore", *built], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode == 128:
        pytest.skip("not a checkout")
    assert done.stdout.split() == built
