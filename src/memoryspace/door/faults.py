"""How errors are named between a server and its clients: one code for each kind of error."""

from __future__ import annotations

from ..embedding import EmbeddingFailed
from ..errors import (
    InvalidInput,
    MemorySpaceError,
    MissingExtra,
    ModelFailed,
    NotOffered,
    NotSerializable,
    OutOfSpace,
    SecretRefused,
    SessionNotFound,
    StoreError,
    StoreUnavailable,
    UnknownHandle,
    UnknownKey,
    UnknownMemory,
    UnknownObject,
    VersionConflict,
)

# Kinds of errors, each with its code and its HTTP status; the most special ones first.
FAULTS: tuple[tuple[type[Exception], str, int], ...] = (
    (SecretRefused, "secret-refused", 422),
    (UnknownMemory, "unknown-memory", 404),
    (UnknownHandle, "unknown-handle", 404),
    (UnknownObject, "unknown-object", 404),
    (UnknownKey, "unknown-key", 404),
    (SessionNotFound, "unknown-session", 404),
    (VersionConflict, "version-conflict", 412),
    (NotOffered, "not-offered", 501),
    (NotSerializable, "not-serializable", 422),
    (InvalidInput, "invalid-input", 422),
    (OutOfSpace, "out-of-space", 507),
    (MissingExtra, "missing-extra", 501),
    (StoreUnavailable, "store-unavailable", 503),
    (ModelFailed, "model-failed", 502),
    (EmbeddingFailed, "embedding-failed", 502),
    (MemorySpaceError, "internal-error", 500),
)


class AccessDenied(MemorySpaceError):
    """A server refused a key: it is missing, not valid, or may not do this."""


class QuotaExceeded(MemorySpaceError):
    """A server refused a request because a limit of the user is reached."""


_OTHERS: dict[str, type[MemorySpaceError]] = {
    "unauthorized": AccessDenied,
    "forbidden": AccessDenied,
    "too-many-requests": QuotaExceeded,
    "quota-exceeded": QuotaExceeded,
    "internal-error": StoreError,
    "missing-extra": NotOffered,  # it is the server that lacks it
    "key-reused": InvalidInput,
    "not-confirmed": InvalidInput,
    "too-large": InvalidInput,
    "not-found": StoreError,  # an address that is no memory server
}


def error_of(code: str, detail: str) -> Exception:
    """Return the error that a server named by its code."""
    if code in _OTHERS:
        return _OTHERS[code](detail)
    for kind, known, _ in FAULTS:
        if code == known:
            return kind(detail)
    return StoreError(detail)
