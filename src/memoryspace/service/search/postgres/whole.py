"""All index rows of a user who has few, read in one statement with everything a search needs.

The same statement says whether an arm is behind, and for a user with more rows only how many there
are and who spoke. Numbers arrive packed, a field after the other for every row, and texts as
arrays: reading hundreds of rows one value at a time would take longer than ranking them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Double, Integer, Text, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import TextClause

from ....record import Record
from ....store.sql.rows import COLUMNS, record_of
from ....store.sql.schema import records, sessions
from .tables import READING, entries, progress, vectors
from .vectors import Floats

MOST_WHOLE = 500  # rows of a user that are read as a whole

_NUMBERS = np.dtype(
    [
        ("seq", ">i8"),
        ("time", ">f8"),
        ("importance", ">f8"),
        ("fullness", ">f8"),
        ("length", ">i4"),
        ("words", ">i4"),
        ("traits", ">i2"),
        ("has_vector", ">i2"),
    ]
)
_TOKEN = np.dtype([("size", ">i4"), ("token", ">i8")])
_NAMES = ("session_id", "kind", "role", "speaker", "marks", "title")


class UserRows:
    """A user's index rows in ascending order of seq, in columns, with the records behind them."""

    def __init__(self, numbers: bytes, words: tuple[bytes, bytes], near: bytes, texts: Any) -> None:
        columns = np.frombuffer(numbers, _NUMBERS)
        self.seqs: list[int] = columns["seq"].tolist()
        self.times = columns["time"].astype(np.float64)
        self.importances = columns["importance"].astype(np.float64)
        self.fullness = columns["fullness"].astype(np.float64)
        self.lengths = columns["length"].astype(np.float64)
        self.traits = columns["traits"].astype(np.uint8)
        self.owners: NDArray[np.int64] = np.repeat(np.arange(len(columns)), columns["words"])
        self.tokens: NDArray[np.int64] = np.frombuffer(words[0], _TOKEN)["token"].astype(np.int64)
        self.counts = np.frombuffer(words[1], np.uint8)
        self.has_vector: NDArray[np.bool_] = columns["has_vector"] > 0
        self.vectors = _placed(self.has_vector, near)
        self._texts: dict[str, list[Any]] = texts

    def __len__(self) -> int:
        return len(self.seqs)

    def names(self, name: str) -> list[str | None]:
        """Return a column of session, kind, role, speaker, marks or title."""
        return self._texts[name]

    def id_of(self, seq: int) -> str:
        """Return the id of the record with this seq."""
        found: str = self._texts["record_id"][self.seqs.index(seq)]
        return found

    def record(self, row: int) -> Record:
        """Decode the record of a row; raise ``CorruptData`` if that is not possible."""
        behind = [self._texts[f"record_{each.name}"][row] for each in COLUMNS[2:]]
        return record_of([self.seqs[row], self._texts["session_id"][row], *behind])


class Look(NamedTuple):
    """What one statement says about a user: the arms that are behind, and the rows if few."""

    behind: tuple[str, ...]  # names of arms
    rows: UserRows | None  # ``None`` if there are too many
    speakers: list[str]  # only if there are more


async def look(
    on: AsyncConnection, user: str, now: float, arms: Sequence[str], space: str, most: int
) -> Look:
    """Return what a search needs to know of a user with up to ``most`` rows, or with more.

    ``space`` names the vectors, if any are used.
    """
    given = {"user": user, "reading": READING, "now": now, "most": most, "arms": [*arms]}
    statement = _statement(schema_of(on), bool(space))
    found = (await on.execute(statement, {**given, **({"space": space} if space else {})})).one()
    seen = found._mapping
    if seen["rows"] > most:
        return Look(tuple(seen["behind"]), None, seen["speakers"])
    packed = [seen[name] or b"" for name in ("numbers", "tokens", "counts", "vectors")]
    texts = {
        name: seen[name] or [] for name in (*_NAMES, *(f"record_{c.name}" for c in COLUMNS[2:]))
    }
    rows = UserRows(packed[0], (packed[1], packed[2]), packed[3], texts)
    return Look(tuple(seen["behind"]), rows, [])


def schema_of(on: AsyncConnection) -> str | None:
    """Return the schema that the caller's engine maps the tables to, if any."""
    made = on.sync_connection
    mapped = None if made is None else made.get_execution_options().get("schema_translate_map")
    return None if mapped is None else mapped.get(None)


def _placed(has: NDArray[np.bool_], packed: bytes) -> Floats:
    """Return a vector for each row, zeros for rows without one."""
    found = np.frombuffer(packed, ">f4").astype(np.float32)
    if has.all() or not len(found):
        return found.reshape(len(has), -1) if len(found) else np.zeros((len(has), 0), np.float32)
    placed = np.zeros((len(has), len(found) // int(has.sum())), np.float32)
    placed[has] = found.reshape(-1, placed.shape[1])
    return placed


@cache
def _statement(schema: str | None, with_vectors: bool) -> TextClause:
    """Return the statement. ``LATERAL … OFFSET 0`` looks up each row's record by its key.

    Without it the planner may read every user's records, where these are few.
    """
    place = "" if schema is None else '"' + schema.replace('"', '""') + '".'
    e, r, v, s, p = (
        f"{place}{table.name}" for table in (entries, records, vectors, sessions, progress)
    )
    own = ", ".join(f'"{each.name}" AS "record_{each.name}"' for each in COLUMNS[2:])
    near = (
        f"LEFT JOIN LATERAL (SELECT vector_send(vector) AS near FROM {v} AS n "  # noqa: S608  # our own names
        "WHERE n.user_id = :user AND n.seq = mine.seq AND n.space = :space OFFSET 0) AS v ON true"
        if with_vectors
        else "CROSS JOIN (SELECT NULL::bytea AS near) AS v"
    )
    texts = ", ".join(f'array_agg("{name}") AS "{name}"' for name in _NAMES)
    texts += "".join(
        f', array_agg("record_{each.name}") AS "record_{each.name}"' for each in COLUMNS[2:]
    )
    made = text(
        f"""
        WITH RECURSIVE mine AS MATERIALIZED (
            SELECT seq, session_id, kind, role, speaker, marks, title, time, importance, fullness,
                   traits, length, tokens, counts
            FROM {e} AS e
            WHERE e.user_id = :user AND reading = :reading
              AND (expires_at IS NULL OR expires_at > :now)
            ORDER BY user_id, session_id, place LIMIT :most + 1
        ), size AS MATERIALIZED (
            SELECT count(*) AS rows FROM mine
        ), names AS (
            SELECT min(speaker) AS name FROM {e} AS e
            WHERE e.user_id = :user AND (SELECT rows FROM size) > :most
            UNION ALL
            SELECT (
                SELECT min(speaker) FROM {e} AS e
                WHERE e.user_id = :user AND speaker > names.name
            )
            FROM names WHERE names.name IS NOT NULL
        ), people AS (
            SELECT name FROM names
            WHERE name IS NOT NULL AND coalesce((
                SELECT role FROM {e} AS e WHERE e.user_id = :user AND speaker = names.name
                ORDER BY seq LIMIT 1), '') <> 'tool'
            LIMIT 1000
        ), known AS (
            SELECT mine.*, r.*, v.near FROM mine
            CROSS JOIN LATERAL (
                SELECT {own} FROM {r} AS o WHERE o.user_id = :user AND o.seq = mine.seq OFFSET 0
            ) AS r
            {near}
            WHERE (SELECT rows FROM size) <= :most
            ORDER BY mine.seq
        )
        SELECT
            ARRAY(SELECT wanted.arm FROM unnest(CAST(:arms AS text[])) AS wanted(arm) WHERE EXISTS (
                SELECT FROM {s} AS s
                LEFT JOIN {p} AS p
                  ON p.user_id = s.user_id AND p.session_id = s.session_id AND p.arm = wanted.arm
                WHERE s.user_id = :user AND (p.done IS NULL OR p.done < s.next_index)
            )) AS behind,
            (SELECT rows FROM size) AS rows,
            ARRAY(SELECT name FROM people) AS speakers,
            string_agg(
                int8send(seq) || float8send(coalesce(time, 'NaN')) || float8send(importance)
                || float8send(fullness) || int4send(length) || int4send(cardinality(tokens))
                || int2send(traits) || int2send((near IS NOT NULL)::int::int2), '') AS numbers,
            string_agg(substring(array_send(tokens) from 21), '') AS tokens,
            string_agg(counts, '') AS counts,
            string_agg(substring(near from 5), '') AS vectors,
            {texts}
        FROM known
        """  # noqa: S608  # our own names
    )
    return made.bindparams(
        bindparam("user", type_=Text()),
        bindparam("reading", type_=Integer()),
        bindparam("now", type_=Double()),
        bindparam("most", type_=BigInteger()),
        *([bindparam("space", type_=Text())] if with_vectors else []),
    )
