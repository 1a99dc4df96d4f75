"""What a move reports: its progress while it runs, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from ..portable import Portable

Step = Literal["exporting", "checking", "importing"]


class Moved(Struct, frozen=True):
    """How far a move is.

    Attributes:
        step: What is being done.
        done: How much of it is done, in ``unit``.
        total: How much there is to do; ``None`` if unknown.
        unit: What is counted: ``"records"`` or ``"bytes"``.
        records: The number of records so far.
    """

    step: Step
    done: int
    total: int | None
    unit: Literal["records", "bytes"]
    records: int


Progress = Callable[[Moved], None]


class ExportReport(Portable, frozen=True):
    """What an export wrote.

    Attributes:
        users: The number of users.
        records: The number of records.
        vectors: The number of vectors.
        skipped: The number of stored records that cannot be decoded and were left out.
        sha256: The checksum in the last line: of all lines before it.
    """

    users: int
    records: int
    vectors: int
    skipped: int
    sha256: str


class ImportReport(Portable, frozen=True):
    """What an import did.

    Attributes:
        users: The number of users.
        records: The number of records that were read.
        added: How many of them are new here.
        known: How many were here already and stayed as they are.
        expired: How many had expired and were left out.
        replaced: How many took the place of an earlier version from the same source.
        vectors: The number of vectors that were stored.
        skipped: The number of records in the source that cannot be decoded and were left out.
        refused: How many messages of another program the service did not accept.
        problems: Why, for the first of them.
        pending: The users that have pending derivation jobs. They run when a service starts on the
            store, or at once with ``service.settled(user)``.
        damage: What is wrong with the file, if only the part before that was imported.
    """

    users: int = 0
    records: int = 0
    added: int = 0
    known: int = 0
    expired: int = 0
    replaced: int = 0
    vectors: int = 0
    skipped: int = 0
    refused: int = 0
    problems: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    damage: str | None = None
