"""A memory space on disk: retention, garbage collection, points in time, and a hard budget."""

from tempfile import TemporaryDirectory

from memoryspace.kernel import (
    Durability,
    MemoryManager,
    ObjectGrowthPolicy,
    OutOfSpace,
    at,
    diff,
    restore,
)


def main() -> None:
    """Run the example."""
    with TemporaryDirectory() as folder:
        keep_a_day = Durability(sync="always", keep_seconds=86_400)
        with MemoryManager(
            64 << 10, folder=folder, durability=keep_a_day, policies=[ObjectGrowthPolicy(0.5, 200)]
        ) as space:
            fill(space)
            undo_a_mistake(space)
            refuse(space)
        with MemoryManager(64 << 10, folder=folder) as space:  # after a restart
            print("after a restart:", space.retrieve("allergies", 1)[0].object.payload["text"])


def fill(space: MemoryManager) -> None:
    """Store a goal with its facts, and small talk that garbage collection removes."""
    goal = space.store({"text": "Plan Ann's birthday dinner"}, root=True, id="goal")
    for text in ("Ann's allergies: peanuts", "Ann likes the corner table"):
        fact = space.store({"text": text}, importance=0.9)
        space.add_reference(goal.id, fact.id)
    for number in range(500):
        space.store({"text": f"small talk {number}"}, ttl=3600)
    print("collected while the program ran:", [event.freed for event in space.gc_events])
    doomed = space.explain_gc()
    print(f"would go now: {len(doomed)}, for being {doomed[0].reason}")
    print("freed:", space.run_gc().freed)


def undo_a_mistake(space: MemoryManager) -> None:
    """Free the wrong object, find out what is missing, and restore it."""
    good = space.last_lsn
    space.free_object("goal")
    space.run_gc()
    print("lost by mistake:", len(diff(space, good).removed))
    with at(space, lsn=good) as past:
        print("it was:", past.load("goal").payload["text"])
    restore(space, lsn=good)
    print("undone:", space.load("goal").payload["text"], "and", len(space) - 1, "facts")


def refuse(space: MemoryManager) -> None:
    """Exceed the budget; the error names the tenant that uses it."""
    try:
        while True:
            space.store({"text": "x" * 4000}, pin=True, tenant="hoarder")
    except OutOfSpace as error:
        print("refused:", str(error)[:120], "…")


if __name__ == "__main__":
    main()
