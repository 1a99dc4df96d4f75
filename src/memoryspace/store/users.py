"""The users of a store: pages of their names, cursors, and how much each has stored."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from ..errors import InvalidInput
from ..portable import Portable
from ..record import check_id

USERS_AT_ONCE = 100
MOST_USERS_AT_ONCE = 1000
_BUCKET = 512  # names per list: inserting one moves no more than twice as many


class Usage(Portable, frozen=True):
    """How much a user has stored.

    Attributes:
        records: The number of live records.
        sessions: The number of sessions with live records.
        bytes: The size of the records, without indexes and marks. Comparable between the users of
            one store, not between stores.
        vectors: The number of stored vectors. Only services report it.
        vector_bytes: The size of the vectors. Only services report it.
    """

    records: int = 0
    sessions: int = 0
    bytes: int = 0
    vectors: int = 0
    vector_bytes: int = 0


class UserPage(Portable, frozen=True):
    """A page of users. Pass ``cursor`` to get the next page; it is ``None`` on the last one."""

    users: tuple[str, ...]
    cursor: str | None = None


class UserNames:
    """A sorted set of user names, split into lists short enough for fast inserts."""

    def __init__(self) -> None:
        self._buckets: list[list[str]] = []

    def add(self, name: str) -> None:
        """Add a name that is not in the set."""
        if not self._buckets:
            self._buckets.append([name])
            return
        place = max(0, bisect_right(self._buckets, name, key=_first) - 1)
        bucket = self._buckets[place]
        insort(bucket, name)
        if len(bucket) > 2 * _BUCKET:
            self._buckets.insert(place + 1, bucket[_BUCKET:])
            del bucket[_BUCKET:]

    def remove(self, name: str) -> None:
        """Remove a name that is in the set."""
        place = bisect_right(self._buckets, name, key=_first) - 1
        bucket = self._buckets[place]
        del bucket[bisect_left(bucket, name)]
        if not bucket:
            del self._buckets[place]

    def after(self, name: str) -> Iterator[str]:
        """Yield the names after a name, in order."""
        place = max(0, bisect_right(self._buckets, name, key=_first) - 1)
        for bucket in self._buckets[place:]:
            yield from bucket[bisect_right(bucket, name) :]


def cursor_after(user: str) -> str:
    """Return the cursor of a page that ends with a user."""
    return urlsafe_b64encode(user.encode()).decode().rstrip("=")


def user_before(cursor: str | None) -> str:
    """Return the user that a cursor encodes, or an empty string without a cursor."""
    if cursor is None:
        return ""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        user = check_id("user id", urlsafe_b64decode(padded).decode())
    except (AttributeError, ValueError):  # invalid ids and encodings are ValueErrors
        user = ""
    if cursor_after(user) != cursor or not user:
        raise InvalidInput(f"invalid cursor for a page of users: {cursor!r}; begin without one")
    return user


def checked_limit(limit: int) -> int:
    """Return the limit if a page may be that long; raise ``InvalidInput`` otherwise."""
    if type(limit) is not int or not 0 < limit <= MOST_USERS_AT_ONCE:
        raise InvalidInput(f"a page has 1 to {MOST_USERS_AT_ONCE} users, got limit={limit!r}")
    return limit


def _first(bucket: list[str]) -> str:
    return bucket[0]
