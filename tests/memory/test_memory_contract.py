import pytest

from memoryspace.testing import MEMORY_CONTRACT, MemoryCheck

from backends import SERVED_CLUSTERS, STORE_BACKENDS, memory_maker


@pytest.mark.parametrize("check", MEMORY_CONTRACT, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("backend", STORE_BACKENDS + SERVED_CLUSTERS)
async def test_the_contract_of_working_memory(backend: str, check: MemoryCheck) -> None:
    async with memory_maker(backend) as make:
        await check(make)


def test_the_contract_has_no_check_missing() -> None:
    assert len(MEMORY_CONTRACT) >= 20
