"""JSON posted to a server, over the standard library alone; what may pass is tried again.

The key is sent to the given address only: a redirection is an error, and no message, log or
``repr`` ever shows it. Whoever posts turns ``Refused`` and ``Unreachable`` into errors of its own.
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

_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 30.0  # seconds, whatever a server asks for
_KEY = re.compile("[!-~]+")  # anything else could not be sent, and the error would show it
_SHOWN = 300  # characters of an answer in an error


class Refused(MemorySpaceError):
    """A server will not do what it was asked, now or later."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Unreachable(MemorySpaceError):
    """A server could not be reached, or was busy each time."""


class _Passing(Exception):
    """A trouble that may be over soon, perhaps in so many seconds."""

    def __init__(self, text: str, wait: float | None) -> None:
        super().__init__(text)
        self.wait = wait


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class Server:
    """Where and how to ask. ``attempts`` counts the first one; ``sleep`` waits between them."""

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
        """Return the address of one thing the server offers."""
        return self.base_url.rstrip("/") + path

    def post(self, path: str, body: Any) -> bytes:
        """Return the answer to a JSON body."""
        data, url = json.dumps(body).encode(), self.url(path)
        for attempt in range(self.attempts):
            try:
                return self._post(url, data)
            except _Passing as trouble:
                if attempt + 1 == self.attempts:
                    raise Unreachable(
                        f"{url} failed {self.attempts} times, last: {trouble}"
                    ) from trouble.__cause__
                wait = trouble.wait if trouble.wait is not None else 0.5 * 2**attempt
                self.sleep(min(wait, _LONGEST_WAIT))
        raise AssertionError("attempts is 1 or more")

    def shown(self, answer: bytes) -> str:
        """Return as much of an answer as an error should show."""
        text = " ".join(answer.decode("utf-8", "replace").split())
        if self.api_key:
            text = text.replace(self.api_key, "***")  # some servers say which key was wrong
        return text[:_SHOWN]

    def _post(self, url: str, data: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        request = Request(url, data, headers)  # its scheme was checked
        try:
            with build_opener(_NoRedirection).open(request, timeout=self.timeout) as answer:
                found: bytes = answer.read()
                return found
        except HTTPError as error:
            with error:
                said = self.shown(error.read(_SHOWN * 4))
            text = f"status {error.code} {said}".strip()
            if error.code in _PASSING:
                raise _Passing(text, _seconds(error.headers.get("Retry-After"))) from error
            raise Refused(text, error.code) from error
        except (OSError, HTTPException) as error:  # no name, no answer, half an answer
            raise _Passing(f"{type(error).__name__}: {error}", None) from error


def check_key(api_key: str | None) -> None:
    """Raise ``InvalidInput`` for a key that no header could carry, without showing it."""
    if api_key is not None and not _KEY.fullmatch(api_key):
        raise InvalidInput("api_key must be of visible ASCII characters, without spaces")


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:  # a date: not worth a parser
        return None
