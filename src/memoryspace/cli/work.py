"""``Work``: what every command works with: the memory that is meant, and the screen."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import NotOffered
from .exits import NothingFound
from .screen import Screen

if TYPE_CHECKING:
    from ..configuring import Gathered
    from ..door import Config, Memory
    from ..service.stored import StoredMemoryService

T = TypeVar("T")

LOGIN = "your login name"


class Work:
    """The memory and the user that a command is about, and its screen.

    Args:
        address: Where the memory is.
        user: Whose memory it is.
        as_json: Write JSON.
        quiet: Write results and errors only.
        config_file: A file of settings.
        moment: A moment of the past to look at: the number of a change, or a time.
    """

    def __init__(
        self,
        *,
        address: str | None,
        user: str | None,
        as_json: bool,
        quiet: bool,
        config_file: Path | None,
        moment: str | None,
    ) -> None:
        self.screen = Screen(as_json=as_json, quiet=quiet)
        self._given = {"address": address, "user": user}
        self.config_file = config_file
        self._moment = moment

    def settings(self) -> Gathered[Config]:
        """Return the settings, and where each is from; the user is never missing."""
        from msgspec.structs import replace as change

        from ..door import load_config

        found = load_config(self._given, file=self.config_file)
        if found.settings.user is not None:
            return found
        named = change(found.settings, user=getpass.getuser())
        return change(found, settings=named, sources={**found.sources, "user": LOGIN})

    @property
    def named_user(self) -> str | None:
        """The user that the command line names."""
        return self._given["user"]

    def user(self) -> str:
        """Return whose memory it is."""
        return str(self.settings().settings.user)

    def place(self) -> str:
        """Return the address of the memory."""
        from ..door.home import default_folder

        address = self.settings().settings.address
        return str(default_folder()) if address is None else address

    def wait(
        self, memory: Memory, work: Callable[[StoredMemoryService], Coroutine[Any, Any, T]]
    ) -> T:
        """Return what becomes of a work on the service of a memory.

        Raises:
            NotOffered: The memory is on a server.
        """
        from ..door.memory import is_server
        from ..loops import wait_for

        if is_server(None, memory.config):
            raise NotOffered("this is not offered over HTTP; do it where the server runs")
        memory.open()
        return wait_for(work(memory.asynchronous.service))

    @contextmanager
    def memory(self, *, makes: bool = False) -> Iterator[Memory]:
        """Open the memory, or look at its past if a moment is named.

        Args:
            makes: Whether to make a folder that is not there.

        Raises:
            NothingFound: There is no such folder.
        """
        from ..door import Memory
        from .moments import moment_of

        config = self.settings().settings
        if not makes:
            _check_is_there(self.place())
        with Memory(config=config) as memory:
            if self._moment is None:
                yield memory
                return
            with memory.at(moment_of(self._moment)) as past:
                yield past


def _check_is_there(place: str) -> None:
    """A mistyped folder must not become an empty memory that answers every question with none."""
    is_folder = "://" not in place and not place.endswith(":")
    if is_folder and not Path(place).expanduser().exists():
        raise NothingFound(f"there is no memory in {place} yet; `memoryspace add` makes one there")
