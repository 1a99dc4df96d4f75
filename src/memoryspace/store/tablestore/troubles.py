"""What Tablestore's errors mean for us, in words that never show what users said."""

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
    """The package writes every query, which is what a user said, at the level INFO."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO


WITHOUT_QUERIES = _WithoutQueries()


def keep_queries_out_of_logs() -> None:
    """Let the package log what goes wrong, not what was asked."""
    for name in ("knowledge.async_knowledge_store", "util.tablestore_helper"):
        logger = logging.getLogger(f"tablestore_for_agent_memory.{name}")
        if WITHOUT_QUERIES not in logger.filters:
            logger.addFilter(WITHOUT_QUERIES)


@contextmanager
def translated() -> Iterator[None]:
    """Turn the client's errors into ours."""
    try:
        yield
    except OTSServiceError as error:
        raise _of_service(error) from error
    except OTSClientError as error:
        raise StoreError(f"Tablestore's client refused: {error}") from error
    except (TimeoutError, ClientError, OSError) as error:
        raise StoreUnavailable(
            f"Tablestore cannot be reached ({type(error).__name__}); what was sent may or may not "
            "have happened, try again when it can"
        ) from error


def is_condition_failed(error: StoreError) -> bool:
    """Tell whether a write was refused because its condition does not hold."""
    return _code(error) == CONDITION_FAILED


def is_there_already(error: StoreError) -> bool:
    """Tell whether somebody else has made what was to be made."""
    return _code(error) == EXISTS


def _code(error: StoreError) -> str | None:
    cause = error.__cause__
    return str(cause.code) if isinstance(cause, OTSServiceError) else None


def _of_service(error: OTSServiceError) -> StoreError:
    said = f"{error.code} (request {error.request_id})"
    if error.code in BUSY:
        return StoreBusy(f"Tablestore stayed too busy to answer: {said}")
    if error.code in _UNAVAILABLE or (error.http_status or 0) >= 500:
        return StoreUnavailable(f"Tablestore does not answer: {said}; try again when it does")
    return StoreError(f"Tablestore refused: {said}: {error.message}")
