"""The contract of cold storage engines: functions that check a new, empty storage.

for check in COLD_CONTRACT:
    with make_storage() as storage:
        check(storage)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import InvalidInput, StoreError
from ..kernel.tiers.cold import ColdStats, ColdStorage

ColdCheck = Callable[[ColdStorage], None]

LAST_KEY = 2**63 - 1
AWKWARD_VALUES = [b"", b"\0", b"\0" * 8, b"x", b"\xff" * 3000, bytes(range(256)) * 300]


def check_what_is_saved_is_loaded(storage: ColdStorage) -> None:
    for key, value in enumerate(AWKWARD_VALUES):
        storage.save(key, value)
    for key, value in enumerate(AWKWARD_VALUES):
        assert storage.load(key) == value
        assert type(storage.load(key)) is bytes
        assert storage.contains(key)
        assert key in storage
    storage.check()


def check_an_absent_key_is_a_key_error(storage: ColdStorage) -> None:
    storage.save(7, b"seven")
    for absent in (0, 6, 8, LAST_KEY):
        assert not storage.contains(absent)
        assert absent not in storage
        assert _error_of(storage.load, absent) == (KeyError, f"{absent}")
    for foreign in ("7", 7.0, True, -1, LAST_KEY + 1, None):
        assert foreign not in storage


def check_keys_come_in_growing_order(storage: ColdStorage) -> None:
    assert list(storage.keys()) == []
    storage.save_many([(LAST_KEY, b"last"), (256, b""), (0, b"first")])
    storage.save_many([(1, b""), (255, b""), (2**32, b""), (257, b"")])
    assert list(storage.keys()) == [0, 1, 255, 256, 257, 2**32, LAST_KEY]
    assert storage.load(LAST_KEY) == b"last"
    assert storage.load(0) == b"first"
    assert len(storage) == 7
    storage.check()


def check_keys_may_be_walked_while_they_change(storage: ColdStorage) -> None:
    storage.save_many((key, b"") for key in range(3000))
    walk = storage.keys()
    seen = [next(walk) for _ in range(10)]
    storage.delete_many(range(5, 2900))
    storage.save(5000, b"")
    seen.extend(walk)
    assert seen == sorted(set(seen))
    assert {*range(5), *range(2900, 3000)} <= {*seen}
    assert list(storage.keys()) == [*range(5), *range(2900, 3000), 5000]


def check_an_empty_storage_is_still_a_storage(storage: ColdStorage) -> None:
    assert bool(storage) is True
    assert len(storage) == 0
    storage.save_many([])
    assert storage.load_many([]) == {}
    assert storage.delete_many([]) == 0
    storage.sync()
    storage.check()
    assert storage.stats == ColdStats()


def check_many_are_loaded_as_far_as_they_are_there(storage: ColdStorage) -> None:
    storage.save_many([(key, b"%d" % key) for key in range(0, 4000, 2)])
    found = storage.load_many(range(3999, -1, -1))
    assert list(found) == list(range(3998, -1, -2))
    assert all(value == b"%d" % key for key, value in found.items())
    assert storage.load_many([5, 4, 4]) == {4: b"4"}


def check_deleting_counts_what_was_there(storage: ColdStorage) -> None:
    storage.save_many([(key, b"v") for key in range(10)])
    assert storage.delete(3) is True
    assert storage.delete(3) is False
    assert storage.delete_many([2, 3, 4, 4, 99]) == 2
    assert list(storage.keys()) == [0, 1, 5, 6, 7, 8, 9]
    assert len(storage) == 7
    storage.save(3, b"anew")
    assert storage.load(3) == b"anew"
    assert storage.delete_many(range(100)) == 8
    assert len(storage) == 0
    storage.check()


def check_a_key_keeps_its_value(storage: ColdStorage) -> None:
    storage.save_many([(1, b"one"), (2, b"two"), (2, b"two")])
    storage.save_many([(1, b"one"), (3, b"three"), (0, b"zero")])
    for batch in ([(4, b"four"), (1, b"other")], [(4, b"four"), (4, b"five")], [(1, b"")]):
        kind, message = _error_of(storage.save_many, batch)
        assert kind is InvalidInput
        assert "holds another value" in message
        assert f"key {batch[-1][0]} " in message
        assert list(storage.keys()) == [0, 1, 2, 3]
    assert storage.load_many(range(5)) == {0: b"zero", 1: b"one", 2: b"two", 3: b"three"}
    assert len(storage) == 4
    storage.check()


def check_a_batch_with_a_bad_pair_changes_nothing(storage: ColdStorage) -> None:
    def breaks_off() -> Iterator[tuple[int, bytes]]:
        yield 1, b"one"
        raise LookupError("no more")

    for key in (-1, LAST_KEY + 1):
        assert _error_of(storage.save_many, [(1, b""), (key, b"")])[0] is InvalidInput
    for bad_key in ("1", 1.0, True, None):
        assert _error_of(storage.save_many, [(1, b""), (bad_key, b"")])[0] is TypeError
    for bad_value in ("text", bytearray(b"x"), memoryview(b"x"), None, 1):
        assert _error_of(storage.save_many, [(1, b""), (2, bad_value)])[0] is TypeError
    assert _error_of(storage.save_many, breaks_off())[0] is LookupError
    assert len(storage) == 0
    assert storage.stats == ColdStats()


def check_bad_keys_are_refused_everywhere(storage: ColdStorage) -> None:
    for verb in (storage.load, storage.contains, storage.delete):
        assert _error_of(verb, -1)[0] is InvalidInput
        assert _error_of(verb, "1")[0] is TypeError
    for verb_of_many in (storage.load_many, storage.delete_many):
        assert _error_of(verb_of_many, [1, 2**63])[0] is InvalidInput
        assert _error_of(verb_of_many, [1, "1"])[0] is TypeError


def check_statistics_count_values_and_their_bytes(storage: ColdStorage) -> None:
    storage.save(1, b"12345")
    storage.save_many([(2, b"1"), (3, b"")])
    storage.load(1)
    storage.load_many([1, 2, 9])
    storage.delete_many([2, 9])
    _error_of(storage.load, 9)
    storage.check()
    assert storage.stats == ColdStats(writes=3, reads=3, deletes=1, bytes_written=6, bytes_read=11)


def check_a_closed_storage_says_so(storage: ColdStorage) -> None:
    storage.save(1, b"one")
    walk = storage.keys()
    storage.close()
    storage.close()
    calls: list[Callable[[], object]] = [
        lambda: storage.save(2, b""),
        lambda: storage.save_many([]),
        lambda: storage.load(1),
        lambda: storage.load_many([1]),
        lambda: storage.load_many([]),
        lambda: storage.delete(1),
        lambda: storage.contains(1),
        lambda: 1 in storage,
        lambda: len(storage),
        storage.keys,
        lambda: next(walk),
        storage.sync,
        storage.check,
    ]
    for call in calls:
        kind, message = _error_of(call)
        assert kind is StoreError
        assert "closed" in message
        assert storage.place in message
    assert "(closed)" in repr(storage)


def check_leaving_the_with_block_closes(storage: ColdStorage) -> None:
    with storage as same:
        assert same is storage
        storage.save(1, b"one")
    assert _error_of(storage.load, 1)[0] is StoreError


def check_a_big_batch_and_a_big_value_fit(storage: ColdStorage) -> None:
    storage.save(1_000_000, b"big" * 3_000_000)
    storage.save_many((key, b"x" * 500) for key in range(20_000))
    assert len(storage) == 20_001
    assert len(storage.load(1_000_000)) == 9_000_000
    storage.check()


def check_threads_may_share_it(storage: ColdStorage) -> None:
    def work(first: int) -> int:
        for key in range(first, first + 100, 10):
            batch = [(each, b"%d" % each) for each in range(key, key + 10)]
            storage.save_many(batch)
            assert storage.load_many(range(key, key + 10)) == dict(batch)
            assert storage.load(key) == b"%d" % key
            storage.delete(key)
        return 90

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(0, 800, 100))) == len(storage) == 720
    assert list(storage.keys()) == [key for key in range(800) if key % 10]
    assert storage.stats.writes == 800
    assert storage.stats.reads == 880
    assert storage.stats.deletes == 80
    storage.check()


def _error_of(call: Callable[..., object], *given: Any) -> tuple[type[BaseException], str]:
    try:
        call(*given)
    except Exception as error:
        return type(error), str(error)
    raise AssertionError("the call must raise an error")


COLD_CONTRACT: list[ColdCheck] = [
    check for name, check in list(globals().items()) if name.startswith("check_")
]
