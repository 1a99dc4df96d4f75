"""Creation of a Tablestore client. Its keys appear in no repr, log or error of ours."""

from __future__ import annotations

import logging
from typing import Any

from tablestore import AsyncOTSClient, WriteRetryPolicy
from tablestore.error import OTSClientError

from ...errors import InvalidInput

LOGGER = "memoryspace.tablestore.client"


def create_tablestore_client(
    end_point: str,
    access_key_id: str | None = None,
    access_key_secret: str | None = None,
    instance_name: str | None = None,
    sts_token: str | None = None,
    region: str | None = None,
    credentials_provider: Any = None,
    retry_policy: Any = None,
    *,
    socket_timeout: float = 50,
    max_connection: int = 500,
) -> AsyncOTSClient:
    """Return an asynchronous client. The caller closes it.

    Args:
        end_point: The URL of the instance, starting with ``https://``.
        access_key_id: The access key, unless a credentials provider is given.
        access_key_secret: Its secret.
        instance_name: The name of the instance.
        sts_token: A temporary token.
        region: The region of the instance.
        credentials_provider: Provides the access key instead.
        retry_policy: By default, reads and writes are retried.
        socket_timeout: The timeout of a request in seconds.
        max_connection: The most connections at a time.

    Raises:
        InvalidInput: If credentials are missing or the client rejects an argument.
    """
    if credentials_provider is None and (not access_key_id or not access_key_secret):
        raise InvalidInput(
            "Tablestore needs access_key_id and access_key_secret, or a credentials_provider"
        )
    try:
        return AsyncOTSClient(
            end_point,
            access_key_id,
            access_key_secret,
            instance_name,
            credentials_provider=credentials_provider,
            region=region,
            sts_token=sts_token,
            retry_policy=WriteRetryPolicy() if retry_policy is None else retry_policy,
            socket_timeout=socket_timeout,
            max_connection=max_connection,
            logger_name=_quiet_logger(),
        )
    except OTSClientError as error:
        raise InvalidInput(f"cannot create a Tablestore client: {error}") from error


def _quiet_logger() -> str:
    """Return a logger without DEBUG, where the client logs tokens and all text that it sends."""
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    return LOGGER
