"""One server for the tests that need nothing special of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from web import Web, web


@pytest.fixture(scope="module")
def server() -> Iterator[Web]:
    with web() as running:
        yield running
