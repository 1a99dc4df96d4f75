"""``PageReader``: two tools with which a model reads and searches what left the context.

They reach one session's archive and nothing else. Search is case-insensitive, line by line, with
``|`` between alternatives and ``*`` for any text between two pieces. It uses no regular
expressions: whatever the pattern, each text is scanned once per alternative.
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
_LONGEST_SHOWN = 300  # characters of a matching line


class PageReader:
    """Reads and searches one archive.

    Args:
        archive: The archive.
        messages: Returns further messages that can be read by id and searched: those of the memory
            that the archive belongs to.
        max_characters: The most that one call returns.

    Example::

        reader = PageReader(archive)
        read_memory, search_memory = reader.tools
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
        self._max_characters = max_characters

    @property
    def tools(self) -> list[Callable[..., Awaitable[ToolResponse]]]:
        """The two tool functions to register with an agent."""
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
        except Exception as error:  # the model must learn of any failure
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
        except Exception as error:  # the model must learn of any failure
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
        left = self._max_characters
        for number in range(first, end + 1):
            text = f"{number}: {lines[number - 1]}"
            left -= len(text) + 1
            if left < 0 and page:
                break
            page.append(text)
        stopped = first + len(page) - 1
        head = f"[{handle}: lines {first} to {stopped} of {len(lines)}]"
        more = f'\n[to read on: read_memory("{handle}", {stopped + 1})]'
        text = "\n".join([head, *page]) + (more if stopped < len(lines) else "")
        return told(text, first_line=first, last_line=stopped, lines=len(lines))

    async def _text(self, handle: str) -> str:
        """Return an archived content by its handle, or a message by its id, as text."""
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
        """Return the first matching lines and the number of all."""
        messages = await self._messages() if self._messages is not None else ()
        return await asyncio.to_thread(self._gathered, pattern, messages, most)

    def _gathered(
        self, pattern: Pattern, messages: Sequence[Msg], most: int
    ) -> tuple[list[str], int]:
        lines: dict[str, str] = {}  # text of a line → as it is shown: duplicates once
        for handle, text in self._texts(messages):
            for found in pattern.find_in(text):
                lines.setdefault(found.line.strip(), _line(handle, found))
        return list(lines.values())[:most], len(lines)

    def _texts(self, messages: Sequence[Msg]) -> Iterator[tuple[str, str]]:
        for kept in self._archive.list():
            try:
                parcel = self._archive.get(kept.handle)
            except UnknownHandle:  # released meanwhile
                continue
            yield kept.handle, shown(parcel.kind, parcel.data)
        yield from ((msg.id, text_of_message(msg)) for msg in messages)


def _line(handle: str, found: MatchingLine) -> str:
    text = found.line.strip()
    short = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return f"{handle} line {found.number}: {short}"


def _range(first_line: int, last_line: int | None) -> tuple[int, int | None]:
    first = _whole("first_line", first_line)
    last = None if last_line is None else _whole("last_line", last_line)
    if last is not None and last < first:
        raise InvalidInput(f"last_line must be at least first_line, {first}, got {last}")
    return first, last


def _whole(name: str, value: object, most: int | None = None) -> int:
    if type(value) is not int or value < 1:
        raise InvalidInput(f"{name} must be an int of at least 1, got {value!r}")
    return value if most is None else min(value, most)


def _failed(what: str, error: Exception) -> ToolResponse:
    """Explain an invalid request to the model; of any other error say only that it failed."""
    if isinstance(error, UnknownHandle | InvalidInput):
        kind = type(error).__name__
        return told(f"Error {what}: {error}.", success=False, error=kind)
    return failed(what, error)


class MatchingLine(NamedTuple):
    """A line that matches, with its line number."""

    number: int
    line: str


class Pattern:
    """A search pattern. Raises ``InvalidInput`` if it is empty or too long."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or len(text) > _LONGEST_PATTERN:
            raise InvalidInput(f"a pattern must be a str of at most {_LONGEST_PATTERN} characters")
        pieces = [_pieces(alternative) for alternative in text.split("|")]
        self._alternatives = [each for each in pieces if each]
        if not 0 < len(self._alternatives) <= _MOST_ALTERNATIVES:
            raise InvalidInput(
                f"a pattern must have 1 to {_MOST_ALTERNATIVES} non-empty alternatives"
            )

    def find_in(self, text: str) -> Iterator[MatchingLine]:
        """Yield the matching lines of a text; of a long line, the piece that matches."""
        folded = _folded(text)
        if not any(all(piece in folded for piece in each) for each in self._alternatives):
            return
        number = 1
        for line, low in zip(text.split("\n"), folded.split("\n"), strict=True):
            at = self._place(low)
            if at >= 0:
                piece = min(at, max(0, len(line) - 1)) // LONGEST_LINE
                start = piece * LONGEST_LINE
                yield MatchingLine(number + piece, line[start : start + LONGEST_LINE])
            number += max(1, -(-len(line) // LONGEST_LINE))

    def _place(self, line: str) -> int:
        """Return where the first matching alternative begins, or -1."""
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
    """Return the text case-folded, with the same line ends."""
    return text.casefold()
