"""A space whose process dies: killed at any moment, or with its journal damaged at any byte."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from memoryspace.kernel import Durability, MemoryManager, Runtime, TieredMemoryManager, Tiering
from memoryspace.kernel.durable.journal import JournalDamaged
from memoryspace.kernel.durable.journal.frames import HEADER_BYTES
from memoryspace.kernel.engine import NewObject
from memoryspace.testing import ManualClock

from crash_worker import Life, found, open_space

WORKER = Path(__file__).parents[1] / "support" / "crash_worker.py"
KILLS = 52  # for each of four kinds of spaces


@pytest.fixture(scope="module")
def ram() -> Iterator[Path]:
    """A folder in RAM where there is one: a killed process needs no real disk."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


class Thing(NamedTuple):
    """What is known of an object; objects are told apart by the number in their payload."""

    text: str
    tags: frozenset[str] = frozenset()
    importance: float = 0.5
    pinned: bool = False
    root: bool = False
    refers_to: frozenset[int] = frozenset()


State = dict[int, Thing]


def state_of(space: MemoryManager) -> tuple[State, dict[int, str]]:
    """Return what is in a space, and the ids; no number may be there twice."""
    found = list(space.objects())
    numbers = {each.id: each.payload["n"] for each in found}
    assert len(set(numbers.values())) == len(found), "an object is there twice"
    state = {
        each.payload["n"]: Thing(
            each.payload["text"],
            each.tags,
            each.importance,
            space.is_pinned(each.id),
            space.is_root(each.id),
            frozenset(numbers[target] for target in space.references(each.id)),
        )
        for each in found
    }
    return state, {n: object_id for object_id, n in numbers.items()}


def without(state: State, gone: set[int]) -> State:
    return {
        n: each._replace(refers_to=each.refers_to - gone)
        for n, each in state.items()
        if n not in gone
    }


def after(state: State, intent: list[Any]) -> State:
    """Return the state when an op is done."""
    state, (kind, *rest) = dict(state), intent
    if kind == "store":
        for n, text, tags, pin, root in rest[0]:
            state[n] = Thing(text, frozenset(tags), pinned=pin, root=root)
    elif kind == "free":
        return without(state, set(rest[0]))
    elif kind != "work" and rest[0] in state:
        state[rest[0]] = changed(state[rest[0]], kind, rest[1:])
    return state


def changed(thing: Thing, kind: str, rest: list[Any]) -> Thing:
    if kind == "update":
        return thing._replace(text=rest[0], tags=frozenset(rest[1]))
    if kind == "tune":
        return thing._replace(importance=rest[0])
    if kind == "flag":
        return thing._replace(**{"pinned" if rest[0] == "pin" else "root": rest[1]})
    if kind == "link":
        return thing._replace(refers_to=thing.refers_to | {rest[0]})
    return thing._replace(refers_to=thing.refers_to - {rest[0]})


def garbage(state: State) -> set[int]:
    kept = {n for n, each in state.items() if each.pinned or each.root}
    waiting = list(kept)
    while waiting:
        new = state[waiting.pop()].refers_to - kept
        kept |= new
        waiting += new
    return state.keys() - kept


# -- killed ----------------------------------------------------------------------------------------


class Witness:
    """Follows what a writer acknowledged, and judges what is found after its death."""

    def __init__(self, kind: str) -> None:
        self._collects = kind == "flat"
        self.state: State = {}
        self.ids: dict[int, str] = {}  # of all objects that ever were
        self.in_flight: list[Any] | None = None
        self.acknowledged = 0

    def hear(self, word: str, rest: list[Any]) -> None:
        if word == "do":
            self.in_flight = rest
            return
        assert self.in_flight is not None
        if word == "done":
            self.state = after(self.state, self.in_flight)
        new, gone = rest
        self._note_ids({int(n): object_id for n, object_id in new.items()})
        lost = set(gone) & self.state.keys()
        assert self._collects or self.in_flight[0] == "free" or not lost
        self.state = without(self.state, lost)
        self.in_flight = None
        self.acknowledged += 1

    def judge(self, space: MemoryManager) -> None:
        """What is there is what was acknowledged, or that and the op in flight; nothing else."""
        space.check()
        there, ids = state_of(space)
        candidates = [self.state]
        if self.in_flight is not None:
            candidates.append(after(self.state, self.in_flight))
        may_go = set().union(*map(garbage, candidates)) if self.in_flight is not None else set()
        may_go = may_go if self._collects else set()
        assert any(self._is(candidate, there, may_go) for candidate in candidates), (
            f"in flight: {self.in_flight}\n"
            + "\n".join(_difference(candidate, there) for candidate in candidates)
        )
        self._note_ids(ids)
        self.state, self.in_flight = there, None

    @staticmethod
    def _is(candidate: State, found: State, may_go: set[int]) -> bool:
        gone = candidate.keys() - found.keys()
        return gone <= may_go and without(candidate, gone) == found

    def _note_ids(self, ids: dict[int, str]) -> None:
        for n, object_id in ids.items():
            assert self.ids.setdefault(n, object_id) == object_id, "an object changed its id"
        assert len(set(self.ids.values())) == len(self.ids), "an id was given twice"


def _difference(expected: State, found: State) -> str:
    lines = [
        f"{n}: expected {expected.get(n)}, found {found.get(n)}"
        for n in sorted(expected.keys() | found.keys())
        if expected.get(n) != found.get(n)
    ]
    return "\n".join(lines)


class Nursery:
    """The process that brings up writers."""

    def __init__(self, errors: Path) -> None:
        self._errors = errors
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors.open("wb"),
        )

    def live(self, life: Life, witness: Witness, kill_after: int | None, spin: int) -> None:
        """Let a writer live until it is killed: by itself, or by us after so many acks."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(life) + b"\n")
        self._process.stdin.flush()
        pid, acks = 0, 0
        for word, *rest in self._words():
            if word == "dead":
                assert rest == [-signal.SIGKILL], self._errors.read_text()
                return
            if word == "born":
                pid = rest[0]
            else:
                witness.hear(word, rest)
                acks += word != "do"
            if kill_after is not None and acks >= kill_after:
                for _ in range(spin):
                    pass
                kill_after = None
                os.kill(pid, signal.SIGKILL)
        pytest.fail(self._errors.read_text())

    def _words(self) -> Iterator[list[Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield msgspec.json.decode(line)

    def close(self) -> None:
        self._process.communicate()


@pytest.mark.parametrize(
    ("kind", "sync"), [("flat", "os"), ("flat", "always"), ("lmdb", "os"), ("sqlite", "always")]
)
def test_a_killed_writer_loses_nothing_acknowledged_and_leaves_nothing_half(
    kind: str, sync: str, ram: Path, tmp_path: Path
) -> None:
    folder = ram / f"{kind}-{sync}"
    found(folder, kind)
    rng, witness, nursery = random.Random(f"{kind} {sync}"), Witness(kind), Nursery(tmp_path / "e")
    try:
        for number in range(KILLS):
            by_disk = number % 2 == 0
            die_at = rng.randrange(1, 160) if by_disk else 0
            life = Life(str(folder), kind, sync, rng.randrange(1 << 30), die_at, number * 10_000)
            acks = None if by_disk else rng.randrange(80)
            nursery.live(life, witness, acks, spin=rng.randrange(30_000))
            with open_space(str(folder), kind, sync) as space:
                witness.judge(space)
    finally:
        nursery.close()
    assert witness.acknowledged > KILLS * 10
    with open_space(str(folder), kind, sync) as space:
        assert space.checkpoint_manager is not None
        space.checkpoint()
        assert len(space.checkpoint_manager.lsns()) == 2
        assert space.wal is not None
        assert space.wal.first_lsn > 1, "the journal was never truncated"


# -- every byte of a journal -----------------------------------------------------------------------


def flat(folder: Path, clock: ManualClock, *, salvage: bool = False) -> MemoryManager:
    how = Durability(sync="os", segment_bytes=420, salvage=salvage)
    return MemoryManager(
        2048, folder=folder, durability=how, retriever=None, runtime=Runtime(clock=clock)
    )


def tiered(folder: Path, clock: ManualClock, *, salvage: bool = False) -> TieredMemoryManager:
    how = Durability(sync="os", segment_bytes=420, salvage=salvage)
    return TieredMemoryManager(
        256,
        folder=folder,
        durability=how,
        retriever=None,
        runtime=Runtime(clock=clock),
        tiering=Tiering(flush_interval=None),
    )


Opener = Callable[..., MemoryManager]


class Recording:
    """A space on disk, what it held after every change, and which change touched whom."""

    def __init__(self, folder: Path, opener: Opener) -> None:
        self.folder, self.clock, self._open = folder, ManualClock(), opener
        self.states: dict[int, State] = {0: {}}
        self.touched: dict[int, set[int]] = {}
        with self.opened(folder) as space:
            self._play(space)
            self.final = space.last_lsn
        self.files = sorted((folder / "journal").glob("*.log"))
        self.bytes = {path.name: path.read_bytes() for path in self.files}
        self.spans = {path.name: self._spans(path) for path in self.files}
        assert len(self.files) >= 3
        assert max(max(spans, default=0) for spans in self.spans.values()) == self.final

    def opened(self, folder: Path, *, salvage: bool = False) -> MemoryManager:
        return self._open(folder, self.clock, salvage=salvage)

    def _play(self, space: MemoryManager) -> None:
        ids: dict[int, str] = {}

        def do(act: Callable[..., Any], *given: Any, **options: Any) -> None:
            before = self.states[space.last_lsn]
            act(*given, **options)
            now, found_ids = state_of(space)
            ids.update(found_ids)
            self.clock.advance(1)
            if space.last_lsn in self.states:
                assert now == before, f"{act} changed something and journalled nothing"
                return
            self.states[space.last_lsn] = now
            self.touched[space.last_lsn] = {
                n for n in before.keys() | now.keys() if before.get(n) != now.get(n)
            }

        def store(n: int, **options: Any) -> None:
            do(space.store, {"n": n, "text": f"text {n} " * 5}, **options)

        store(0, root=True, id="named")
        store(1, tags=["a", "b"], tenant="t")
        do(space.add_reference, ids[0], ids[1])
        store(2, pin=True)
        do(space.update, ids[1], payload={"n": 1, "text": "another"}, tags=["c"])
        do(space.free_object, ids[2])
        store(3, importance=0.9)
        do(space.store_many, [NewObject({"n": n, "text": "many"}) for n in (4, 5)])
        do(space.free_object, ids[0])
        store(6, root=True, id="named")  # the same name for another object
        do(space.add_reference, ids[6], ids[3])
        do(space.update, ids[3], importance=0.1, ttl=1e6)
        do(space.remove_reference, ids[6], ids[3])
        do(space.add_root, ids[4])
        do(space.run_gc)
        do(space.remove_root, ids[4])
        do(space.add_reference, ids[6], ids[4])
        store(7, pin=True)
        do(space.free_many, [ids[7]])

    def _spans(self, path: Path) -> dict[int, tuple[int, int]]:
        """Where each frame stands: size first, and padded to a multiple of 8."""
        data, spans = path.read_bytes(), {}
        offset, lsn = HEADER_BYTES, int(path.stem)
        while offset < len(data):
            size = int.from_bytes(data[offset : offset + 4], "little")
            spans[lsn] = (offset, offset + size)
            offset, lsn = (offset + size + 7) // 8 * 8, lsn + 1
        return spans

    def laid_out(self, target: Path, name: str, data: bytes) -> Path:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)
        (target / "journal" / name).write_bytes(data)
        return target

    def crashed(self, target: Path, name: str, data: bytes) -> Path:
        """Lay out what is there if the process died when it had written so much."""
        self.laid_out(target, name, data)
        for later in self.files:
            if later.name > name:
                (target / "journal" / later.name).unlink()
        return target

    def whole_before(self, name: str, offset: int) -> int:
        """The last change that stands wholly before a place."""
        before = [lsn for lsn, (_, stop) in self.spans[name].items() if stop <= offset]
        return max(before, default=int(name.split(".")[0]) - 1)

    def lost_by(self, name: str, data: bytes) -> set[int]:
        """The changes whose bytes are no longer where they were."""
        old, spans = self.bytes[name], self.spans[name]
        if data[:HEADER_BYTES] != old[:HEADER_BYTES]:
            return set(spans)
        return {lsn for lsn, (start, stop) in spans.items() if data[start:stop] != old[start:stop]}

    def places(self, name: str, at: int, first_lost: int) -> list[tuple[str, int]]:
        """Where damage may be reported: where it is, or, if a file ends cleanly, behind it."""
        offset = 0 if at < HEADER_BYTES else self.spans[name][first_lost][0]
        behind = [path.name for path in self.files if path.name > name]
        return [(name, offset)] + ([(behind[0], 0)] if behind and at <= offset else [])

    def untouched(self, lost: set[int]) -> set[int]:
        hit = set().union(*(self.touched[lsn] for lsn in lost)) if lost else set()
        return set(range(8)) - hit


@pytest.fixture(scope="module")
def recording(ram: Path) -> Recording:
    return Recording(ram / "recorded", flat)


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]


def zero(data: bytes, at: int) -> bytes:
    return data[:at] + bytes(min(40, len(data) - at)) + data[at + 40 :]


def double(data: bytes, at: int) -> bytes:
    return data[:at] + data[max(0, at - 64) : at] + data[at:]


def test_a_crash_at_every_byte_of_a_journal_leaves_the_changes_before_it(
    recording: Recording, ram: Path
) -> None:
    for name, data in recording.bytes.items():
        for at in range(len(data) + 1):
            folder = recording.crashed(ram / "crashed", name, data[:at])
            with recording.opened(folder) as space:
                assert space.last_lsn == recording.whole_before(name, at)
                assert state_of(space)[0] == recording.states[space.last_lsn]
                space.check()
                new = space.store({"n": 99, "text": "after"})
            if at % 16 == 0:
                with recording.opened(folder) as space:
                    assert space.peek(new.id).payload["n"] == 99
                    space.check()


@pytest.mark.parametrize(("harm", "step"), [(cut, 9), (flip, 5), (zero, 7), (double, 7)])
def test_a_damaged_journal_gives_a_prefix_or_says_where_and_the_rest_can_be_salvaged(
    harm: Callable[[bytes, int], bytes], step: int, recording: Recording, ram: Path
) -> None:
    refused = opened = 0
    for name, data in recording.bytes.items():
        for at in range(0, len(data), step):
            harmed = harm(data, at)
            folder = recording.laid_out(ram / "harmed", name, harmed)
            lost = recording.lost_by(name, harmed)
            try:
                space = recording.opened(folder)
            except JournalDamaged as error:
                refused += 1
                check_report(recording, error, name, at, lost)
                assert (folder / "journal" / name).read_bytes() == harmed, "it was changed"
                if refused % 3 == 0:
                    check_salvage(recording, folder, lost)
                continue
            opened += 1
            with space:
                check_prefix(recording, space, name, at)
    assert opened >= 10
    assert refused >= 50


def check_report(
    recording: Recording, error: JournalDamaged, name: str, at: int, lost: set[int]
) -> None:
    """The error names what was lost, and where."""
    assert lost, f"the harm at {at} of {name} cost nothing"
    first = error.damage[0]
    assert first.first_lsn == min(lost)
    assert f"at {first.offset}" in str(error)
    assert (first.file.name, first.offset) in recording.places(name, at, min(lost))


def check_prefix(recording: Recording, space: MemoryManager, name: str, at: int) -> None:
    """All that stood before the harm is there, and what is there is what once was."""
    space.check()
    state, _ = state_of(space)
    assert space.last_lsn >= recording.whole_before(name, at)
    if name != recording.files[-1].name:
        assert space.last_lsn == recording.final, "changes behind the harm were dropped"
    assert state == recording.states[space.last_lsn]


def check_salvage(recording: Recording, folder: Path, lost: set[int]) -> None:
    """What the lost changes did not touch is as it was; and the space works."""
    final, spared = recording.states[recording.final], recording.untouched(lost)
    with recording.opened(folder, salvage=True) as space:
        space.check()
        state, _ = state_of(space)
        for n in spared:
            expected = final.get(n)
            assert (n in state) == (expected is not None), f"object {n} after losing {lost}"
            if expected is not None:
                assert state[n]._replace(refers_to=frozenset()) == expected._replace(
                    refers_to=frozenset()
                )
                assert expected.refers_to & spared <= state[n].refers_to
        assert space.wal is not None
        assert space.last_lsn == space.wal.last_lsn, "no number of a lost change comes again"
        new = space.store({"n": 99, "text": "after"})
        assert space.last_lsn > max(recording.states.keys() - lost)
        space.check()
        expected_state = state_of(space)
    with recording.opened(folder, salvage=True) as space:
        space.check()
        assert state_of(space) == expected_state
        assert space.peek(new.id).payload["n"] == 99


def test_changes_that_were_cut_off_leave_nothing_in_the_cold_tier_that_comes_in_the_way(
    ram: Path,
) -> None:
    recording = Recording(ram / "tiers", tiered)
    for name, data in recording.bytes.items():
        for start, stop in recording.spans[name].values():
            for at in {start, start + 9, stop - 1, stop}:
                folder = recording.crashed(ram / "cut", name, data[:at])
                kept = recording.whole_before(name, at)
                with recording.opened(folder) as space:
                    assert isinstance(space, TieredMemoryManager)
                    space.check()
                    assert state_of(space)[0] == recording.states[kept]
                    for n in range(90, 94):  # these get the numbers of the changes that are gone
                        space.store({"n": n, "text": "new " * 20})
                        space.check()
                    space.demote_objects(space.ids())
                    space.check()
                    expected = state_of(space)
                with recording.opened(folder) as space:
                    space.check()
                    assert state_of(space) == expected
