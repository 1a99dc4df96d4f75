"""A process whose children change a space until they are killed: python crash_worker.py.

It reads one ``Life`` a line and forks a child for each, so Python starts and imports only once. A
child says what it is about to do, does it, and says that it has. At the end of each life the parent
says how it ended.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from memoryspace.errors import OutOfSpace, UnknownObject
from memoryspace.events import Event
from memoryspace.kernel import (
    CheckpointManager,
    Durability,
    MemoryManager,
    TieredMemoryManager,
    Tiering,
    WriteAheadLog,
)
from memoryspace.kernel.durable.disk import Disk
from memoryspace.kernel.durable.folder import SpaceFolder
from memoryspace.kernel.engine import NewObject
from memoryspace.kernel.tiers.cold import SQLiteColdStorage, open_cold

HEAP = 6 * 1024
SMALL_HEAP = 1536  # of a space with a cold tier
MAX_STEPS = 3000


class Life(msgspec.Struct):
    """What one child does. ``die_at``: the disk call that kills it; 0 if somebody else will."""

    folder: str
    kind: str  # "flat", "lmdb" or "sqlite"
    sync: str
    seed: int
    die_at: int
    first: int  # the number of the first object it stores


class DeadlyDisk(Disk):
    """Kills the process at a call; at a write, in the middle of it."""

    def __init__(self, die_at: int) -> None:
        self._left = die_at
        self._share = die_at % 5 / 4  # of the last write that is made: none of it to all of it

    def _is_last(self) -> bool:
        self._left -= 1
        return not self._left

    def open(self, path: Path, *, create: bool = False) -> int:
        self._call()
        return super().open(path, create=create)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        if self._is_last():
            super().pwrite(fd, data[: int(len(data) * self._share)], offset)
            die()
        super().pwrite(fd, data, offset)

    def fdatasync(self, fd: int) -> None:
        self._call()

    def fsync(self, fd: int) -> None:
        self._call()

    def sync_folder(self, folder: Path) -> None:
        self._call()

    def replace(self, old: Path, new: Path) -> None:
        self._call()
        super().replace(old, new)

    def unlink(self, path: Path) -> None:
        self._call()
        super().unlink(path)

    def truncate(self, fd: int, size: int) -> None:
        self._call()
        super().truncate(fd, size)

    def _call(self) -> None:
        if self._is_last():
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def durability(sync: str) -> Durability:
    return Durability(sync=sync, segment_bytes=900, checkpoint_bytes=2500, keep=2)


def open_space(folder: str, kind: str, sync: str, die_at: int = 0) -> MemoryManager:
    """Open a space in the usual way, or on a disk that will kill us."""
    how = durability(sync)
    if die_at:
        files = SpaceFolder(folder, how, disk=DeadlyDisk(die_at))
        return _manager(kind, folder, how, files.wal, files.checkpoints)
    if kind == "flat":
        return MemoryManager(HEAP, folder=folder, durability=how, retriever=None)
    return _manager(kind, folder, how, None, None)


def _manager(
    kind: str,
    folder: str,
    how: Durability,
    wal: WriteAheadLog | None,
    checkpoints: CheckpointManager | None,
) -> MemoryManager:
    if kind == "flat":
        return MemoryManager(
            HEAP, wal=wal, checkpoint_manager=checkpoints, durability=how, retriever=None
        )
    return TieredMemoryManager(
        SMALL_HEAP,
        cold_store=None if wal is None else open_cold(Path(folder) / "cold"),
        wal=wal,
        checkpoint_manager=checkpoints,
        folder=folder if wal is None else None,
        durability=how,
        tiering=Tiering(max_dirty=8, flush_interval=0.005),
        retriever=None,
    )


def found(folder: Path, kind: str) -> None:
    """Choose the engine of a folder's cold tier: the one that is there is used."""
    home = folder / "cold"
    home.mkdir(parents=True)
    if kind == "sqlite":
        SQLiteColdStorage(home / "cold.sqlite").close()


class Writer:
    """Takes random steps. It says ``["do", what…]`` before each and ``["done", gone]`` after."""

    def __init__(self, space: MemoryManager, rng: random.Random, first: int) -> None:
        self._space, self._rng, self._next = space, rng, first
        self._ids = {each.payload["n"]: each.id for each in space.objects()}
        self._numbers = {object_id: n for n, object_id in self._ids.items()}
        self._gone: list[int] = []
        space.events.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        if event.name == "free" and event.data["reason"] != "freed":
            self._gone.append(self._numbers[event.data["id"]])

    def step(self) -> None:
        weights = [4, 2, 3, 1, 2 + len(self._ids) // 8, 4, 2, 3, 2]
        kinds = [self._store, self._store_many, self._update, self._tune, self._free, self._link,
                 self._unlink, self._flag, self._work]  # fmt: skip
        intent, act = self._rng.choices(kinds, weights)[0]()
        tell("do", *intent)
        outcome = "done"
        try:
            act()
        except (OutOfSpace, UnknownObject):
            outcome = "refused"
        gone, self._gone = self._gone, []
        if outcome == "done" and intent[0] == "free":
            gone += intent[1]
        tell(outcome, self._new_ids(intent, outcome), gone)
        for n in gone:
            self._numbers.pop(self._ids.pop(n))

    def _new_ids(self, intent: list[Any], outcome: str) -> dict[int, str]:
        if intent[0] != "store" or outcome != "done":
            return {}
        return {each[0]: self._ids[each[0]] for each in intent[1]}

    Step = tuple[list[Any], Callable[[], Any]]

    def _some(self) -> int:
        return self._rng.choice(list(self._ids)) if self._ids else -1

    def _thing(self) -> tuple[list[Any], NewObject]:
        rng = self._rng
        n, self._next = self._next, self._next + 1
        text, tags = "x" * rng.randrange(200), rng.sample(["a", "b", "c"], rng.randrange(3))
        pin, root = rng.random() < 0.2, rng.random() < 0.3
        new = NewObject(
            {"n": n, "text": text}, tags=tags, pin=pin, root=root, tenant=rng.choice(["", "t"])
        )
        return [n, text, tags, pin, root], new

    def _store(self) -> Step:
        described, new = self._thing()

        def act() -> None:
            stored = self._space.store(
                new.payload, tags=new.tags, pin=new.pin, root=new.root, tenant=new.tenant
            )
            self._note(described[0], stored.id)

        return ["store", [described]], act

    def _store_many(self) -> Step:
        things = [self._thing() for _ in range(self._rng.randrange(2, 5))]

        def act() -> None:
            stored = self._space.store_many([new for _, new in things])
            for (described, _), found in zip(things, stored, strict=True):
                self._note(described[0], found.id)

        return ["store", [described for described, _ in things]], act

    def _note(self, n: int, object_id: str) -> None:
        self._ids[n] = object_id
        self._numbers[object_id] = n

    def _update(self) -> Step:
        n, rng = self._some(), self._rng
        text, tags = "y" * rng.randrange(300), rng.sample(["a", "b", "c"], rng.randrange(3))
        return ["update", n, text, tags], lambda: self._space.update(
            self._id(n), payload={"n": n, "text": text}, tags=tags
        )

    def _tune(self) -> Step:
        n, importance = self._some(), self._rng.random()
        return ["tune", n, importance], lambda: self._space.update(
            self._id(n), importance=importance
        )

    def _free(self) -> Step:
        chosen = list(dict.fromkeys(self._some() for _ in range(self._rng.randrange(1, 4))))
        if len(chosen) == 1:
            return ["free", chosen], lambda: self._space.free_object(self._id(chosen[0]))
        return ["free", chosen], lambda: self._space.free_many([self._id(n) for n in chosen])

    def _link(self) -> Step:
        a, b = self._some(), self._some()
        return ["link", a, b], lambda: self._space.add_reference(self._id(a), self._id(b))

    def _unlink(self) -> Step:
        a = self._some()
        targets = self._space.references(self._id(a)) if a >= 0 else []
        if not targets:
            return self._work()
        b = self._numbers[self._rng.choice(targets)]
        return ["unlink", a, b], lambda: self._space.remove_reference(self._id(a), self._id(b))

    def _flag(self) -> Step:
        n, what, on = self._some(), self._rng.choice(["pin", "root"]), self._rng.random() < 0.5
        space = self._space
        act = {
            ("pin", True): space.pin,
            ("pin", False): space.unpin,
            ("root", True): space.add_root,
            ("root", False): space.remove_root,
        }[what, on]
        return ["flag", n, what, on], lambda: act(self._id(n))

    def _work(self) -> Step:
        space = self._space
        chores: dict[str, Callable[[], Any]] = {
            "gc": space.run_gc,
            "gc_step": lambda: space.gc_step(1e-5),
            "tick": space.tick,
            "checkpoint": space.checkpoint,
            "compact": space.compact,
            "load": lambda: space.load(self._id(self._some())),
        }
        if isinstance(space, TieredMemoryManager):
            chores["flush"] = space.flush_dirty
        name = self._rng.choice(list(chores))
        return ["work", name], chores[name]

    def _id(self, n: int) -> str:
        return self._ids.get(n, "nobody")


def tell(*what: Any) -> None:
    os.write(1, msgspec.json.encode(what) + b"\n")


def live(life: Life) -> None:
    tell("born", os.getpid())
    space = open_space(life.folder, life.kind, life.sync, life.die_at)
    writer = Writer(space, random.Random(life.seed), life.first)
    for _ in range(MAX_STEPS):
        writer.step()
    die()


def main() -> None:
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            try:
                live(msgspec.json.decode(line, type=Life))
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        _, status = os.waitpid(child, 0)
        tell("dead", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
