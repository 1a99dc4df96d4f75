"""A process that never comes to an end of embedding: vector_worker.py BACKEND URL USER COUNT.

It adds so many memories in one go and says ``added``. Of the first texts it embeds, the vectors are
written down; when it is asked for more it says ``embedding``, and does not go on.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counting import CountingEmbedder
from memoryspace.service import ServiceSettings
from service_worker import service_on


class Stuck(CountingEmbedder):
    """Embeds one batch, then none."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.texts:
            print("embedding", flush=True)
            threading.Event().wait()
        return super().embed(texts)


def sentences(count: int) -> list[str]:
    return [f"number {each} is my house in street {each}" for each in range(count)]


async def main(backend: str, url: str, user: str, count: int) -> None:
    settings = ServiceSettings(embedder=Stuck())
    async with service_on(backend, url, settings=settings) as service:
        await service.add_memory(user, sentences(count))
        print("added", flush=True)
        await service.settled(user)


if __name__ == "__main__":
    backend, url, user, count = sys.argv[1:]
    asyncio.run(main(backend, url, user, int(count)))
