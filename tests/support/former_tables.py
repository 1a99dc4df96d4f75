"""The tables as release 0.1 made them, before their layout had a version."""

from __future__ import annotations

POSTGRES = """
CREATE TABLE memoryspace_record (
    seq BIGSERIAL NOT NULL,
    user_id VARCHAR(255) NOT NULL,
    session_id VARCHAR(255) NOT NULL,
    id VARCHAR(255) NOT NULL,
    index BIGINT NOT NULL,
    kind VARCHAR(255) NOT NULL,
    marks VARCHAR NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION,
    importance DOUBLE PRECISION NOT NULL,
    pinned SMALLINT NOT NULL,
    origin TEXT,
    text TEXT,
    value TEXT NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT memoryspace_record_id UNIQUE (user_id, session_id, id)
)

CREATE INDEX memoryspace_record_marked ON memoryspace_record (user_id, session_id) WHERE marks != ''

CREATE INDEX memoryspace_record_order ON memoryspace_record (user_id, session_id, index)

CREATE INDEX memoryspace_record_seq ON memoryspace_record (user_id, seq)

CREATE TABLE memoryspace_session (
    user_id VARCHAR(255) NOT NULL,
    session_id VARCHAR(255) NOT NULL,
    next_index BIGINT NOT NULL,
    changed BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (user_id, session_id)
)

CREATE TABLE memoryspace_state (
    user_id VARCHAR(255) NOT NULL,
    session_id VARCHAR(255) NOT NULL,
    state TEXT NOT NULL,
    saved_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (user_id, session_id)
)

CREATE TABLE memoryspace_vector (
    seq BIGINT NOT NULL,
    space VARCHAR(255) NOT NULL,
    user_id VARCHAR(255) NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (seq, space),
    FOREIGN KEY(seq) REFERENCES memoryspace_record (seq)
    ON DELETE CASCADE
)

CREATE INDEX memoryspace_vector_user ON memoryspace_vector (user_id, space)

CREATE TABLE memoryspace_search (
    seq BIGINT NOT NULL,
    reading INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    kind TEXT NOT NULL,
    role TEXT,
    speaker TEXT,
    marks TEXT NOT NULL,
    time DOUBLE PRECISION,
    expires_at DOUBLE PRECISION,
    instructs BOOLEAN NOT NULL,
    length INTEGER NOT NULL,
    tokens BIGINT[] NOT NULL,
    counts BYTEA NOT NULL,
    PRIMARY KEY (seq, reading),
    FOREIGN KEY(seq) REFERENCES memoryspace_record (seq)
    ON DELETE CASCADE
)

CREATE INDEX memoryspace_search_place ON memoryspace_search (user_id, session_id, place)
    INCLUDE (reading, expires_at, length)

CREATE INDEX memoryspace_search_speaker ON memoryspace_search (user_id, speaker, seq)

CREATE INDEX memoryspace_search_standing ON memoryspace_search (user_id, seq) WHERE instructs

CREATE INDEX memoryspace_search_time ON memoryspace_search (user_id, time)

CREATE INDEX memoryspace_search_tokens ON memoryspace_search
    USING gin (tokens) WITH (fastupdate = off)

CREATE TABLE memoryspace_search_progress (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    arm TEXT NOT NULL,
    made BIGINT NOT NULL,
    done BIGINT NOT NULL,
    PRIMARY KEY (user_id, session_id, arm),
    FOREIGN KEY(user_id, session_id) REFERENCES memoryspace_session (user_id, session_id)
    ON DELETE CASCADE
)

CREATE TABLE memoryspace_search_vector (
    seq BIGINT NOT NULL,
    space TEXT NOT NULL,
    user_id TEXT NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (seq, space),
    FOREIGN KEY(seq) REFERENCES memoryspace_record (seq)
    ON DELETE CASCADE
)

CREATE INDEX memoryspace_search_vector_user ON memoryspace_search_vector (user_id, space)
"""

SQLITE = """
CREATE TABLE memoryspace_record (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id VARCHAR(255) NOT NULL,
    session_id VARCHAR(255) NOT NULL,
    id VARCHAR(255) NOT NULL,
    "index" BIGINT NOT NULL,
    kind VARCHAR(255) NOT NULL,
    marks TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    expires_at DOUBLE,
    importance DOUBLE NOT NULL,
    pinned SMALLINT NOT NULL,
    origin TEXT,
    text TEXT,
    value TEXT NOT NULL,
    CONSTRAINT memoryspace_record_id UNIQUE (user_id, session_id, id)
)

CREATE INDEX memoryspace_record_marked ON memoryspace_record (user_id, session_id) WHERE marks != ''

CREATE INDEX memoryspace_record_order ON memoryspace_record (user_id, session_id, "index")

CREATE INDEX memoryspace_record_seq ON memoryspace_record (user_id, seq)

CREATE TABLE memoryspace_session (
    user_id VARCHAR(255) NOT NULL,
    session_id VARCHAR(255) NOT NULL,
    next_index BIGINT NOT NULL,
    changed BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (user_id, session_id)
)

CREATE TABLE memoryspace_state (
    user_id VARCHAR(255) NOT NULL,
    session_id VARCHAR(255) NOT NULL,
    state TEXT NOT NULL,
    saved_at DOUBLE NOT NULL,
    PRIMARY KEY (user_id, session_id)
)

CREATE TABLE memoryspace_vector (
    seq INTEGER NOT NULL,
    space VARCHAR(255) NOT NULL,
    user_id VARCHAR(255) NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (seq, space),
    FOREIGN KEY(seq) REFERENCES memoryspace_record (seq)
    ON DELETE CASCADE
)

CREATE INDEX memoryspace_vector_user ON memoryspace_vector (user_id, space)

CREATE TRIGGER IF NOT EXISTS memoryspace_vector_goes AFTER DELETE ON memoryspace_record
    BEGIN DELETE FROM memoryspace_vector WHERE seq = OLD.seq; END
"""

MARIADB = """
CREATE TABLE memoryspace_record (
    seq BIGINT NOT NULL AUTO_INCREMENT,
    user_id VARBINARY(765) NOT NULL,
    session_id VARBINARY(765) NOT NULL,
    id VARBINARY(765) NOT NULL,
    `index` BIGINT NOT NULL,
    kind VARBINARY(765) NOT NULL,
    marks LONGBLOB NOT NULL,
    created_at DOUBLE NOT NULL,
    expires_at DOUBLE,
    importance DOUBLE NOT NULL,
    pinned SMALLINT NOT NULL,
    origin LONGTEXT,
    text LONGTEXT,
    value LONGTEXT NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT memoryspace_record_id UNIQUE (user_id, session_id, id)
)ENGINE=InnoDB CHARSET=utf8mb4

CREATE INDEX memoryspace_record_marked ON memoryspace_record (user_id, session_id, marks(64))

CREATE INDEX memoryspace_record_order ON memoryspace_record (user_id, session_id, `index`)

CREATE INDEX memoryspace_record_seq ON memoryspace_record (user_id, seq)

CREATE TABLE memoryspace_session (
    user_id VARBINARY(765) NOT NULL,
    session_id VARBINARY(765) NOT NULL,
    next_index BIGINT NOT NULL,
    changed BIGINT NOT NULL DEFAULT '0',
    PRIMARY KEY (user_id, session_id)
)ENGINE=InnoDB CHARSET=utf8mb4

CREATE TABLE memoryspace_state (
    user_id VARBINARY(765) NOT NULL,
    session_id VARBINARY(765) NOT NULL,
    state LONGTEXT NOT NULL,
    saved_at DOUBLE NOT NULL,
    PRIMARY KEY (user_id, session_id)
)ENGINE=InnoDB CHARSET=utf8mb4

CREATE TABLE memoryspace_vector (
    seq BIGINT NOT NULL,
    space VARBINARY(765) NOT NULL,
    user_id VARBINARY(765) NOT NULL,
    vector MEDIUMBLOB NOT NULL,
    PRIMARY KEY (seq, space),
    FOREIGN KEY(seq) REFERENCES memoryspace_record (seq)
    ON DELETE CASCADE
)ENGINE=InnoDB CHARSET=utf8mb4

CREATE INDEX memoryspace_vector_user ON memoryspace_vector (user_id, space)
"""


FORMER = {"postgres": POSTGRES, "sqlite": SQLITE, "mariadb": MARIADB}


def statements(backend: str) -> list[str]:
    """Return what makes the tables, one statement each."""
    return [each for each in FORMER[backend].split("\n\n") if each.strip()]
