"""``PageReader``: what left the context, read and searched by the model itself.

Its two functions are tools. They reach what is in one session's archive, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..errors import InvalidInput, UnknownHandle
from ..message import Msg
from ..tool import ToolResponse, failed, told
from .archive import Archive
from .rendering import LONGEST_LINE, lines_of, shown, text_of_message

MessageSource = Callable[[], Awaitable[Sequence[Msg]]]

_MOST_ALTERNATIVES = 50
_LONGEST_PATTERN = 1000
_MOST_FOUND = 100
_LONGEST_SHOWN = 300  # characters of a line that was found


class PageReader:
    """Reads one archive, at most ``max_characters`` at a time.

    ``messages`` gives messages that can be read and searched too, by their id: those of the memory
    that the archive belongs to.
    """

    def __init__(
        self,
        archive: Archive,
        messages: MessageSource | None = None,
        *,
        max_characters: int = 8000,
    ) -> None:
        self._archive = archive
        self._messages = messages
        self._most = max_characters

    @property
    def tools(self) -> list[Callable[..., Awaitable[ToolResponse]]]:
        """The functions to give to an agent."""
        return [self.read_memory, self.search_memory]

    async def read_memory(
        self, handle: str, first_line: int = 1, last_line: int | None = None
    ) -> ToolResponse:
        """Read something that left the conversation, such as a long tool result or old messages.

        Args:
            handle (`str`):
                What to read, exactly as it was shown where it left, such as "3fa1c09be27d4410".
            first_line (`int`, defaults to 1):
                The number of the first line to read.
            last_line (`int`, optional):
                The number of the last line to read; as many as can be shown if left out.
        """
        try:
            first, last = _range(first_line, last_line)
            lines = lines_of(await self._text(handle))
        except Exception as error:  # whatever it is, the model must be told that it failed
            return _failed("reading memory", error)
        if first > len(lines):
            return told(f"There are only {len(lines)} lines in {handle}.", lines=len(lines))
        return self._page(handle, lines, first, last)

    async def search_memory(self, pattern: str, limit: int = 20) -> ToolResponse:
        """Search everything that left the conversation for a text, line by line.

        Args:
            pattern (`str`):
                The text to look for. Upper and lower case are the same. "a|b" finds lines with
                either, "a*b" lines with both in this order.
            limit (`int`, defaults to 20):
                How many lines to show at most.
        """
        try:
            wanted = Pattern(pattern)
            most = _whole("limit", limit, _MOST_FOUND)
            found, total = await self._found(wanted, most)
        except Exception as error:  # whatever it is, the model must be told that it failed
            return _failed("searching memory", error)
        if not found:
            return told("No line of what left the conversation matches.", found=0)
        more = f"\n[{total - len(found)} more lines match]" if total > len(found) else ""
        return told("\n".join(found) + more, found=total)

    def _page(
        self, handle: str, lines: Sequence[str], first: int, last: int | None
    ) -> ToolResponse:
        end = len(lines) if last is None else min(last, len(lines))
        page: list[str] = []
        room = self._most
        for number in range(first, end + 1):
            text = f"{number}: {lines[number - 1]}"
            room -= len(text) + 1
            if room < 0 and page:
                break
            page.append(text)
        stopped = first + len(page) - 1
        head = f"[{handle}: lines {first} to {stopped} of {len(lines)}]"
        more = f'\n[to read on: read_memory("{handle}", {stopped + 1})]'
        text = "\n".join([head, *page]) + (more if stopped < len(lines) else "")
        return told(text, first_line=first, last_line=stopped, lines=len(lines))

    async def _text(self, handle: str) -> str:
        """Return what is kept under a handle, or a message by its id, as text."""
        wanted = handle.strip() if isinstance(handle, str) else handle
        try:
            parcel = await asyncio.to_thread(self._archive.get, wanted)
        except UnknownHandle:
            for msg in await self._messages() if self._messages is not None else ():
                if msg.id == wanted:
                    return text_of_message(msg)
            raise
        return shown(parcel.kind, parcel.data)

    async def _found(self, pattern: Pattern, most: int) -> tuple[list[str], int]:
        """Return the first lines that match and how many there are in all."""
        messages = await self._messages() if self._messages is not None else ()
        return await asyncio.to_thread(self._gathered, pattern, messages, most)

    def _gathered(
        self, pattern: Pattern, messages: Sequence[Msg], most: int
    ) -> tuple[list[str], int]:
        lines: dict[str, str] = {}  # text of a line → as it is shown: what is kept twice, once
        for handle, text in self._texts(messages):
            for found in pattern.find_in(text):
                lines.setdefault(found.line.strip(), _line(handle, found))
        return list(lines.values())[:most], len(lines)

    def _texts(self, messages: Sequence[Msg]) -> Iterator[tuple[str, str]]:
        for kept in self._archive.list():
            try:
                parcel = self._archive.get(kept.handle)
            except UnknownHandle:  # somebody has just released it
                continue
            yield kept.handle, shown(parcel.kind, parcel.data)
        yield from ((msg.id, text_of_message(msg)) for msg in messages)


def _line(handle: str, found: Found) -> str:
    text = found.line.strip()
    short = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return f"{handle} line {found.number}: {short}"


def _range(first_line: int, last_line: int | None) -> tuple[int, int | None]:
    first = _whole("first_line", first_line)
    last = None if last_line is None else _whole("last_line", last_line)
    if last is not None and last < first:
        raise InvalidInput(f"last_line must not be before first_line, {first}")
    return first, last


def _whole(name: str, value: object, most: int | None = None) -> int:
    if type(value) is not int or value < 1:
        raise InvalidInput(f"{name} must be a whole number from 1 on")
    return value if most is None else min(value, most)


def _failed(what: str, error: Exception) -> ToolResponse:
    """Say what is wrong with what the model asked for; of anything else only that it failed."""
    if isinstance(error, UnknownHandle | InvalidInput):
        kind = type(error).__name__
        return told(f"Error {what}: {error}.", success=False, error=kind)
    return failed(what, error)


class Found(NamedTuple):
    """A line that matches, with its number as a reader counts."""

    number: int
    line: str


class Pattern:
    """What to look for. ``InvalidInput`` if that is nothing, or too much."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or len(text) > _LONGEST_PATTERN:
            raise InvalidInput(f"a pattern is a text of at most {_LONGEST_PATTERN} characters")
        pieces = [_pieces(alternative) for alternative in text.split("|")]
        self._alternatives = [each for each in pieces if each]
        if not 0 < len(self._alternatives) <= _MOST_ALTERNATIVES:
            raise InvalidInput(
                f"a pattern has 1 to {_MOST_ALTERNATIVES} alternatives with at least one letter"
            )

    def find_in(self, text: str) -> Iterator[Found]:
        """Yield the lines of a text that match, with the piece of a long line where it does."""
        folded = _folded(text)
        if not any(all(piece in folded for piece in each) for each in self._alternatives):
            return
        number = 1
        for line, low in zip(text.split("\n"), folded.split("\n"), strict=True):
            at = self._place(low)
            if at >= 0:
                piece = min(at, max(0, len(line) - 1)) // LONGEST_LINE
                start = piece * LONGEST_LINE
                yield Found(number + piece, line[start : start + LONGEST_LINE])
            number += max(1, -(-len(line) // LONGEST_LINE))

    def _place(self, line: str) -> int:
        """Return where the first alternative that matches begins; -1 if none does."""
        for pieces in self._alternatives:
            first = at = line.find(pieces[0])
            for before, piece in pairwise(pieces):
                at = line.find(piece, at + len(before)) if at >= 0 else -1
            if at >= 0:
                return first
        return -1


def _pieces(alternative: str) -> list[str]:
    return [_folded(piece) for piece in alternative.strip().split("*") if piece]


def _folded(text: str) -> str:
    """Lower case, with the same line ends."""
    return text.casefold()
