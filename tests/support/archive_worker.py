"""A process that archives and releases contents until done or killed, and prints each step.

python archive_worker.py FOLDER NAME SEED STEPS
"""

from __future__ import annotations

import random
import sys

from memoryspace.context import FileArchive, Parcel


def parcel(name: str, number: int) -> Parcel:
    """What a worker puts: some of it is the same for all workers."""
    shared = number % 3 == 0
    text = f"shared {number}\n" if shared else f"{name} {number}\n"
    return Parcel(text * (1 + number % 50), "text", f"{name}-{number}")


def say(*words: object) -> None:
    """Tell who listens."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(folder: str, name: str, seed: int, steps: int) -> None:
    """Put and release in turn, as the seed will have it."""
    archive = FileArchive(folder, "ann", "s1")
    random_ = random.Random(seed)
    held: list[str] = []
    for number in range(seed * 1000, seed * 1000 + steps):
        if held and random_.random() < 0.3:
            holder = held.pop(random_.randrange(len(held)))
            say("release", holder)
            archive.release([holder])
            say("released", holder)
        else:
            (kept,) = archive.put([parcel(name, number)])
            held.append(f"{name}-{number}")
            say("put", number, kept.handle)
    say("done")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
