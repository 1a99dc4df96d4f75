"""Long-term memory in a folder: add, search with explanations, update, restart, delete."""

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
        async with SpaceMemoryService(folder) as service:  # after a restart
            await forget(service)


async def say(service: SpaceMemoryService) -> None:
    """Add two conversations. Messages come back in the form in which they were added."""
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
    """Search in natural language, with and without a filter."""
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
    """Return the query words that matched and the strongest signals."""
    assert hit.why is not None  # requested with explain=True
    signals = hit.why.signals
    strongest = sorted(signals, key=lambda name: -signals[name])[:2]
    words = ", ".join(hit.why.words) if hit.why.words else "none of its own"
    return f"words: {words}; strongest: {', '.join(strongest)}"


async def change_their_mind(service: SpaceMemoryService) -> None:
    """Update a memory; an update based on an old version fails."""
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
    """Delete one session, then the user; verify that nothing is left."""
    print("after a restart:", (await service.search(USER, "Mia"))[0].memory.text)
    print("forgotten with one session:", int(await service.delete_memory(USER, "dinners")))
    gone = await service.delete_memory(USER)
    print(f"then everything: {len(gone.raw)} memories, {gone.versions} old version")
    await service.scrub()  # removes deleted data from all files of the folder
    print("nothing left:", (await service.verify_erasure(USER)).is_complete)


if __name__ == "__main__":
    asyncio.run(main())
