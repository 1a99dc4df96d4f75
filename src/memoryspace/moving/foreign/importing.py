"""``import_foreign``: what other programs remember, added through a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path

from msgspec.structs import replace as change

from ...errors import ImportRefused, InvalidInput
from ...service.base import MemoryService
from ..leaving import check_user
from ..reports import ImportReport, Moved, Progress
from .agentscope import AGENTSCOPE, RUNTIME
from .chats import CHATGPT, CLAUDE
from .contract import Foreign, Importer
from .frameworks import LANGCHAIN, LANGGRAPH, OPENAI_AGENTS
from .mem0 import MEM0
from .reme import REME
from .text import TEXT

MOST_PROBLEMS = 20  # described in a report

_IMPORTERS = {
    each.name: each
    for each in (
        MEM0,
        AGENTSCOPE,
        RUNTIME,
        REME,
        LANGGRAPH,
        OPENAI_AGENTS,
        LANGCHAIN,
        CHATGPT,
        CLAUDE,
        TEXT,
    )
}


def importers() -> Mapping[str, Importer]:
    """Return the importers for other programs, by name.

    Example::

        for importer in importers().values():
            print(importer.name, "reads", importer.about)
    """
    return dict(_IMPORTERS)


async def import_foreign(
    service: MemoryService,
    name: str,
    source: str | Path,
    *,
    user: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Add what another program remembers to a service.

    It is added like any message: the service derives facts from it, keeps suspicious text apart and
    treats secrets by its settings. Every message has an id that is the same at the next reading, so
    an import that was interrupted is completed by repeating it. The source is only read.

    Args:
        service: A started service.
        name: An importer; ``importers()`` lists them.
        source: A path or an address, as the importer reads it.
        user: Whose memories they become, whoever the source names. Without it they belong to those
            whom the source names.
        progress: Called with a ``Moved`` after each part.

    Returns:
        The report. ``refused`` counts messages that the service did not accept, and ``problems``
        says why.

    Raises:
        InvalidInput: There is no such importer, or ``user`` is missing and the source names none.
        ImportRefused: The source is damaged, or not what the importer reads.
        MissingExtra: A package for reading the source is not installed.

    Example::

        report = await import_foreign(service, "chatgpt", "export.zip", user="ann")
    """
    importer = _importer(name)
    if user is not None:
        check_user(user)
    elif not importer.names_users:
        raise InvalidInput(f"{importer.about} does not say whose it is; pass user=")
    if not _is_there(str(source)):
        raise ImportRefused(f"{source}: there is no such file or folder")
    adding = _Adding(service, user)
    async for batch in importer.read(str(source)):
        await adding.add(batch)
        if progress is not None:
            done = adding.report.records
            progress(Moved("importing", done, None, "records", done))
    return adding.report


def _importer(name: str) -> Importer:
    found = _IMPORTERS.get(name)
    if found is None:
        near = get_close_matches(name, _IMPORTERS, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_IMPORTERS)}"
        raise InvalidInput(f"there is no importer {name!r}; {advice}")
    return found


def _is_there(source: str) -> bool:
    return "://" in source or Path(source).expanduser().exists()


class _Adding:
    """Adds messages and counts what becomes of them."""

    def __init__(self, service: MemoryService, user: str | None) -> None:
        self._service = service
        self._user = user
        self._users: set[str] = set()
        self._pending: dict[str, None] = {}
        self.report = ImportReport()

    async def add(self, batch: Sequence[Foreign]) -> None:
        """Add some messages: at once for each run of a session with the same marks."""
        for (user, session, marks), run in groupby(batch, key=self._place):
            if user is None:
                raise InvalidInput("the source does not say whose some memories are; pass user=")
            self._users.add(user)
            await self._add(user, session, marks, list(run))
        self.report = change(self.report, users=len(self._users), pending=tuple(self._pending))

    def _place(self, each: Foreign) -> tuple[str | None, str, frozenset[str]]:
        return self._user if self._user is not None else each.user, each.session, each.marks

    async def _add(
        self, user: str, session: str, marks: frozenset[str], run: Sequence[Foreign]
    ) -> None:
        try:
            receipt = await self._service.add_memory(
                user, [each.message for each in run], session, marks=sorted(marks) or None
            )
        except (InvalidInput, TypeError) as error:
            if len(run) == 1:
                self._refuse(user, session, error)
                return
            for each in run:  # the others are not to blame
                await self._add(user, session, marks, [each])
            return
        if receipt.pending:
            self._pending[user] = None
        was = self.report
        self.report = change(
            was,
            records=was.records + len(run),
            added=was.added + len(receipt),
            known=was.known + len(run) - len(receipt),
        )

    def _refuse(self, user: str, session: str, error: Exception) -> None:
        was = self.report
        problem = f"user {user!r}, session {session!r}: {error}"
        self.report = change(
            was,
            records=was.records + 1,
            refused=was.refused + 1,
            problems=(*was.problems, problem)[:MOST_PROBLEMS],
        )
