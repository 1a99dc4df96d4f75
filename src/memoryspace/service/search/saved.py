"""``SavedIndexes``: a user's index in a folder, for the first search after a restart.

    FOLDER/<store>/<user>/<number>/   one save: see ``retrieval.saving``

What is saved is a hint, and the store is the truth. An index is used only if its checksums are
right, if this version with this embedder made it, and if the store still holds its newest entries
as they are in it; then the store tells what changed since. Anything else is an event, and the index
is built anew. A save that was interrupted does not count. When memories are deleted, the user's
files are removed at once. All files together stay within ``max_bytes``: those of the users searched
least recently go first.

The folder holds what users said, like the store does. It belongs to one machine.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import tzinfo
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from ...embedding import Embedder
from ...errors import CorruptData
from ...retrieval.persistence import load_arrays
from ...retrieval.recall import Recall
from ...store import Store
from .user_index import UserIndex

logger = logging.getLogger(__name__)

MAX_SAVED = 4 << 30  # bytes
FEWEST = 200  # entries: fewer are indexed as quickly as they are opened

_FILE = "entries"
_ATTEMPTS = 10
_ABANDONED = 3600.0  # seconds after which an unfinished save of any process is removed


class Opening(NamedTuple):
    """The options of the recall that a saved index becomes."""

    make: Callable[..., Recall]
    embedder: Embedder | None
    zone: tzinfo
    personal: bool


class SavedIndexes:
    """The saved indexes of the users of one store. The first save creates the folder."""

    def __init__(
        self, folder: str | os.PathLike[str], store: Store, *, max_bytes: int = MAX_SAVED
    ) -> None:
        self._folder = Path(folder) / _hashed(identity_of(store))
        self._max_bytes = max_bytes
        self._sizes: dict[str, int] | None = None  # of each user's files, once listed
        self._lock = threading.Lock()

    def open(self, user: str, index: UserIndex, opening: Opening) -> Any:
        """Fill an empty index; return what was saved as its state, ``None`` without a save.

        Raises:
            CorruptData: A save cannot be used. The index is unusable then.
        """
        path = self._newest(user)
        if path is None:
            return None
        try:
            about = index.load(
                path,
                opening.make,
                embedder=opening.embedder,
                zone=opening.zone,
                personal=opening.personal,
            )
        except OSError as error:  # another process has just replaced it, or it cannot be read
            raise CorruptData(f"the index in {path} cannot be read: {error}") from error
        if about.get("user") != user:
            raise CorruptData(f"the index in {path} is of another user")
        with suppress(OSError):
            os.utime(self._of(user))
        return about.get("state")

    def save(self, user: str, index: UserIndex, state: Any) -> int:
        """Save an index; return its bytes. No other thread may use it meanwhile.

        Raises:
            OSError: It cannot be written.
            ValueError, TypeError: It cannot be saved as it is.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._of(user) / f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        path.mkdir(mode=0o700, parents=True)
        try:
            index.save(path, {"user": user, "state": state})
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        for each in self._saves(user):
            if each != path and (_is_whole(each) or _is_abandoned(each)):
                shutil.rmtree(each, ignore_errors=True)
        size = _size_of(path)
        self._bound(path.parent.name, size)
        return size

    def forget(self, user: str) -> bool:
        """Remove a user's files; return whether there were any.

        Raises:
            OSError: They cannot be removed.
        """
        path = self._of(user)
        with self._lock:
            if self._sizes is not None:
                self._sizes.pop(path.name, None)
        if not path.is_dir():
            return False
        for each in self._saves(user):  # first what makes a save count
            (each / f"{_FILE}.json").unlink(missing_ok=True)
        _remove(path)
        return True

    def holds(self, user: str) -> bool:
        """Return whether any file of a user is left."""
        return self._of(user).exists()

    def users(self) -> Iterator[str]:
        """Yield the users that have a save."""
        for folder in _folders(self._folder):
            for each in reversed(_folders(folder)):
                try:
                    yield str(load_arrays(each, _FILE, verify=False).about["more"]["user"])
                    break
                except (OSError, CorruptData, KeyError, TypeError):
                    continue

    def remove(self) -> None:
        """Remove everything."""
        for folder in _folders(self._folder):
            _remove(folder)
        with self._lock:
            self._sizes = None

    def _of(self, user: str) -> Path:
        return self._folder / _hashed(user)

    def _saves(self, user: str) -> list[Path]:
        return _folders(self._of(user))

    def _newest(self, user: str) -> Path | None:
        return next((each for each in reversed(self._saves(user)) if _is_whole(each)), None)

    def _bound(self, name: str, size: int) -> None:
        """Note the size of a user's files; remove those of others while there are too many."""
        with self._lock:
            if self._sizes is None:
                found = sorted(_folders(self._folder), key=_used_at)
                self._sizes = {each.name: _size_of(each) for each in found}
            self._sizes.pop(name, None)
            self._sizes[name] = size  # now the most recently used
            while sum(self._sizes.values()) > self._max_bytes and self._sizes:
                oldest = next(iter(self._sizes))
                del self._sizes[oldest]
                shutil.rmtree(self._folder / oldest, ignore_errors=True)


def identity_of(store: Store) -> str:
    """Return a text that tells a store from others, without its password."""
    engine, client = getattr(store, "engine", None), getattr(store, "client", None)
    if engine is not None:
        schema = engine.get_execution_options().get("schema_translate_map")
        return f"{engine.url.render_as_string(hide_password=True)} {schema}"
    if client is not None:
        known = getattr(client, "connection_pool", client)
        given = getattr(known, "connection_kwargs", {})
        place = {name: given.get(name) for name in ("host", "port", "path", "db")}
        return f"{type(store).__name__} {place} {getattr(store, 'prefix', '')}"
    return f"{type(store).__name__} {getattr(store, 'folder', '')}"


def _hashed(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _folders(path: Path) -> list[Path]:
    """Return the folders in a folder, in the order of their names."""
    try:
        return sorted(each for each in path.iterdir() if each.is_dir() and not each.is_symlink())
    except OSError:
        return []


def _is_whole(path: Path) -> bool:
    return (path / f"{_FILE}.json").is_file()


def _is_abandoned(path: Path) -> bool:
    return time.time() - _used_at(path) > _ABANDONED


def _used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size_of(path: Path) -> int:
    found = 0
    for each in path.rglob("*"):
        with suppress(OSError):
            stat = each.stat()
            blocks = getattr(stat, "st_blocks", None)  # files of vectors have holes
            found += stat.st_size if blocks is None else 512 * blocks
    return found


def _remove(path: Path) -> None:
    """Remove a folder; another process may be removing or writing it too."""
    for attempt in range(_ATTEMPTS):
        try:
            shutil.rmtree(path)
        except OSError:
            if path.exists() and attempt == _ATTEMPTS - 1:
                raise
        if not path.exists():
            return
