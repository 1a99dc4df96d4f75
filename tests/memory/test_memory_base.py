"""A custom memory implements four methods; the others build on them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from memoryspace import JSONSession, MemoryBase, Msg


class ListMemory(MemoryBase):
    """The smallest memory there can be."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[Msg, set[str]]] = []

    async def add(self, memories, marks=None, **options) -> None:  # type: ignore[no-untyped-def]  # as short as can be
        messages = [memories] if isinstance(memories, Msg) else memories or []
        names = {marks} if isinstance(marks, str) else set(marks or [])
        self.kept += [(msg, set(names)) for msg in messages]

    async def delete(self, msg_ids) -> int:  # type: ignore[no-untyped-def,override]  # the same
        before = len(self.kept)
        self.kept = [(msg, marks) for msg, marks in self.kept if msg.id not in msg_ids]
        return before - len(self.kept)

    async def get_memory(
        self, mark: str | None = None, exclude_mark: str | None = None, prepend_summary: bool = True
    ) -> list[Msg]:
        found = [
            msg
            for msg, marks in self.kept
            if (mark is None or mark in marks) and exclude_mark not in marks
        ]
        if prepend_summary and self._compressed_summary:
            return [Msg("user", self._compressed_summary, "user"), *found]
        return found

    async def update_messages_mark(
        self,
        new_mark: str | None,
        old_mark: str | None = None,
        msg_ids: Iterable[str] | None = None,
    ) -> int:
        return 0


async def test_the_rest_works_on_top_of_four_methods(tmp_path: str) -> None:
    async with ListMemory() as memory:
        one, two, three = (Msg("Ann", text, "user") for text in "123")
        await memory.add([one, two], marks=["x", "y"])
        await memory.add(three)
        await memory.update_compressed_summary("before")
        assert await memory.size() == 3
        assert await memory.delete_by_mark(["x", "y"]) == 2
        assert await memory.delete_by_mark("absent") == 0
        assert [msg.content for msg in await memory.get_memory()] == ["before", "3"]
        session = JSONSession(tmp_path)
        await session.save_session_state("s", memory=memory)
        await memory.clear()
        assert await memory.get_memory() == []
        assert memory.state_dict() == {"_compressed_summary": ""}
        await session.load_session_state("s", memory=memory)
        assert [msg.content for msg in await memory.get_memory()] == ["before"]
        with pytest.raises(NotImplementedError, match="get_memory"):
            await memory.retrieve("query")


def test_a_memory_without_the_four_methods_says_which_are_missing() -> None:
    class Incomplete(MemoryBase):
        pass

    with pytest.raises(TypeError, match=r"add.*delete.*get_memory.*update_messages_mark"):
        Incomplete()  # type: ignore[abstract]  # on purpose
