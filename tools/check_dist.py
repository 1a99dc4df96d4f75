"""Checks of the built wheel and sdist: what must be in them, what must not, and how large they are.

    python tools/check_dist.py dist [TAG]

With a tag it also checks that the tag is ``v`` and the version that was built.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGE = "memoryspace"
LARGEST = {".whl": 3_000_000, ".gz": 5_000_000}  # bytes; more means that something slipped in
IN_WHEEL = (f"{PACKAGE}/__init__.py", f"{PACKAGE}/py.typed", "/licenses/LICENSE", "/METADATA")
IN_SDIST = ("/LICENSE", "/README.md", "/CHANGELOG.md", "/pyproject.toml", f"/{PACKAGE}/py.typed")
NOT_IN_SDIST = ("results", "build", "dist", ".venv", ".github")


def main(folder: str, tag: str | None = None) -> None:
    """Check one wheel and one sdist; end with status 1 and every fault found."""
    wheel, sdist = _only(Path(folder), "*.whl"), _only(Path(folder), "*.tar.gz")
    faults = [*_size_faults(wheel), *_size_faults(sdist), *_wheel_faults(wheel)]
    faults += [*_sdist_faults(sdist), *_tag_faults(wheel, tag)]
    if faults:
        sys.exit("\n".join(faults))


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} holds {len(found)} files {pattern}; expected one")
    return found[0]


def _size_faults(path: Path) -> list[str]:
    size, largest = path.stat().st_size, LARGEST[path.suffix]
    print(f"{path.name}: {size / 1e6:.2f} MB")
    return [] if size <= largest else [f"{path.name} has {size} bytes, more than {largest}"]


def _wheel_faults(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    own = (f"{PACKAGE}/", f"{PACKAGE}-")
    foreign = [name for name in names if not name.startswith(own) or "__pycache__" in name]
    return [*_missing(wheel, names, IN_WHEEL), *_unwanted(wheel, foreign)]


def _sdist_faults(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    foreign = [name for name in names if name.partition("/")[2].startswith(NOT_IN_SDIST)]
    return [*_missing(sdist, names, IN_SDIST), *_unwanted(sdist, foreign)]


def _missing(path: Path, names: list[str], wanted: tuple[str, ...]) -> list[str]:
    return [
        f"{path.name} lacks {end}"
        for end in wanted
        if not any(name.endswith(end) for name in names)
    ]


def _unwanted(path: Path, names: list[str]) -> list[str]:
    return [f"{path.name} holds {name}" for name in names]


def _tag_faults(wheel: Path, tag: str | None) -> list[str]:
    version = wheel.name.split("-")[1]
    return [] if tag in (None, f"v{version}") else [f"the tag is {tag}, the version {version}"]


if __name__ == "__main__":
    main(*sys.argv[1:])
