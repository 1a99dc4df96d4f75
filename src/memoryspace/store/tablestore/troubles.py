"""Translation of Tablestore's errors into ours. Messages never contain the text of users."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import ClientError
from tablestore import OTSClientError, OTSServiceError

from ...errors import StoreBusy, StoreError, StoreUnavailable

CONDITION_FAILED = "OTSConditionCheckFail"
EXISTS = "OTSObjectAlreadyExist"

BUSY = frozenset(
    {
        "OTSRowOperationConflict",
        "OTSNotEnoughCapacityUnit",
        "OTSServerBusy",
        "OTSOperationThrottled",
        "OTSQuotaExhausted",
    }
)
_UNAVAILABLE = frozenset(
    {
        "OTSTimeout",
        "OTSInternalServerError",
        "OTSServerUnavailable",
        "OTSPartitionUnavailable",
        "OTSTableNotReady",
    }
)


class _WithoutQueries(logging.Filter):
    """Drops records at INFO and below, where the SDK logs queries and so the text of users."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO


WITHOUT_QUERIES = _WithoutQueries()


def keep_queries_out_of_logs() -> None:
    """Let the SDK log problems, but no queries."""
    for name in ("knowledge.async_knowledge_store", "util.tablestore_helper"):
        logger = logging.getLogger(f"tablestore_for_agent_memory.{name}")
        if WITHOUT_QUERIES not in logger.filters:
            logger.addFilter(WITHOUT_QUERIES)


@contextmanager
def translated() -> Iterator[None]:
    """Translate the client's errors into ours."""
    try:
        yield
    except OTSServiceError as error:
        raise _of_service(error) from error
    except OTSClientError as error:
        raise StoreError(f"Tablestore's client rejected the request: {error}") from error
    except (TimeoutError, ClientError, OSError) as error:
        raise StoreUnavailable(
            f"Tablestore cannot be reached ({type(error).__name__}); the request may or may not "
            "have taken effect, try again later"
        ) from error


def is_condition_failed(error: StoreError) -> bool:
    """Return whether a write was rejected because its condition does not hold."""
    return _code(error) == CONDITION_FAILED


def already_exists(error: StoreError) -> bool:
    """Return whether an object to create exists already."""
    return _code(error) == EXISTS


def _code(error: StoreError) -> str | None:
    cause = error.__cause__
    return str(cause.code) if isinstance(cause, OTSServiceError) else None


def _of_service(error: OTSServiceError) -> StoreError:
    summary = f"{error.code} (request {error.request_id})"
    if error.code in BUSY:
        return StoreBusy(f"Tablestore stayed too busy to answer: {summary}")
    if error.code in _UNAVAILABLE or (error.http_status or 0) >= 500:
        return StoreUnavailable(f"Tablestore does not answer: {summary}; try again later")
    return StoreError(f"Tablestore rejected the request: {summary}: {error.message}")
