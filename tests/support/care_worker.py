"""A process whose children die in the middle of a backup or a restore: python care_worker.py.

It reads one ``Life`` a line and forks a child for each. The child counts the files that are opened,
renamed, created or removed, and kills itself at one of these calls; 0 lets it live. The parent
says how the child ended, and how many such calls it made.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Literal

import msgspec

from memoryspace.care import back_up, restore_backup
from memoryspace.store import SpaceStore

COUNTED = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.copyfile"}


class Life(msgspec.Struct):
    """What one child does, and the call that kills it."""

    what: Literal["back up", "restore"]
    live: str
    backup: str
    target: str
    die_at: int


class End(msgspec.Struct):
    """How a child ended."""

    is_killed: bool
    calls: int


def live(life: Life, tell: int) -> None:
    calls = 0

    def count(event: str, _: object) -> None:
        nonlocal calls
        if event in COUNTED:
            calls += 1
            if calls == life.die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    if life.what == "restore":
        restore_backup(life.backup, life.target)
    else:
        asyncio.run(_back_up(life))
    os.write(tell, b"%d" % calls)


async def _back_up(life: Life) -> None:
    async with SpaceStore(life.live) as store:
        await back_up(store, life.backup)


def main() -> None:
    for line in sys.stdin:
        life = msgspec.json.decode(line, type=Life)
        heard, told = os.pipe()
        child = os.fork()
        if not child:
            os.close(heard)
            live(life, told)
            os._exit(0)
        os.close(told)
        _, status = os.waitpid(child, 0)
        said = os.read(heard, 20)
        os.close(heard)
        assert os.WIFSIGNALED(status) or said, f"the child failed: {status}"
        end = End(os.WIFSIGNALED(status), int(said or b"0"))
        sys.stdout.write(msgspec.json.encode(end).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
