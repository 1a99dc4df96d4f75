"""Downloads of public data: verified against a known checksum, then converted to our format.

Nothing is downloaded unless requested. A file appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from ...errors import CorruptData, InvalidInput, MemorySpaceError
from ...files import write_atomic
from .forms import FORMS

_PIECE = 1 << 20
_TIMEOUT = 60.0  # seconds without a byte


class CannotFetch(MemorySpaceError):
    """A server did not return the requested file."""


@dataclass(frozen=True)
class Source:
    """A published file, and the format in which experiments read it."""

    about: str
    licence: str
    url: str
    sha256: str
    file: str
    form: str


def _read_sources() -> dict[str, Source]:
    table = json.loads(Path(__file__).with_name("sources.json").read_text("utf-8"))
    return {name: Source(**row) for name, row in table.items()}


SOURCES: Mapping[str, Source] = _read_sources()


def fetch(source: Source, folder: Path, say: Callable[[str], None]) -> list[Path]:
    """Download a file, verify it and write it in our format; return the written paths."""
    say(f"{source.about} ({source.licence}) from {source.url}")
    content = download(source.url, source.sha256, say)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, data in FORMS[source.form](source.file, content):
        write_atomic(folder / name, data)
        paths.append(folder / name)
    return paths


def download(url: str, sha256: str, say: Callable[[str], None]) -> bytes:
    """Return the content at a URL, if its checksum matches."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidInput(f"only http:// and https:// URLs can be fetched, got {url}")
    content = _read(url, say)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise CorruptData(
            f"{url} has the checksum {found}, not {sha256}: it was changed or truncated. "
            f"Nothing was written"
        )
    return content


def _read(url: str, say: Callable[[str], None]) -> bytes:
    pieces: list[bytes] = []
    try:
        request = Request(url, headers={"User-Agent": "memoryspace"})
        with urlopen(request, timeout=_TIMEOUT) as answer:
            if urlsplit(answer.url).scheme not in ("http", "https"):
                raise InvalidInput(
                    f"{url} redirects to {answer.url}, which is not http:// or https://"
                )
            total = int(answer.headers.get("Content-Length") or 0)
            while piece := answer.read(_PIECE):
                pieces.append(piece)
                if len(pieces) % 16 == 0:
                    say(_so_far(len(pieces), total))
    except MemorySpaceError:
        raise
    except HTTPError as error:
        raise CannotFetch(f"{url} answered with status {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise CannotFetch(f"{url} could not be read ({error}); try again later") from error
    return b"".join(pieces)


def _so_far(pieces: int, total: int) -> str:
    return f"  {pieces} MB" + (f" of {total >> 20}" if total else "")
