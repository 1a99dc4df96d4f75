"""Base classes for objects that are closed or stopped by a ``with`` block."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """An object that ``async with`` closes. By default there is nothing to close."""

    async def close(self) -> None:
        """Release the resources opened by this object. Resources passed in stay open."""

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
    """An object that runs between ``start`` and ``stop``; ``async with`` calls both."""

    async def start(self) -> None:
        """Acquire the resources. A second call has no effect."""

    async def stop(self) -> None:
        """Release the resources opened by this object. It can be started again."""

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
    """An object that ``with`` closes, without an event loop."""

    def close(self) -> None:
        """Release the resources opened by this object. Resources passed in stay open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
