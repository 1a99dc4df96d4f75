"""Coroutine tests run in an event loop of their own; servers start when first needed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import servers

settings.register_profile(
    "suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
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
