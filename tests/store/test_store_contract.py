import pytest

from memoryspace.testing import STORE_CONTRACT, VECTORS_CONTRACT, StoreCheck

from backends import CLUSTER_BACKENDS, STORE_BACKENDS, store_maker


@pytest.mark.parametrize("check", STORE_CONTRACT, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("backend", STORE_BACKENDS + CLUSTER_BACKENDS)
async def test_the_store_contract(backend: str, check: StoreCheck) -> None:
    async with store_maker(backend) as make:
        await check(make)


@pytest.mark.parametrize("check", VECTORS_CONTRACT, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("backend", STORE_BACKENDS + CLUSTER_BACKENDS)
async def test_the_contract_of_kept_vectors(backend: str, check: StoreCheck) -> None:
    async with store_maker(backend) as make:
        await check(make)


def test_the_contract_has_no_check_missing() -> None:
    assert len(STORE_CONTRACT) >= 22
    assert len(VECTORS_CONTRACT) >= 14
