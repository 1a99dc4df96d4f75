"""LFU: least frequently used, with ageing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from .contract import ReplacementPolicy, already_resident, nothing_resident


class LFU(ReplacementPolicy):
    """Evicts the least used key; among equals, the one used longest ago.

    New keys start one use above the last victim, not at one, so a key that was popular long ago is
    overtaken in time (dynamic ageing). Without evictions in between, the victim is exactly the
    least used key.
    """

    def __init__(self) -> None:
        # Buckets of equal scores in a ring, lowest first, closed by an empty one.
        self._ring = _Bucket(-1)
        self._bucket_of: dict[int, _Bucket] = {}
        self._age = 0  # the score of the last victim; no resident has less

    def add(self, key: int) -> None:
        if key in self._bucket_of:
            raise already_resident(key)
        lowest = self._ring.after
        before = lowest if lowest.score == self._age else self._ring
        self._enter(key, before.next_with(self._age + 1))

    def touch(self, key: int) -> None:
        bucket = self._bucket_of[key]
        score = bucket.score + 1
        if len(bucket.keys) == 1 and bucket.after.score != score:
            bucket.score = score  # the only key, and no bucket just above: move the bucket
            return
        above = bucket.next_with(score)
        self._leave(key, bucket)
        self._enter(key, above)

    def remove(self, key: int) -> None:
        self._leave(key, self._bucket_of.pop(key))

    def evict(self) -> int:
        if not self._bucket_of:
            raise nothing_resident()
        lowest = self._ring.after
        key = next(iter(lowest.keys))
        self._age = lowest.score
        self.remove(key)
        return key

    def spare(self, key: int) -> None:
        self.add(key)  # one above the last victim, as if it had been touched

    def _enter(self, key: int, bucket: _Bucket) -> None:
        bucket.keys[key] = None
        self._bucket_of[key] = bucket

    def _leave(self, key: int, bucket: _Bucket) -> None:
        del bucket.keys[key]
        if not bucket.keys:
            bucket.unlink()

    def __len__(self) -> int:
        return len(self._bucket_of)

    def __contains__(self, key: object) -> bool:
        return key in self._bucket_of

    def check(self) -> None:
        buckets = [*self._buckets()]
        scores = [bucket.score for bucket in buckets]
        assert scores == sorted(set(scores)), f"buckets out of order: {scores}"
        assert not scores or scores[0] >= self._age, "a resident below the last victim"
        assert all(bucket.keys for bucket in buckets), "an empty bucket"
        found = {key: bucket for bucket in buckets for key in bucket.keys}
        assert found == self._bucket_of, "a key is not in its bucket"

    def _buckets(self) -> Iterator[_Bucket]:
        bucket = self._ring.after
        while bucket is not self._ring:
            assert bucket.after.before is bucket, "a broken link"
            yield bucket
            bucket = bucket.after


class _Bucket:
    """The keys of one score, least recently used first; a node of a ring."""

    __slots__ = ("after", "before", "keys", "score")

    def __init__(self, score: int) -> None:
        self.score = score
        self.keys: OrderedDict[int, None] = OrderedDict()
        self.before = self
        self.after = self

    def next_with(self, score: int) -> _Bucket:
        """Return the next bucket if it has this score, or else a new one before it."""
        after = self.after
        if after.score == score:
            return after
        new = _Bucket(score)
        new.before, new.after = self, after
        self.after = after.before = new
        return new

    def unlink(self) -> None:
        self.before.after = self.after
        self.after.before = self.before
