"""What a command's exit code says, and the errors behind it."""

from __future__ import annotations

from enum import IntEnum

from ..errors import (
    ImportRefused,
    InvalidInput,
    MemorySpaceError,
    NotOffered,
    SecretRefused,
    SessionNotFound,
    UnknownHandle,
    UnknownMemory,
    VersionConflict,
)


class Code(IntEnum):
    """The exit codes."""

    DONE = 0
    NOTHING = 1
    USAGE = 2
    REFUSED = 3
    FAILED = 4
    INTERRUPTED = 130


MEANINGS = {
    Code.DONE: "done",
    Code.NOTHING: "nothing was found, or `doctor` found something wrong",
    Code.USAGE: "an unknown option or setting, or a value that cannot be used",
    Code.REFUSED: "refused: you did not confirm, a message holds a secret, somebody else has "
    "changed the memory, or something to import is damaged or was not accepted",
    Code.FAILED: "it failed: a server cannot be reached, a folder is in use, data is damaged",
    Code.INTERRUPTED: "interrupted by Ctrl-C",
}

_NOT_THERE = (UnknownMemory, UnknownHandle, SessionNotFound)
_REFUSED = (ImportRefused, SecretRefused, VersionConflict)


class NothingFound(Exception):
    """There is nothing to show; the message says what was looked for."""


class NotConfirmed(Exception):
    """Something that cannot be undone was not confirmed."""


def code_of(error: BaseException) -> Code:
    """Return the exit code for an error."""
    if isinstance(error, (NothingFound, *_NOT_THERE)):
        return Code.NOTHING
    if isinstance(error, (NotConfirmed, *_REFUSED)):
        return Code.REFUSED
    if isinstance(error, InvalidInput | NotOffered):
        return Code.USAGE
    return Code.FAILED


def is_expected(error: BaseException) -> bool:
    """Return whether an error says by itself what happened; all others are bugs."""
    return isinstance(error, MemorySpaceError | NothingFound | NotConfirmed | OSError)
