"""The collector rests while it is asked to, however many ask, and is left as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from memoryspace.collector import collector_at_rest


@pytest.fixture(autouse=True)
def _on_again() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_the_last_of_those_who_asked_lets_it_go_on() -> None:
    with collector_at_rest():
        with collector_at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_trouble_does_not_leave_it_off() -> None:
    with pytest.raises(RuntimeError), collector_at_rest():
        raise RuntimeError
    assert gc.isenabled()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_at_rest():
        assert not gc.isenabled()
    assert not gc.isenabled()
