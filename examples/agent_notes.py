"""More notes than fit into the heap: hot ones stay there, the rest is in a cold storage engine."""

import random
from tempfile import TemporaryDirectory

from memoryspace.kernel import Durability, MissRatioCurve, NewObject, TieredMemoryManager, Tiering

NOTES = 20_000


def main() -> None:
    """Run the example."""
    rng = random.Random(7)
    with (
        TemporaryDirectory() as folder,
        TieredMemoryManager(
            hot_capacity=512 << 10,
            folder=folder,
            durability=Durability(sync="group:10"),
            tiering=Tiering(paging_strategy="arc", curve=MissRatioCurve(rate=0.1)),
        ) as space,
    ):
        ids = [
            obj.id
            for start in range(0, NOTES, 500)
            for obj in space.store_many(
                NewObject({"text": f"note {number} about topic-{number % 997}"})
                for number in range(start, start + 500)
            )
        ]
        for _ in range(5000):  # some notes are read much more often than others
            space.load(ids[min(NOTES - 1, int(rng.paretovariate(0.5)))])
        found = space.retrieve("topic-996", top_k=3)
        print([hit.object.payload["text"] for hit in found])
        figures = space.stats()
        print(f"{figures['objects']:,} notes, {figures['cold_items']:,} of them cold only")
        print(f"hit rate {figures['hit_rate']:.2f}, promotions {figures['promotions']:,}")
        assert space.curve is not None
        for size, ratio in space.curve.curve(points=5):
            print(f"  a cache of {size:>9,} bytes would miss {ratio:.0%}")


if __name__ == "__main__":
    main()
