"""Who has something in a store, page after page, and how much."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from ..errors import InvalidInput
from ..portable import Portable
from ..record import check_id

USERS_AT_ONCE = 100
MOST_USERS_AT_ONCE = 1000
_BUCKET = 512  # names in a list of their own: a new one moves no more than these


class Usage(Portable, frozen=True):
    """What a user has: living records, the sessions they stand in, and their bytes as stored.

    Bytes are those of the records themselves, indexes and marks aside; they compare between users
    of one store. A service also tells how many ``vectors`` are kept beside them, and their bytes.
    """

    records: int = 0
    sessions: int = 0
    bytes: int = 0
    vectors: int = 0
    vector_bytes: int = 0


class UserPage(Portable, frozen=True):
    """Some users who have something. ``cursor`` leads to the next page; ``None`` at the end."""

    users: tuple[str, ...]
    cursor: str | None = None


class UserNames:
    """Names of users in order, each once, in lists short enough to be changed quickly."""

    def __init__(self) -> None:
        self._buckets: list[list[str]] = []

    def add(self, name: str) -> None:
        """Take in a name that is not there."""
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
        """Take out a name that is there."""
        place = bisect_right(self._buckets, name, key=_first) - 1
        bucket = self._buckets[place]
        del bucket[bisect_left(bucket, name)]
        if not bucket:
            del self._buckets[place]

    def after(self, name: str) -> Iterator[str]:
        """Yield the names behind one, in order."""
        place = max(0, bisect_right(self._buckets, name, key=_first) - 1)
        for bucket in self._buckets[place:]:
            yield from bucket[bisect_right(bucket, name) :]


def cursor_after(user: str) -> str:
    """Return the cursor of a page that ends with a user."""
    return urlsafe_b64encode(user.encode()).decode().rstrip("=")


def user_before(cursor: str | None) -> str:
    """Return the user that ``cursor_after`` was given, or without a cursor nobody."""
    if cursor is None:
        return ""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        user = check_id("user id", urlsafe_b64decode(padded).decode())
    except (AttributeError, ValueError):  # wrong ids and wrong encodings are such, too
        user = ""
    if cursor_after(user) != cursor or not user:
        raise InvalidInput(f"no cursor of a page of users: {cursor!r}; begin without one")
    return user


def checked_limit(limit: int) -> int:
    """Return how many users a page may name."""
    if type(limit) is not int or not 0 < limit <= MOST_USERS_AT_ONCE:
        raise InvalidInput(f"a page has 1 to {MOST_USERS_AT_ONCE} users, got limit={limit!r}")
    return limit


def _first(bucket: list[str]) -> str:
    return bucket[0]
