"""What the OpenAPI document promises is what the server does, whatever it is sent."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import (
    response_schema_conformance,
    status_code_conformance,
)

from memoryspace import AsyncMemory
from memoryspace.server import create_app

from doors import WORDS
from length import at_length
from web import Web

DOCUMENT = create_app(AsyncMemory("memory:", config=WORDS)).openapi()
ENDLESS = "/v1/events"

schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path=ENDLESS)


@schema.parametrize()
@settings(
    max_examples=at_length(8, 100),
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_server_does_what_its_document_says(case: Any, server: Web) -> None:
    answer = case.call(base_url=server.address, headers={"Authorization": f"Bearer {server.key}"})
    assert answer.status_code not in (500, 502), answer.text
    case.validate_response(answer, checks=[response_schema_conformance, status_code_conformance])
    if answer.status_code >= 400:
        assert answer.headers["content-type"][0] == "application/problem+json"
        assert answer.json()["code"]


def test_operations_have_names_that_generators_like() -> None:
    operations = [each for path in DOCUMENT["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names) > 35
    assert all(name.isidentifier() for name in names)
    assert all(each["summary"] for each in operations)


@pytest.mark.parametrize("path", ["/v1/configure", "/v1/reset", "/v1/space/fork", "/docs"])
def test_there_is_no_route_to_repoint_or_empty_the_server(server: Web, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "PUT"):
        assert server.admin.request(method, path).status_code in (404, 405)
