"""A JSON-over-HTTP client built on the standard library, with retries for transient failures.

The API key is sent to the given address only: a redirect is an error, and no message, log or
``repr`` shows the key. Callers turn ``Refused`` and ``Unreachable`` into their own errors.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .errors import InvalidInput, MemorySpaceError
from .retrying import Backoff

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_BACKOFF = Backoff(first=0.5, longest=30.0, jitter=False)
_KEY = re.compile("[!-~]+")  # anything else could not be sent, and the error would show it
_SHOWN = 300  # characters of a response in an error


class Refused(MemorySpaceError):
    """The server rejected the request. Retrying will not help."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Unreachable(MemorySpaceError):
    """The server could not be reached, or was busy on every attempt."""


class _Transient(Exception):
    """A failure that may pass; ``wait`` is how many seconds the server asked for, if it did."""

    def __init__(self, text: str, wait: float | None) -> None:
        super().__init__(text)
        self.wait = wait


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class Server:
    """Address, key and retry settings of a server.

    ``attempts`` includes the first request. ``sleep`` waits between attempts.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    attempts: int = 4
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.username is not None or parts.password is not None:
            raise InvalidInput("base_url must not hold a name or password; use api_key")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InvalidInput(f"base_url must begin with http:// or https://, got {self.base_url}")
        check_key(self.api_key)
        if self.attempts < 1 or not self.timeout > 0:
            raise InvalidInput(
                f"attempts must be 1 or more and timeout more than 0, "
                f"got {self.attempts} and {self.timeout}"
            )

    def url(self, path: str) -> str:
        """Return the full URL of ``path``."""
        return self.base_url.rstrip("/") + path

    def post(self, path: str, body: Any) -> bytes:
        """Post a JSON body and return the response body.

        Raises:
            Refused: If the server rejected the request.
            Unreachable: If every attempt failed.
        """
        data, url = json.dumps(body).encode(), self.url(path)
        for attempt in range(1, self.attempts + 1):
            try:
                return self._post(url, data)
            except _Transient as error:
                if attempt == self.attempts:
                    raise Unreachable(
                        f"{url} failed {self.attempts} times, last: {error}"
                    ) from error.__cause__
                self.sleep(_BACKOFF.pause(attempt, asked=error.wait))
        raise AssertionError("attempts is 1 or more")

    def shown(self, body: bytes) -> str:
        """Return the part of a response body that an error may show, without the key."""
        text = " ".join(body.decode("utf-8", "replace").split())
        if self.api_key:
            text = text.replace(self.api_key, "***")  # some servers echo the rejected key
        return text[:_SHOWN]

    def _post(self, url: str, data: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        request = Request(url, data, headers)  # the scheme was checked above
        try:
            with build_opener(_NoRedirection).open(request, timeout=self.timeout) as response:
                body: bytes = response.read()
                return body
        except HTTPError as error:
            with error:
                shown = self.shown(error.read(_SHOWN * 4))
            text = f"status {error.code} {shown}".strip()
            if error.code in _TRANSIENT:
                raise _Transient(text, _seconds(error.headers.get("Retry-After"))) from error
            raise Refused(text, error.code) from error
        except (OSError, HTTPException) as error:  # no host, no response, half a response
            raise _Transient(f"{type(error).__name__}: {error}", None) from error


def check_key(api_key: str | None) -> None:
    """Raise ``InvalidInput`` for a key that a header cannot carry, without showing the key."""
    if api_key is not None and not _KEY.fullmatch(api_key):
        raise InvalidInput("api_key must consist of visible ASCII characters, without spaces")


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:  # a date: not worth a parser
        return None
