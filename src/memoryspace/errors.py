"""The one error tree. Every error says what failed, which thing, and what to do.

    MemorySpaceError
    ├── InvalidInput (ValueError)        an id, a mark or an option that cannot be used
    │   ├── InvalidMessage               a Msg built from the wrong parts
    │   ├── PromptTooLong                what must stay of a conversation does not fit
    │   ├── SecretRefused                a message with a secret, where none may be stored
    │   ├── InvalidHook                  a hook that an agent cannot have or use
    │   └── WrongForm                    a document that is not of the form asked for
    ├── NotSerializable (TypeError)      a value that no shelf can write down
    ├── CorruptData                      stored bytes that do not read back
    │   ├── OutdatedIndex                a saved index of a later version, or of other words
    │   ├── JournalDamaged               records in the middle of a journal are lost
    │   └── JournalTooNew                a journal in a format of a later version
    ├── FrozenMessage (AttributeError)   a stored message that must not be changed
    ├── OutOfSpace (MemoryError)         a budget is used up: the heap's, or a tenant's
    ├── UnknownObject (KeyError)         no object of a memory space has this id
    ├── StoreError
    │   ├── FolderInUse                  another process owns the folder of a space
    │   └── StoreUnavailable             the server cannot be reached, or hung up
    │       ├── StoreBusy                another writer held the lock for too long
    │       └── JournalUnavailable       the disk does not take what was to be journalled
    ├── EmbeddingFailed                  a server did not give the vectors it was asked for
    │   └── EmbeddingUnavailable         it cannot be reached, or is overloaded
    ├── SessionNotFound (ValueError)     no state was saved under this session
    ├── NotStarted (RuntimeError)        a service was used before start() or after stop()
    ├── AgentBusy (RuntimeError)         an agent was asked from within its own reply
    ├── VersionConflict                  a memory was changed by somebody else in the meantime
    ├── UnknownMemory (KeyError)         no memory of this user has this id
    ├── UnknownHandle (KeyError)         nothing that left a context is kept under this handle
    ├── ModelFailed                      a chat model did not give an answer that can be used
    │   └── ModelUnavailable             it cannot be reached, or is overloaded
    ├── LeakFound (AssertionError)       a leak check found what should be gone
    └── MissingExtra (ImportError)       an optional dependency is not installed
        └── MissingWeights               no package with the weights of a model is installed

``FolderInUse`` and the journal's errors stand in ``memoryspace.kernel``, those of embedding in
``memoryspace.embedding``, ``OutdatedIndex`` in ``memoryspace.retrieval``, ``PromptTooLong`` in
``memoryspace.formatter``, ``InvalidHook`` and ``LeakFound`` in ``memoryspace.agent``.
A wrong *type* raises the built-in ``TypeError``; a missing state key, ``KeyError``.
"""

from __future__ import annotations


class MemorySpaceError(Exception):
    """The root of all errors of this package."""


class InvalidInput(MemorySpaceError, ValueError):
    """An argument that no store could hold safely."""


class InvalidMessage(InvalidInput, AssertionError):
    """A ``Msg`` with a bad role or content (an ``AssertionError`` in AgentScope v1)."""


class SecretRefused(InvalidInput):
    """Messages hold secrets and none may be stored; ``messages`` are their places in the call.

    The error never holds the secret.
    """

    def __init__(self, message: str, messages: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.messages = messages


class WrongForm(InvalidInput):
    """A document is not of the form asked for. The error never holds what stands in it."""


class NotSerializable(MemorySpaceError, TypeError):
    """A value that cannot be written as JSON."""


class CorruptData(MemorySpaceError):
    """Stored bytes that do not read back as what was written."""


class FrozenMessage(MemorySpaceError, AttributeError):
    """A message inside a record was about to be changed in place."""


class OutOfSpace(MemorySpaceError, MemoryError):
    """Nothing more fits, and nothing more can be collected or demoted."""


class UnknownObject(MemorySpaceError, KeyError):
    """No object has this id: it never had, was freed, was collected or has expired."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class StoreError(MemorySpaceError):
    """A store could not do what was asked."""


class StoreUnavailable(StoreError):
    """The server behind a store cannot be reached. Nothing acknowledged was lost; try again."""


class StoreBusy(StoreUnavailable):
    """Other writers held the lock longer than the store was willing to wait."""


class SessionNotFound(MemorySpaceError, ValueError):
    """No state was saved under this user and session."""


class AgentBusy(MemorySpaceError, RuntimeError):
    """An agent was asked by something that it waits for itself, such as one of its tools."""


class NotStarted(MemorySpaceError, RuntimeError):
    """A service was asked for something while it was not running."""


class VersionConflict(MemorySpaceError):
    """A memory is no longer at the version that was to be changed. Read it again and decide."""


class UnknownMemory(MemorySpaceError, KeyError):
    """No memory of this user has this id: it never had, was deleted, or has expired."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class UnknownHandle(MemorySpaceError, KeyError):
    """Nothing is kept under this handle: it never was, or was released."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class ModelFailed(MemorySpaceError):
    """A chat model gave no answer, or none that can be used."""


class ModelUnavailable(ModelFailed):
    """A chat model could not be reached, or was busy each time. Trying later may help."""


class MissingExtra(MemorySpaceError, ImportError):
    """A feature needs a package that is not installed. Several extras may bring it."""

    def __init__(self, package: str, *extras: str) -> None:
        commands = " or ".join(f"pip install 'memoryspace[{extra}]'" for extra in extras)
        super().__init__(f"the package '{package}' is not installed; run: {commands}")
