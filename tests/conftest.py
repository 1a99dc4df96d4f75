"""Set-up of all tests: coroutine tests get an event loop of their own, servers start when needed.

``tests/`` mirrors the package. What tests share stands in ``tests/support``, which is on the search
path here and in the processes that tests start.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

import clusters
import servers
from length import at_length

# Nobody's own memory and settings are touched, by no test and by no program that a test starts.
_HOME = TemporaryDirectory(prefix="memoryspace-tests-")
os.environ["MEMORYSPACE_HOME"] = str(Path(_HOME.name) / "memory")
os.environ["XDG_CONFIG_HOME"] = _HOME.name

SUPPORT = str(Path(__file__).parent / "support")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, os.environ.get("PYTHONPATH")]))

settings.register_profile(
    "suite",
    max_examples=at_length(50, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session", autouse=True)
def stop_servers() -> Iterator[None]:
    yield
    servers.stop_all()
    clusters.leave_all()
