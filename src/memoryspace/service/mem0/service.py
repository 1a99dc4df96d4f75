"""``Mem0MemoryService``: mem0 as a memory service, hosted or open source, 1.x or 2.x.

mem0 assigns the id and the time of every memory. What it does not support, such as comparing
versions or importance, raises an error. User and session ids that mem0 would change or read as a
wildcard are rejected, so that memories are never reached under another name.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace as change

from ...errors import InvalidInput, StoreError, UnknownMemory
from ...events import EventStream
from ...loops import PerLoop
from ...record import RESERVED_PREFIX, Scope
from ..base import DEFAULT_SESSION, Filters, MemoryService
from ..reading.arguments import as_ids, check_own, least_relevance, not_started
from ..reading.filters import (
    DEFAULT_HITS,
    FOR_LIST,
    FOR_SEARCH,
    MOST_HITS,
    CheckedFilters,
    count_in,
    read,
)
from ..settings import ServiceSettings
from ..values.forms import query_text
from ..values.memory import QUARANTINED, MemoryItem, Said
from ..values.receipt import Receipt
from ..values.results import Deleted, Erasure, MemoryHit, Page
from ..writing.admission import SUSPICION, Admission
from ..writing.secrecy import Policy
from . import opening
from .calls import Mem0Calls
from .forgetting import Mem0Eraser
from .reading import Mem0Reader, page_of, place
from .writing import Mem0Writer, as_given

_PROBE = {"user_id": RESERVED_PREFIX + "health"}


class Mem0MemoryService(MemoryService):
    """Long-term memory in mem0.

    Args:
        client: An ``AsyncMemoryClient``, an ``AsyncMemory``, or an object with their coroutines.
            The caller closes it.
        api_key: The key of mem0's platform, which is used if neither ``client`` nor ``config`` is
            given; by default the variable ``MEM0_API_KEY``.
        host: The address of the platform.
        config: Opens an ``AsyncMemory``, as mem0's ``from_config`` does.
        infer: Store what mem0's model derives from messages; otherwise store them verbatim.
        quarantine: Store text that looks like instructions to a model verbatim, and do not recall
            it.
        secrets: As in ``ServiceSettings``. mem0's model never sees a secret.
        events: Where events are emitted.
        clock: The current time.

    Raises:
        InvalidInput: If several of ``client``, ``config`` and the platform's arguments are given.
        MissingExtra: If mem0 is needed and not installed.

    Example:
        async with Mem0MemoryService(api_key="...") as service:
            await service.add_memory("ann", "I live in Rome")
    """

    def __init__(
        self,
        client: Any = None,
        *,
        api_key: str | None = None,
        host: str | None = None,
        config: Mapping[str, Any] | None = None,
        infer: bool = True,
        quarantine: bool = True,
        secrets: Policy = "keep",
        events: EventStream | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if client is not None and (config is not None or api_key is not None or host is not None):
            raise InvalidInput("pass client= or config=/api_key=/host=, not both")
        if config is not None and (api_key is not None or host is not None):
            raise InvalidInput("pass config= for an open-source memory or api_key=/host=, not both")
        if client is None:
            opening.check_installed()
        self.events = EventStream(clock=clock) if events is None else events
        self._client, self._config = client, config
        self._api_key, self._host = api_key, host
        self._infer, self._quarantine = infer, quarantine
        self._clock = clock
        settings = ServiceSettings(embedder=None, quarantine=quarantine, secrets=secrets)
        self._admission = Admission(settings)
        self._opened: Any = None
        self._calls: Mem0Calls | None = None
        self._changing = PerLoop(asyncio.Lock)

    @property
    def dropped(self) -> int:
        """How many memories of other owners mem0 returned since the start; all were dropped."""
        return 0 if self._calls is None else self._calls.dropped

    # -- lifecycle ---------------------------------------------------------------------------------

    async def start(self) -> None:
        async with self._changing.get():
            if self._calls is not None:
                return
            opening.quieten()
            if self._client is None:
                self._opened = await asyncio.to_thread(self._open)
            client = self._opened if self._client is None else self._client
            try:
                self._use(Mem0Calls(client, events=self.events))
            except BaseException:
                await self._close()
                raise

    async def stop(self) -> None:
        async with self._changing.get():
            self._calls = None
            await self._close()

    async def health(self) -> bool:
        if self._calls is None:
            return False
        try:
            await self._calls.everything(_PROBE)
        except (StoreError, OSError):
            return False
        return True

    def _open(self) -> Any:
        if self._config is not None:
            return opening.open_memory(self._config)
        return opening.open_platform(self._api_key, self._host)

    def _use(self, calls: Mem0Calls) -> None:
        self._reading = Mem0Reader(calls, quarantine=self._quarantine)
        self._writing = Mem0Writer(calls, infer=self._infer, events=self.events)
        self._forgetting = Mem0Eraser(calls, self._reading)
        self._calls = calls

    async def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opening.close(opened)

    # -- writing -----------------------------------------------------------------------------------

    async def add_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        session_id: str | None = None,
        *,
        marks: str | Sequence[str] | None = None,
    ) -> Receipt:
        """Add messages to the end of a session (``"default"`` if none is given).

        Return mem0's ids of the new memories. The platform of mem0 2.x works in the background and
        returns none; with ``infer``, there may be more or fewer than messages. mem0 has no marks.
        """
        if marks is not None:
            raise InvalidInput("mem0 does not support marks: use metadata instead")
        session = DEFAULT_SESSION if session_id is None else session_id
        scope, now = self._scope(user_id, session), self._clock()
        memories = await self._admission.admit(scope, messages, now)
        added = await self._writing.add({"user_id": user_id, "run_id": session}, memories, now)
        held_back = [each.id for each in memories if each.is_quarantined]
        if held_back:
            self.events.emit("memories_quarantined", scope=scope, ids=held_back)
        reasons = {each.id: str(each.details.get(SUSPICION, "")) for each in memories}
        return Receipt(
            added,
            held_back={each: reasons[each] for each in held_back},
            is_indexed=bool(added) or not memories,
        )

    async def update(
        self,
        user_id: str,
        memory_id: str,
        value: Said | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        marks: str | Sequence[str] | None = None,
        version: int | None = None,
        session_id: str | None = None,
    ) -> MemoryItem:
        """Change a memory and return its new version; the old text stays in ``history``.

        mem0 has no conditional writes: ``version`` is rejected and the last writer wins.
        """
        scope = self._scope(user_id, session_id)
        if not (version is None and importance is None and marks is None):
            raise InvalidInput(
                "mem0 does not support importance, marks and version: leave them out"
            )
        if value is None and metadata is None:
            raise InvalidInput("update() needs something to change: pass value or metadata")
        memory = await self._known(scope, memory_id)
        await self._writing.update(self._admission.edited(memory, value, metadata))
        return (await self.history(user_id, memory_id))[-1]

    async def release(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> list[str]:
        """Release memories from quarantine; return their ids, which may be new ones."""
        scope = self._scope(user_id, session_id)
        released: list[str] = []
        for memory_id in as_ids(memory_ids):
            memory = await self._known(scope, memory_id)
            if memory.is_quarantined:
                released += await self._released(memory)
        return released

    async def _released(self, memory: MemoryItem) -> list[str]:
        free = change(memory, marks=memory.marks - {QUARANTINED})
        if not await self._reading.is_kept_apart(memory):
            await self._writing.update(free)
            return [memory.id]
        ids = {"user_id": memory.user_id, "run_id": memory.session_id}
        added = await self._writing.keep(ids, [as_given(free)], self._clock())
        await self._forgetting.some(
            memory.user_id, [memory.id], None
        )  # written first, then removed
        return added

    # -- reading -----------------------------------------------------------------------------------

    async def search_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        filters: Filters | None = None,
        *,
        top_k: int | None = None,
    ) -> list[Said]:
        """Return the best matches for the last message, best first, ties in the order of writing.

        A memory that mem0 derived is a ``Message`` with its id, score and time in the metadata.
        """
        self._scope(user_id, None)
        asked = read(filters, also=FOR_SEARCH).with_top_k(top_k)
        hits = await self._hits(user_id, messages, asked)
        hits.sort(key=lambda hit: (-hit.score, place(hit.memory)))
        return [_said(hit.memory, hit.score) for hit in hits]

    async def search(
        self,
        user_id: str,
        query: Sequence[Said] | Said,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        neighbours: bool = True,
        explain: bool = False,
        now: float | None = None,
        min_relevance: float | None = None,
    ) -> list[MemoryHit]:
        """Return the best memories with mem0's scores, best first.

        mem0 ranks, so ``neighbours``, ``explain`` and ``now`` have no effect.
        """
        self._scope(user_id, None)
        asked = read(filters, also=("top_k", "min_score")).with_top_k(top_k, DEFAULT_HITS)
        least = least_relevance(min_relevance, asked.min_score)
        asked = change(asked, min_score=least if least else asked.min_score)
        return await self._hits(user_id, query, asked)

    async def _hits(
        self, user_id: str, said: Sequence[Said] | Said, asked: CheckedFilters
    ) -> list[MemoryHit]:
        text = query_text(said)
        if not text.strip():
            return []
        return await self._reading.hits(user_id, text, asked.hits, asked)

    async def list_memory(self, user_id: str, filters: Filters | None = None) -> list[Said]:
        """Return one page of memories in the order of writing. It reads all of them."""
        self._scope(user_id, None)
        asked = read(filters, also=FOR_LIST)
        memories = await self._reading.select(user_id, asked)
        first = (asked.page_num - 1) * asked.page_size
        return [_said(each, None) for each in memories[first : first + asked.page_size]]

    async def page(
        self,
        user_id: str,
        *,
        cursor: str | None = None,
        limit: int = 50,
        newest: bool = False,
        filters: Filters | None = None,
    ) -> Page:
        self._scope(user_id, None)
        memories = await self._reading.select(user_id, read(filters))
        return page_of(memories, cursor, count_in("limit", limit, MOST_HITS), newest=newest)

    async def count(self, user_id: str, filters: Filters | None = None) -> int:
        self._scope(user_id, None)
        return len(await self._reading.select(user_id, read(filters)))

    async def quarantined(self, user_id: str) -> list[MemoryItem]:
        """Return the quarantined memories for review, in the order of writing."""
        self._scope(user_id, None)
        memories = await self._reading.select(user_id, read({"quarantined": True}))
        return [each for each in memories if each.is_quarantined]

    async def get(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> MemoryItem | None:
        scope = self._scope(user_id, session_id)
        return await self._reading.find(user_id, memory_id, scope.session)

    async def history(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> list[MemoryItem]:
        """Return every version of a memory, oldest first; of old ones mem0 keeps only the text."""
        memory = await self.get(user_id, memory_id, session_id=session_id)
        return [] if memory is None else await self._reading.versions(memory)

    # -- forgetting --------------------------------------------------------------------------------

    async def delete_memory(self, user_id: str, session_id: str | None = None) -> Deleted:
        scope = self._scope(user_id, session_id)
        return self._report(scope, await self._forgetting.all_of(user_id, session_id))

    async def delete(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> Deleted:
        scope = self._scope(user_id, session_id)
        ids = as_ids(memory_ids)
        return self._report(scope, await self._forgetting.some(user_id, ids, scope.session))

    async def verify_erasure(self, user_id: str) -> Erasure:
        """Count what is left of a user: memories, and the last messages of an open-source memory.

        Data that the platform does not expose cannot be checked.
        """
        self._scope(user_id, None)
        return await self._forgetting.left_of(user_id)

    def _report(self, scope: Scope, deleted: Deleted) -> Deleted:
        self.events.emit("memories_deleted", scope=scope, ids=deleted.ids)
        return deleted

    # -- arguments ---------------------------------------------------------------------------------

    def _scope(self, user_id: str, session_id: str | None) -> Scope:
        if self._calls is None:
            raise not_started(self)
        check_entity("user id", user_id)
        if session_id is not None:
            check_entity("session id", session_id)
        return Scope(user_id, session_id)

    async def _known(self, scope: Scope, memory_id: str) -> MemoryItem:
        memory = await self._reading.find(scope.user, memory_id, scope.session)
        if memory is None:
            raise UnknownMemory(f"user {scope.user!r} has no memory {memory_id!r}")
        return memory


def check_entity(what: str, value: str) -> str:
    """Return an id that mem0 stores unchanged; raise ``InvalidInput`` for any other.

    mem0 strips or rejects white space in ids, and reads ``*`` as a wildcard.
    """
    check_own(what, value)
    if value == "*" or any(sign.isspace() for sign in value):
        raise InvalidInput(
            f"{what} {value!r} cannot be used with mem0: it must have no white space and not be '*'"
        )
    return value


def _said(memory: MemoryItem, score: float | None) -> Said:
    said = memory.said()
    if said is memory.value:
        return said
    assert not isinstance(said, str)
    facts: dict[str, Any] = {"mem0_id": memory.id, "created_at": memory.created_at}
    if score is not None:
        facts["score"] = score
    _metadata_of(said).update(facts)
    return said


def _metadata_of(said: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = said.metadata
    return metadata
