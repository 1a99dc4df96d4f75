"""``import_memories``: an export, read into any store."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace as change

from ..errors import ImportRefused, InvalidInput
from ..store import Store
from .arrivals import Arrival, Arrivals
from .leaving import check_user
from .lines import MAX_LINE
from .reading import ExportReader
from .reports import ImportReport, Moved, Progress, Step
from .source import LineSource, name_of, seekable, size_of_file

BATCH_BYTES = 1 << 20


async def import_memories(
    store: Store,
    source: Path | BinaryIO,
    *,
    users: Mapping[str, str] | None = None,
    allowed: Collection[str] | None = None,
    until_damage: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Read an export into a store.

    The whole file is checked before anything is written: a file that is damaged, cut off or made
    up is refused, and the error names the line. Records keep their ids, times and order. What the
    store has already stays as it is there, so an import that was interrupted is completed by
    repeating it, and repeating a complete one changes nothing.

    Everything is imported as it was: marks such as the quarantine's are kept, and no text is
    examined again. So import only exports that you trust as much as your own data.

    Args:
        store: Where to write.
        source: A path or a binary file of an export, compressed with gzip or not.
        users: New names for users, by the name in the file.
        allowed: The only users that the file may hold, by the name in the file.
        until_damage: Import what is before the damage of a damaged file, up to the last right
            checksum. The report says what is wrong.
        progress: Called with a ``Moved`` after each part, while checking and while importing.

    Raises:
        ImportRefused: The file is damaged, is no export, or holds what may not be imported.
        OSError: The file cannot be read.

    Example::

        report = await import_memories(store, Path("everything.jsonl.gz"))
    """
    renamed = _checked_names({} if users is None else users)
    if isinstance(source, str):
        source = Path(source)
    with seekable(source) as file:
        run = _Run(file, name_of(source), allowed, progress)
        good, damage = await run.survey()
        if damage is not None and not (until_damage and good):
            raise damage
        return await run.into(Arrivals(store), renamed, good, damage)


class _Run:
    """Reads a file twice: to check it, and to import it."""

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        allowed: Collection[str] | None,
        progress: Progress | None,
    ) -> None:
        self._file = file
        self._name = name
        self._allowed = allowed
        self._progress = progress
        self._size = size_of_file(file)

    def _reader(self) -> ExportReader:
        lines = LineSource(self._file, self._name, MAX_LINE)
        return ExportReader(lines, allowed=self._allowed)

    async def survey(self) -> tuple[int, ImportRefused | None]:
        """Return the number of good records, and what is wrong with the file if anything is."""
        reader = await asyncio.to_thread(self._reader)
        try:
            while not reader.is_at_end:
                await asyncio.to_thread(reader.batch, BATCH_BYTES)
                self._tell("checking", reader)
        except ImportRefused as damage:
            return reader.verified, damage
        return reader.verified, None

    async def into(
        self,
        arrivals: Arrivals,
        renamed: Mapping[str, str],
        good: int,
        damage: ImportRefused | None,
    ) -> ImportReport:
        """Import the first ``good`` records."""
        reader = await asyncio.to_thread(self._reader)
        await arrivals.register(reader.header.kinds)
        until = None if damage is None else good
        while not reader.is_at_end and reader.records != until:
            batch, began = await asyncio.to_thread(reader.batch, BATCH_BYTES, until)
            for user in began:
                arrivals.meet(renamed.get(user, user))
            await arrivals.take(_named(batch, renamed))
            self._tell("importing", reader)
        return arrivals.report(damage=None if damage is None else str(damage))

    def _tell(self, step: Step, reader: ExportReader) -> None:
        if self._progress is not None:
            done = min(reader.position(), self._size)
            self._progress(Moved(step, done, self._size, "bytes", reader.records))


def _named(batch: list[Arrival], renamed: Mapping[str, str]) -> list[Arrival]:
    if not renamed:
        return batch
    return [change(each, user=renamed.get(each.user, each.user)) for each in batch]


def _checked_names(users: Mapping[str, str]) -> dict[str, str]:
    for new in users.values():
        check_user(new)
    if len(set(users.values())) < len(users):
        raise InvalidInput("two users cannot get the same new name; import them one after another")
    return dict(users)
