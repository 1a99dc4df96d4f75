"""What is opened must be closed: one way to say so."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """Something with a ``close`` that ``async with`` calls; by default nothing is to be closed."""

    async def close(self) -> None:
        """Give back what was opened here. What was passed in stays open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class Running:
    """Something that runs between ``start`` and ``stop``, which ``async with`` calls."""

    async def start(self) -> None:
        """Open what is needed. Calling it twice does nothing the second time."""

    async def stop(self) -> None:
        """Give back what was opened here. It can be started again."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


class ClosingNow:
    """The same for what is closed without an event loop: ``with`` calls ``close``."""

    def close(self) -> None:
        """Give back what was opened here. What was passed in stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
