"""``Wire``: requests to a memory server, and its answers and errors as ours.

What is safe to repeat is repeated when the server cannot be reached: reads, deletions, and writes
with an idempotency key. A redirect is an error, so that the key goes to the given address only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from ..errors import InvalidInput, MissingExtra, StoreUnavailable
from ..loops import PerLoop
from ..retrying import Attempts, Backoff
from .address import shown
from .faults import error_of

_BACKOFF = Backoff(first=0.1, longest=2.0, attempts=4)
_SECONDS = 60.0  # a request may take
_BUSY = frozenset({502, 503, 504})


class Wire:
    """A server at an address, and the key to it.

    Args:
        address: The address of the server, ``http://…`` or ``https://…``.
        key: The API key.

    Raises:
        InvalidInput: The address is not one of a server, or the key cannot be sent.
        MissingExtra: The package ``httpx`` is not installed.
    """

    def __init__(self, address: str, key: str | None) -> None:
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra("httpx", "client") from error
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise InvalidInput(
                f"{shown(address)!r} is not the address of a server: http://host:port"
            )
        if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
            raise InvalidInput("the API key has characters that no key has; copy it again")
        self._address = shown(address)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._httpx = httpx
        self._clients = PerLoop(
            lambda: httpx.AsyncClient(
                base_url=address.rstrip("/"), headers=headers, timeout=_SECONDS
            )
        )

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        may_repeat: bool = True,
    ) -> Any:
        """Send a request and return the answer's JSON.

        Raises:
            MemorySpaceError: What the server said went wrong, as the local error would be.
            StoreUnavailable: The server cannot be reached.
        """
        given = {key: value for key, value in (query or {}).items() if value is not None}
        backoff = _BACKOFF if may_repeat else Backoff(first=0, longest=0, attempts=1)
        tries = Attempts(backoff)
        async for _ in tries:
            try:
                response = await self._clients.get().request(
                    method,
                    path,
                    params=given,
                    json=None if body is None else _sendable(body),
                    headers=dict(headers or {}),
                )
            except self._httpx.TransportError as error:
                if tries.is_last:
                    raise StoreUnavailable(
                        f"the server at {self._address} cannot be reached "
                        f"({type(error).__name__}); is it running there?"
                    ) from error
                continue
            if response.status_code in _BUSY and not tries.is_last:
                continue
            return _answer(response)
        raise AssertionError("the loop returns or raises")

    async def close(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop()
        if client is not None:
            await client.aclose()


def place(value: str) -> str:
    """Return an id as part of a path."""
    return quote(value, safe="").replace(".", "%2E")  # "." and ".." would be steps of the path


def _sendable(body: Mapping[str, Any]) -> Any:
    return {key: value for key, value in body.items() if value is not None}


def _answer(response: Any) -> Any:
    if response.is_success:
        return response.json() if response.content else None
    try:
        problem = response.json()
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        raise StoreUnavailable(
            f"the server answered with status {response.status_code} and no problem details; "
            "is it a memoryspace server?"
        ) from None
    raise error_of(code, detail)
