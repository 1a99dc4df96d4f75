"""Every backend of the memory service keeps the same contract."""

from __future__ import annotations

import pytest

from memoryspace.testing.service_contract import SERVICE_CONTRACT, ServiceCheck

from backends import SERVED_CLUSTERS
from services import BACKENDS, service_maker


@pytest.mark.parametrize("backend", BACKENDS + SERVED_CLUSTERS)
@pytest.mark.parametrize("check", SERVICE_CONTRACT, ids=lambda check: check.__name__[6:])
async def test_service(check: ServiceCheck, backend: str) -> None:
    async with service_maker(backend) as make:
        await check(make)
