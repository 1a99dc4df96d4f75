"""``Mem0Calls``: the single entry point to a mem0 client of any version and kind.

Every call that reads or deletes several memories names their owner, and the results are checked
again: a vector store ignores a filter that it does not know. Errors are ours and contain no text of
users; mem0's error is their cause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import MemorySpaceError, StoreError, StoreUnavailable
from ...events import EventStream
from .serializing import CallSerializer
from .style import CallStyle, style_of

logger = logging.getLogger(__name__)

Ids: TypeAlias = Mapping[str, str]  # any of user_id, agent_id and run_id
Mem0Item: TypeAlias = dict[str, Any]  # a memory in mem0's form

PAGE = 100  # the platform's largest page
FIRST_LIMIT = 1000

_TRANSIENT = {
    "NetworkError",
    "RateLimitError",
    "TransportError",
}  # names: the package may be absent
_BUSY = {408, 425, 429, 500, 502, 503, 504}


class Mem0Calls:
    """Calls a client in its own style. ``dropped`` counts memories of other owners."""

    def __init__(self, client: Any, *, events: EventStream | None = None) -> None:
        self.client = client
        self.style: CallStyle = style_of(client)
        self.dropped = 0
        self._events = EventStream() if events is None else events
        self._serializer = CallSerializer(client)

    async def add(
        self,
        ids: Ids,
        messages: Sequence[Mapping[str, str]],
        *,
        infer: bool,
        metadata: Mapping[str, Any] | None = None,
        memory_type: str | None = None,
    ) -> dict[str, Any]:
        """Send messages; return mem0's answer, with the new memories under ``results``.

        The platform of mem0 2.x answers before it is done and returns no memories.
        """
        options: dict[str, Any] = {"infer": infer, **ids}
        if metadata:
            options["metadata"] = dict(metadata)
        if memory_type is not None:
            options["memory_type"] = memory_type
        if self.style.async_mode:
            options["async_mode"] = False
        answer = await self._call("add", [dict(each) for each in messages], **options)
        rest = answer if isinstance(answer, dict) else {}
        return {**rest, "results": _results(answer)}

    async def search(
        self, ids: Ids, query: str, limit: int, *, threshold: float | None = None
    ) -> dict[str, Any]:
        """Return matches under ``results``, and relations of a graph under ``relations``."""
        options: dict[str, Any] = {self.style.limit: limit}
        if threshold is not None:
            options["threshold"] = threshold
        scopes = self._scopes(ids)
        answers = await asyncio.gather(
            *(self._call("search", query, **options, **scope) for scope in scopes)
        )
        found: dict[str, Mem0Item] = {}
        relations: list[Any] = []
        for answer in answers:
            found.update((each["id"], each) for each in self._own(ids, _results(answer)))
            relations += (answer.get("relations") or []) if isinstance(answer, dict) else []
        return {"results": list(found.values()), "relations": relations}

    async def everything(self, ids: Ids, *, expired: bool = False) -> list[Mem0Item]:
        """Return all memories, in no order; with ``expired``, expired ones too."""
        options = {"show_expired": True} if expired and self.style.show_expired else {}
        found: dict[str, Mem0Item] = {}
        for scope in self._scopes(ids):
            reading = self._pages if self.style.hosted else self._at_once
            found.update((each["id"], each) for each in await reading(ids, {**scope, **options}))
        return list(found.values())

    async def having(self, ids: Ids, key: str, value: str) -> list[Mem0Item]:
        """Return the memories with this item of metadata."""
        wanted = {"metadata": {key: value}} if self.style.hosted else {key: value}
        found: list[Mem0Item] = []
        for scope in self._scopes(ids):
            answer = await self._call("get_all", **_narrowed(scope, wanted))
            found += self._own(ids, _results(answer))
        return [each for each in found if (each.get("metadata") or {}).get(key) == value]

    async def get(self, memory_id: str) -> Mem0Item | None:
        """Return a memory of any owner: the caller checks."""
        try:
            answer = await self._call("get", memory_id)
        except StoreError as error:
            if _is_missing(error.__cause__):
                return None
            raise
        return answer if isinstance(answer, dict) and "id" in answer else None

    async def update(self, memory_id: str, text: str, metadata: Mapping[str, Any]) -> None:
        """Replace a memory's text and all of its metadata, as mem0 1.x does."""
        await self._call("update", memory_id, **{self.style.text: text}, metadata=dict(metadata))

    async def delete(self, memory_id: str) -> None:
        """Delete a memory of any owner: the caller has checked."""
        await self._call("delete", memory_id)

    async def delete_all(self, ids: Ids) -> None:
        """Delete the memories with all of these ids. Some may be left: the caller checks."""
        await self._call("delete_all", **ids)

    async def history(self, memory_id: str) -> list[Mem0Item]:
        """Return the events of a memory, oldest first."""
        events = _results(await self._call("history", memory_id))
        return sorted(
            events, key=lambda each: str(each.get("updated_at") or each.get("created_at"))
        )

    def _scopes(self, ids: Ids) -> list[dict[str, Any]]:
        """Return the keywords that select the owner, one set for each call that is needed."""
        if not self.style.ids_in_filters:
            return [dict(ids)]
        if not self.style.hosted:
            return [{"filters": dict(ids)}]
        parts = [{key: value} for key, value in ids.items()]
        scopes = [{"filters": {"AND": parts}}]
        if "run_id" not in ids:  # the platform reads a missing run_id as "no run"
            scopes.append({"filters": {"AND": [*parts, {"run_id": "*"}]}})
        return scopes

    async def _pages(self, ids: Ids, scope: Mapping[str, Any]) -> list[Mem0Item]:
        found: dict[str, Mem0Item] = {}
        page = 1
        while True:
            answer = await self._call("get_all", page=page, page_size=PAGE, **scope)
            results = _results(answer)
            new = {each["id"]: each for each in results if each["id"] not in found}
            found.update(new)
            if not new or _is_last(answer, len(results)):
                return list(self._own(ids, found.values()))
            page += 1

    async def _at_once(self, ids: Ids, scope: Mapping[str, Any]) -> list[Mem0Item]:
        limit = FIRST_LIMIT
        while True:  # there are no pages: request more than there are
            results = _results(await self._call("get_all", **{self.style.limit: limit}, **scope))
            if len(results) < limit:
                return list(self._own(ids, results))
            limit *= 4

    def _own(self, ids: Ids, found: Iterable[Mem0Item]) -> Iterator[Mem0Item]:
        foreign = 0
        for each in found:
            if all(self._fits(each, key, value) for key, value in ids.items()):
                yield each
            else:
                foreign += 1
        if foreign:
            self.dropped += foreign
            logger.warning("mem0 returned %d memories of other owners; dropped", foreign)
            self._events.emit("foreign_memories_dropped", ids=dict(ids), count=foreign)

    def _fits(self, found: Mem0Item, key: str, value: str) -> bool:
        has = found.get(key)
        return has == value or (has is None and self.style.hosted)  # the platform may omit ids

    async def _call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        try:
            return await self._serializer.run(getattr(self.client, verb)(*arguments, **options))
        except Exception as error:
            raise _translated(verb, error) from error


def _translated(verb: str, error: Exception) -> MemorySpaceError:
    """Return our error for one of mem0's, without its message, which may contain users' text."""
    for each in _causes(error):
        if isinstance(each, MemorySpaceError):
            return each  # raised by one of our models or embedders
    if any(map(_is_transient, _causes(error))):
        return StoreUnavailable(f"mem0 cannot be reached to {verb} ({type(error).__name__})")
    return StoreError(f"mem0 failed to {verb} ({type(error).__name__}); see the error's cause")


def _is_transient(error: BaseException) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _TRANSIENT) or _status(error) in _BUSY or isinstance(error, OSError)


def _causes(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(10):
        if each is None:
            return
        yield each
        each = each.__cause__


def _is_missing(error: BaseException | None) -> bool:
    return _status(error) == 404 or type(error).__name__ == "MemoryNotFoundError"


def _status(error: BaseException | None) -> object:
    return getattr(getattr(error, "response", None), "status_code", None)


def _results(answer: Any) -> list[Mem0Item]:
    """Return the memories of an answer: a list, or a list under ``results``."""
    found = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(found, list):
        return []
    return [each for each in found if isinstance(each, dict) and "id" in each]


def _is_last(answer: Any, size: int) -> bool:
    if isinstance(answer, dict) and "next" in answer:
        return answer["next"] is None
    return size < PAGE


def _narrowed(scope: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    filters = dict(scope.get("filters") or {})
    if "AND" in filters:
        filters["AND"] = [*filters["AND"], dict(wanted)]
    else:
        filters.update(wanted)
    return {**scope, "filters": filters}
