"""The error tree. Every error message says what failed, for which id, and what to do.

    MemorySpaceError
    ├── InvalidInput (ValueError)        an unusable id, mark or option
    │   ├── InvalidMessage               a Msg with an invalid role or content
    │   ├── PromptTooLong                the part of a conversation that must stay does not fit
    │   ├── SecretRefused                a message with a secret, where secrets are refused
    │   ├── InvalidHook                  an unknown hook, or a hook with an unusable result
    │   ├── ImportRefused                a file to import that is damaged or not what it should be
    │   └── WrongForm                    a document that does not match the requested schema
    ├── NotSerializable (TypeError)      a value that no backend can encode
    ├── CorruptData                      stored bytes that cannot be decoded
    │   ├── BackupDamaged                a backup with a missing or altered file
    │   ├── BackupTooNew                 a backup in the format of a later version
    │   ├── OutdatedIndex                a saved index of a later version, or of other texts
    │   ├── JournalDamaged               records in the middle of a journal are lost
    │   └── JournalTooNew                a journal in the format of a later version
    ├── FrozenMessage (AttributeError)   an attempt to change a stored message in place
    ├── OutOfSpace (MemoryError)         the heap's or a tenant's budget is used up
    ├── UnknownObject (KeyError)         no object in the memory space has this id
    ├── StoreError
    │   ├── FolderInUse                  another process owns the space's folder
    │   ├── SchemaTooNew                 a database with the tables of a later version
    │   └── StoreUnavailable             the server cannot be reached, or closed the connection
    │       ├── StoreBusy                another writer held the lock for too long
    │       ├── NotReplicated            a change was made, but too few replicas confirmed it
    │       └── JournalUnavailable       the disk does not accept journal writes
    ├── EmbeddingFailed                  a server did not return the requested vectors
    │   └── EmbeddingUnavailable         the server cannot be reached, or is overloaded
    ├── SessionNotFound (ValueError)     no state is saved for this session
    ├── NotStarted (RuntimeError)        a service was used before start() or after stop()
    ├── AgentBusy (RuntimeError)         an agent was called from within its own reply
    ├── NotOffered (NotImplementedError) this backend cannot do it
    ├── VersionConflict                  another writer changed the memory in the meantime
    ├── UnknownMemory (KeyError)         no memory of this user has this id
    ├── UnknownKey (KeyError)            a server has no API key of this id
    ├── UnknownHandle (KeyError)         no archived content has this handle
    ├── ModelFailed                      a chat model did not give a usable answer
    │   └── ModelUnavailable             the model cannot be reached, or is overloaded
    ├── LeakFound (AssertionError)       a leak check found objects that should be gone
    └── MissingExtra (ImportError)       an optional dependency is not installed
        └── MissingWeights               no package with the model's weights is installed

``FolderInUse`` and the journal's errors are defined in ``memoryspace.kernel``, the embedding errors
in ``memoryspace.embedding``, ``OutdatedIndex`` in ``memoryspace.retrieval``, ``PromptTooLong`` in
``memoryspace.formatter``, ``InvalidHook`` and ``LeakFound`` in ``memoryspace.agent``, the errors of
backups in ``memoryspace.care``.
A wrong *type* raises the built-in ``TypeError``; a missing state key raises ``KeyError``.
"""

from __future__ import annotations


class MemorySpaceError(Exception):
    """Base class of every error that this package raises."""


class InvalidInput(MemorySpaceError, ValueError):
    """An argument that cannot be used: an id, a mark or an option."""


class InvalidMessage(InvalidInput, AssertionError):
    """A ``Msg`` with a bad role or content (an ``AssertionError`` in AgentScope v1)."""


class SecretRefused(InvalidInput):
    """Messages contain secrets, and the policy refuses to store them.

    ``messages`` holds the positions of those messages in the call. The error never contains the
    secret itself.
    """

    def __init__(self, message: str, messages: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.messages = messages


class WrongForm(InvalidInput):
    """A document does not match the requested schema. The error never shows the document."""


class ImportRefused(InvalidInput):
    """A file to import is damaged, in another format, or holds what may not be imported.

    ``line`` is the line at fault, if the file has lines.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class NotSerializable(MemorySpaceError, TypeError):
    """A value that cannot be written as JSON."""


class CorruptData(MemorySpaceError):
    """Stored bytes that cannot be decoded."""


class FrozenMessage(MemorySpaceError, AttributeError):
    """An attempt to change a stored message in place. Change a copy instead."""


class OutOfSpace(MemorySpaceError, MemoryError):
    """The budget is used up, and nothing more can be collected or demoted."""


class UnknownObject(MemorySpaceError, KeyError):
    """No object has this id: it never existed, was freed or collected, or has expired."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class StoreError(MemorySpaceError):
    """A store could not complete an operation."""


class SchemaTooNew(StoreError):
    """A database's tables were made by a later version of this package. Upgrade the package."""


class StoreUnavailable(StoreError):
    """The server behind a store cannot be reached. Acknowledged writes are safe; try again."""


class StoreBusy(StoreUnavailable):
    """Other writers held the lock for longer than the store waits."""


class NotReplicated(StoreUnavailable):
    """A change was made, but too few replicas confirmed it in time: a failover may lose it."""


class SessionNotFound(MemorySpaceError, ValueError):
    """No state is saved for this user and session."""


class AgentBusy(MemorySpaceError, RuntimeError):
    """An agent was called from within its own reply, for example by one of its tools."""


class NotStarted(MemorySpaceError, RuntimeError):
    """A service was used before ``start()`` or after ``stop()``."""


class NotOffered(MemorySpaceError, NotImplementedError):
    """This memory is in a place where it cannot be done. The message says where it can."""


class VersionConflict(MemorySpaceError):
    """The memory is no longer at the expected version. Read it again before you change it."""


class UnknownMemory(MemorySpaceError, KeyError):
    """No memory of this user has this id: it never existed, was deleted, or has expired."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class UnknownHandle(MemorySpaceError, KeyError):
    """No archived content has this handle: it never existed, or was released."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class UnknownKey(MemorySpaceError, KeyError):
    """A server has no API key of this id."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class ModelFailed(MemorySpaceError):
    """A chat model gave no answer, or an unusable one."""


class ModelUnavailable(ModelFailed):
    """A chat model could not be reached, or was busy on every attempt. Try again later."""


class MissingExtra(MemorySpaceError, ImportError):
    """A feature needs a package that is not installed. The message names the extras to install."""

    def __init__(self, package: str, *extras: str) -> None:
        commands = " or ".join(f"pip install 'memoryspace[{extra}]'" for extra in extras)
        super().__init__(f"the package '{package}' is not installed; run: {commands}")
