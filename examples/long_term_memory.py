"""Long-term memory in a folder: say it, find it and know why, change it, restart, forget it."""

import asyncio
from tempfile import TemporaryDirectory

from memoryspace.errors import VersionConflict
from memoryspace.message import Msg
from memoryspace.service import MemoryHit, SpaceMemoryService

USER = "ann"


async def main() -> None:
    """Run the example."""
    with TemporaryDirectory() as folder:
        async with SpaceMemoryService(folder) as service:
            await say(service)
            await ask(service)
            await change_their_mind(service)
        async with SpaceMemoryService(folder) as service:  # another day
            await forget(service)


async def say(service: SpaceMemoryService) -> None:
    """Remember two conversations. Messages come back in the form they were given."""
    await service.add_memory(
        USER,
        [
            Msg("Ann", "My sister Mia moved into a flat in Bergen.", "user"),
            Msg("assistant", "Lovely! It rains a lot there.", "assistant"),
        ],
        session_id="family",
    )
    river = {"topic": "food", "stars": 5, "place": {"city": "Rome"}}
    canteen = {"topic": "food", "stars": 2, "place": {"city": "Bergen"}}
    await service.add_memory(
        USER,
        [
            Msg("Ann", "Dinner by the river was wonderful.", "user", metadata=river),
            Msg("Ann", "Dinner in the canteen was not.", "user", metadata=canteen),
        ],
        session_id="dinners",
    )
    print("remembered:", await service.count(USER))


async def ask(service: SpaceMemoryService) -> None:
    """Ask in one's own words, or only among what fits a filter."""
    question = "Where does Mia live?"
    for hit in await service.search(USER, question, top_k=2, explain=True):
        print(f"{question} -> {hit.memory.text} ({reasons(hit)})")

    only_good = {"metadata": {"stars": {"gte": 4}, "place.city": "Rome"}}
    for hit in await service.search(USER, "Where was dinner?", filters=only_good):
        print("four stars or more, in Rome:", hit.memory.text)
    canteen = (await service.page(USER, newest=True, limit=1)).memories[0]
    why = await service.why_not(USER, "dinner", canteen.id, filters=only_good)
    print("and the canteen?", why.detail)


def reasons(hit: MemoryHit) -> str:
    """Return the words of the question that were found and the strongest signals."""
    assert hit.why is not None  # it was asked for
    signals = hit.why.signals
    strongest = sorted(signals, key=lambda name: -signals[name])[:2]
    words = ", ".join(hit.why.words) if hit.why.words else "none of its own"
    return f"words: {words}; strongest: {', '.join(strongest)}"


async def change_their_mind(service: SpaceMemoryService) -> None:
    """Change a memory; whoever saw only the old version is told so."""
    hit, *_ = await service.search(USER, "Mia")
    new = await service.update(
        USER, hit.memory.id, "My sister Mia moved on to Oslo.", version=hit.memory.version
    )
    try:
        await service.update(USER, new.id, "Mia is in Rome.", version=hit.memory.version)
    except VersionConflict:
        print("too late: somebody changed it first")
    for memory in await service.history(USER, new.id):
        print(f"  version {memory.version}: {memory.text}")


async def forget(service: SpaceMemoryService) -> None:
    """Forget one session, then the user; look whether anything is left."""
    print("after a restart:", (await service.search(USER, "Mia"))[0].memory.text)
    print("forgotten with one session:", int(await service.delete_memory(USER, "dinners")))
    gone = await service.delete_memory(USER)
    print(f"then everything: {len(gone.raw)} memories, {gone.versions} old version")
    await service.scrub()  # nothing deleted is left in any file of the folder either
    print("nothing left:", (await service.verify_erasure(USER)).is_complete)


if __name__ == "__main__":
    asyncio.run(main())
