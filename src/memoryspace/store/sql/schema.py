"""The database tables. User and id are in every key and compared byte by byte everywhere.

In PostgreSQL the user is also in every primary key and foreign key, so that the tables can be
partitioned by user or distributed. SQLite needs ``seq`` alone as its key to assign it, and MySQL
partitions no table with a foreign key; there the tables have the shorter keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator, TypeEngine

from ...record import MAX_ID_BYTES, MAX_ID_CHARACTERS

MYSQL_FAMILY = ("mysql", "mariadb")
DIALECTS = ("sqlite", "postgresql", *MYSQL_FAMILY)
_OPTIONS: dict[str, Any] = {
    f"{name}_{option}": value
    for name in MYSQL_FAMILY
    for option, value in {"engine": "InnoDB", "charset": "utf8mb4"}.items()
}


class ExactText(TypeDecorator[str]):
    """Text compared exactly. On MySQL it is stored as bytes: text ignores case and final spaces."""

    impl = String
    cache_ok = True

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        self.length = length

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type."""
        if dialect.name in MYSQL_FAMILY:
            binary = mysql.LONGBLOB() if self.length is None else mysql.VARBINARY(MAX_ID_BYTES)
            return dialect.type_descriptor(binary)
        return dialect.type_descriptor(Text() if self.length is None else String(self.length))

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Encode parameters, on MySQL only."""
        if dialect.name in MYSQL_FAMILY:
            return lambda value: value.encode() if isinstance(value, str) else value
        return None

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Decode results, on MySQL only."""
        if dialect.name in MYSQL_FAMILY:
            return lambda value: bytes(value).decode() if value is not None else None
        return None


def _id_column(name: str, **options: Any) -> Column[str]:
    return Column(name, ExactText(MAX_ID_CHARACTERS), nullable=False, **options)


class Key(PrimaryKeyConstraint):
    """A primary key. In PostgreSQL the user comes before its columns."""


@compiles(Key)
def _key(key: Key, compiler: Any, **options: Any) -> Any:
    return compiler.visit_primary_key_constraint(key, **options)  # None if SQLite has it already


@compiles(Key, "postgresql")
def _key_with_user(key: Key, compiler: Any, **_: Any) -> str:
    names = [compiler.preparer.quote(column.name) for column in key.columns]
    return f"PRIMARY KEY ({', '.join(['user_id', *names])})"


def _only_on(*dialects: str) -> Callable[..., bool]:
    return lambda *_, dialect, **__: dialect.name in dialects


def _except_on(*dialects: str) -> Callable[..., bool]:
    return lambda *_, dialect, **__: dialect.name not in dialects


_LongText = Text().with_variant(mysql.LONGTEXT(), *MYSQL_FAMILY)

metadata = MetaData()

# next_index is the index of a session's next record. A writer first updates this row and so holds
# its lock until commit: appends to one session are serialised.
# changed gets a new number when a session is created or loses a record: see session_rows.
sessions = Table(
    "memoryspace_session",
    metadata,
    _id_column("user_id", primary_key=True),
    _id_column("session_id", primary_key=True),
    Column("next_index", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False, server_default="0"),  # not in the first release
    **_OPTIONS,
)

records = Table(
    "memoryspace_record",
    metadata,
    Column("seq", BigInteger().with_variant(Integer(), "sqlite")),
    _id_column("user_id"),
    _id_column("session_id"),
    _id_column("id"),
    Column("index", BigInteger, nullable=False),
    _id_column("kind"),
    Column("marks", ExactText(), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("importance", Double, nullable=False),
    Column("pinned", SmallInteger, nullable=False),
    Column("origin", _LongText),
    Column("text", _LongText),
    Column("value", _LongText, nullable=False),
    Key("seq"),
    UniqueConstraint("user_id", "session_id", "id", name="memoryspace_record_id"),
    sqlite_autoincrement=True,  # a seq is never reused, even after the newest is deleted
    **_OPTIONS,
)
Index("memoryspace_record_order", records.c.user_id, records.c.session_id, records.c.index)
Index("memoryspace_record_seq", records.c.user_id, records.c.seq).ddl_if(
    callable_=_except_on("postgresql")  # its primary key is the same
)
# Few records expire.
Index(
    "memoryspace_record_expiry",
    records.c.expires_at,
    sqlite_where=records.c.expires_at.is_not(None),
    postgresql_where=records.c.expires_at.is_not(None),
)
# Few records have marks, so a partial index of those is enough.
Index(
    "memoryspace_record_marked",
    records.c.user_id,
    records.c.session_id,
    sqlite_where=records.c.marks != "",
    postgresql_where=records.c.marks != "",
).ddl_if(callable_=_only_on("sqlite", "postgresql"))
Index(
    "memoryspace_record_marked",
    records.c.user_id,
    records.c.session_id,
    records.c.marks,
    mysql_length={"marks": 64},
    mariadb_length={"marks": 64},
).ddl_if(callable_=_only_on(*MYSQL_FAMILY))

# A vector references the record of its seq and is deleted with it, by any process.
vectors = Table(
    "memoryspace_vector",
    metadata,
    Column("seq", records.c.seq.type, autoincrement=False),
    _id_column("space"),
    _id_column("user_id"),
    Column("vector", LargeBinary().with_variant(mysql.MEDIUMBLOB(), *MYSQL_FAMILY), nullable=False),
    Key("seq", "space"),
    ForeignKeyConstraint(["seq"], [records.c.seq], ondelete="CASCADE").ddl_if(
        callable_=_except_on("postgresql")
    ),
    ForeignKeyConstraint(
        ["user_id", "seq"], [records.c.user_id, records.c.seq], ondelete="CASCADE"
    ).ddl_if(callable_=_only_on("postgresql")),
    **_OPTIONS,
)
Index("memoryspace_vector_user", vectors.c.user_id, vectors.c.space)


@event.listens_for(vectors, "after_create")
def _cascade_on_sqlite(target: Table, connection: Connection, **_: Any) -> None:
    """Create a trigger: SQLite enforces foreign keys only on connections that enable them."""
    if connection.dialect.name == "sqlite":
        quoted, schema = connection.dialect.identifier_preparer, schema_in(connection)
        place = "" if schema is None else f"{quoted.quote(schema)}."
        trigger = f"{place}memoryspace_vector_goes AFTER DELETE ON {records.name}"
        done = f"DELETE FROM {target.name} WHERE seq = OLD.seq"  # noqa: S608  # our own name
        connection.exec_driver_sql(f"CREATE TRIGGER IF NOT EXISTS {trigger} BEGIN {done}; END")


def schema_in(connection: Connection) -> str | None:
    """Return the schema that the caller maps our tables to, if any."""
    mapped = connection.get_execution_options().get("schema_translate_map")
    return None if mapped is None else mapped.get(None)


states = Table(
    "memoryspace_state",
    metadata,
    _id_column("user_id", primary_key=True),
    _id_column("session_id", primary_key=True),
    Column("state", _LongText, nullable=False),
    Column("saved_at", Double, nullable=False),
    **_OPTIONS,
)

# One row: the version of these tables (see layout).
versions = Table(
    "memoryspace_schema",
    metadata,
    Column("part", String(32), primary_key=True),
    Column("version", Integer, nullable=False),
    **_OPTIONS,
)
