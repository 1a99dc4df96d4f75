"""``Memory``: the same verbs as ``AsyncMemory``, without ``await``.

There is no code of its own behind them: each verb runs the asynchronous one on the background event
loop of this package and waits. So it can be called from any thread, and where a loop is running
already, as in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from ..context import LossReport
from ..events import EventStream
from ..lifecycle import ClosingNow
from ..loops import wait_for
from ..model import ChatModel
from ..service.settings import ServiceSettings
from ..store import Address, Store
from .calling import misused
from .config import Config
from .memory import AsyncMemory
from .messages import Time
from .results import Moment
from .review import AsyncReview
from .session import AsyncSession

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


class Blocking(Generic[A]):
    """An object whose verbs block; ``asynchronous`` is the one that does the work."""

    def __init__(self, asynchronous: A) -> None:
        self.asynchronous = asynchronous

    def __repr__(self) -> str:
        return repr(self.asynchronous).replace("Async", "", 1)


class blocks(Generic[A, P, R]):  # noqa: N801  # used like a function
    """A descriptor: a method that runs an asynchronous one and waits for it."""

    def __init__(self, verb: Callable[Concatenate[A, P], Coroutine[Any, Any, R]]) -> None:
        self._verb = verb
        self.__doc__ = verb.__doc__
        self.__name__ = verb.__name__
        self.__wrapped__ = verb  # for inspect.signature and help()

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Blocking[Any], kind: type) -> Callable[P, R]: ...
    def __get__(self, owner: Blocking[Any] | None, kind: type) -> Self | Callable[P, R]:
        if owner is None:
            return self
        verb = self._of(owner)

        def call(*args: P.args, **options: P.kwargs) -> R:
            return wait_for(_begun(verb, *args, **options))

        call.__name__, call.__doc__ = self.__name__, self.__doc__
        call.__wrapped__ = verb  # type: ignore[attr-defined]  # for help()
        return call

    def __call__(self, owner: Blocking[Any], *args: P.args, **options: P.kwargs) -> R:
        """Call the verb as a function of the object, as ``Memory.add(memory, …)`` does."""
        return wait_for(_begun(self._of(owner), *args, **options))

    def _of(self, owner: Blocking[Any]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Return the verb of the asynchronous object, whose class may have one of its own."""
        verb: Callable[P, Coroutine[Any, Any, R]] = getattr(owner.asynchronous, self.__name__)
        return verb


def _begun(
    verb: Callable[P, Coroutine[Any, Any, R]], *args: P.args, **options: P.kwargs
) -> Coroutine[Any, Any, R]:
    """Call a coroutine function; its body runs later, so a ``TypeError`` is about the arguments."""
    try:
        return verb(*args, **options)
    except TypeError as error:
        raise misused(verb, options, error) from None


class Session(Blocking[AsyncSession]):
    """One conversation's working memory: ``AsyncSession`` without ``await``."""

    add = blocks(AsyncSession.add)
    messages = blocks(AsyncSession.messages)
    all_messages = blocks(AsyncSession.all_messages)
    expand = blocks(AsyncSession.expand)
    mark = blocks(AsyncSession.mark)
    unmark = blocks(AsyncSession.unmark)
    delete = blocks(AsyncSession.delete)
    clear = blocks(AsyncSession.clear)
    size = blocks(AsyncSession.size)

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self.asynchronous.id

    @property
    def user(self) -> str:
        """The user whose conversation it is."""
        return self.asynchronous.user

    def report(self) -> LossReport | None:
        """Return what the last compaction left out, and why; ``None`` before the first."""
        return self.asynchronous.report()


class Review(Blocking[AsyncReview]):
    """What waits for a decision: ``AsyncReview`` without ``await``."""

    waiting = blocks(AsyncReview.waiting)
    approve = blocks(AsyncReview.approve)
    reject = blocks(AsyncReview.reject)
    undo = blocks(AsyncReview.undo)
    quarantined = blocks(AsyncReview.quarantined)
    release = blocks(AsyncReview.release)


class Memory(Blocking[AsyncMemory], ClosingNow):
    """A memory for agents: durable, searchable, explained; the same verbs on every backend.

    It opens at the first call, can be used from any thread and in notebooks, and closes itself at
    the end of the program; ``with`` closes it earlier. ``AsyncMemory`` is the same with ``await``.

    Args:
        address: Where the memory is: nothing (a folder of this computer's user), a folder,
            ``memory:`` (RAM), ``sqlite:///…``, ``postgresql://…``, ``mysql://…`` or ``redis://…``;
            the address of a server, ``http://…``; or a store that is open already, which stays the
            caller's to close.
        user: Whose memory calls are about that name no user.
        api_key: The key for a server.
        config: How it works; by default what ``memoryspace.toml`` and ``MEMORYSPACE_…`` say.
        settings: Settings of the service beyond those of ``config``.
        model: A chat model that finds facts which the built-in rules do not.

    Raises:
        InvalidInput: The address or a setting is not valid.

    Example::

        memory = Memory()
        memory.add("I moved to Oslo last week.", user="alice")
        print(memory.search("Where does she live?", user="alice"))
    """

    def __init__(
        self,
        address: Address | Store | None = None,
        *,
        user: str | None = None,
        api_key: str | None = None,
        config: Config | None = None,
        settings: ServiceSettings | None = None,
        model: ChatModel | None = None,
    ) -> None:
        super().__init__(
            AsyncMemory(
                address,
                user=user,
                api_key=api_key,
                config=config,
                settings=settings,
                model=model,
            )
        )

    add = blocks(AsyncMemory.add)
    get = blocks(AsyncMemory.get)
    update = blocks(AsyncMemory.update)
    delete = blocks(AsyncMemory.delete)
    delete_session = blocks(AsyncMemory.delete_session)
    delete_user = blocks(AsyncMemory.delete_user)
    history = blocks(AsyncMemory.history)
    facts = blocks(AsyncMemory.facts)
    search = blocks(AsyncMemory.search)
    context = blocks(AsyncMemory.context)
    why_not = blocks(AsyncMemory.why_not)
    feedback = blocks(AsyncMemory.feedback)
    recalls = blocks(AsyncMemory.recalls)
    never_recalled = blocks(AsyncMemory.never_recalled)
    sessions = blocks(AsyncMemory.sessions)
    settle = blocks(AsyncMemory.settle)
    retry = blocks(AsyncMemory.retry)
    stats = blocks(AsyncMemory.stats)
    users = blocks(AsyncMemory.users)
    health = blocks(AsyncMemory.health)
    snapshot = blocks(AsyncMemory.snapshot)
    diff = blocks(AsyncMemory.diff)
    restore = blocks(AsyncMemory.restore)
    fork = blocks(AsyncMemory.fork)
    gc = blocks(AsyncMemory.gc)
    export = blocks(AsyncMemory.export)
    import_ = blocks(AsyncMemory.import_)
    backup = blocks(AsyncMemory.backup)
    doctor = blocks(AsyncMemory.doctor)
    open = blocks(AsyncMemory.open)
    list = blocks(AsyncMemory.list)  # last: in this class it now hides the built-in name

    def session(self, session_id: str, *, user: str | None = None) -> Session:
        """Return the working memory of a conversation: messages, read within a budget of tokens."""
        return Session(self.asynchronous.session(session_id, user=user))

    @property
    def review(self) -> Review:
        """What waits for a decision: facts to approve, and messages that are held back."""
        return Review(self.asynchronous.review)

    @contextmanager
    def at(self, moment: Moment | int | Time) -> Iterator[Memory]:
        """Read the memory as it was at a moment, within a ``with`` block."""
        past = object.__new__(type(self))
        Blocking.__init__(past, wait_for(self.asynchronous.at(moment)))
        with past:
            yield past

    @property
    def address(self) -> str:
        """The address, without a password."""
        return self.asynchronous.address

    @property
    def config(self) -> Config:
        """How the memory works."""
        return self.asynchronous.config

    @property
    def events(self) -> EventStream:
        """The stream of what happens in the memory, to subscribe to; called on another thread."""
        return self.asynchronous.events

    def close(self) -> None:
        """Write what waits to be written, and close what was opened."""
        wait_for(self.asynchronous.close())
