"""``Mem0Calls``: the one door to a mem0 client, whichever version and kind it is.

Whose memories are meant stands in every call that reads or removes more than one, and what comes
back is checked again: a vector store that does not know a filter ignores it. Errors are ours and
hold no text of a user; mem0's own is their cause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import MemorySpaceError, StoreError, StoreUnavailable
from ...events import EventStream
from .style import Style, style_of
from .turns import Turns

logger = logging.getLogger(__name__)

Ids: TypeAlias = Mapping[str, str]  # user_id, agent_id, run_id: those that are given
Found: TypeAlias = dict[str, Any]  # a memory as mem0 hands it out

PAGE = 100  # of the platform, at most
FIRST_LIMIT = 1000

_PASSING = {"NetworkError", "RateLimitError", "TransportError"}  # names: the package may be absent
_BUSY = {408, 425, 429, 500, 502, 503, 504}


class Mem0Calls:
    """A client, called as it wants to be. ``dropped`` counts what was somebody else's."""

    def __init__(self, client: Any, *, events: EventStream | None = None) -> None:
        self.client = client
        self.style: Style = style_of(client)
        self.dropped = 0
        self._events = EventStream() if events is None else events
        self._turns = Turns(client)

    async def add(
        self,
        ids: Ids,
        messages: Sequence[Mapping[str, str]],
        *,
        infer: bool,
        metadata: Mapping[str, Any] | None = None,
        memory_type: str | None = None,
    ) -> dict[str, Any]:
        """Hand messages over; return mem0's answer, which names what it remembered under results.

        The platform of mem0 2.x answers before it is done, and names nothing.
        """
        options: dict[str, Any] = {"infer": infer, **ids}
        if metadata:
            options["metadata"] = dict(metadata)
        if memory_type is not None:
            options["memory_type"] = memory_type
        if self.style.async_mode:
            options["async_mode"] = False
        answer = await self._ask("add", [dict(each) for each in messages], **options)
        rest = answer if isinstance(answer, dict) else {}
        return {**rest, "results": _results(answer)}

    async def search(
        self, ids: Ids, query: str, limit: int, *, threshold: float | None = None
    ) -> dict[str, Any]:
        """Return what answers a question under results, and relations of a graph if there are."""
        options: dict[str, Any] = {self.style.limit: limit}
        if threshold is not None:
            options["threshold"] = threshold
        scopes = self._scopes(ids)
        answers = await asyncio.gather(
            *(self._ask("search", query, **options, **scope) for scope in scopes)
        )
        found: dict[str, Found] = {}
        relations: list[Any] = []
        for answer in answers:
            found.update((each["id"], each) for each in self._own(ids, _results(answer)))
            relations += (answer.get("relations") or []) if isinstance(answer, dict) else []
        return {"results": list(found.values()), "relations": relations}

    async def everything(self, ids: Ids, *, expired: bool = False) -> list[Found]:
        """Return all memories, in no order; with ``expired``, those past their date too."""
        options = {"show_expired": True} if expired and self.style.show_expired else {}
        found: dict[str, Found] = {}
        for scope in self._scopes(ids):
            reading = self._pages if self.style.hosted else self._at_once
            found.update((each["id"], each) for each in await reading(ids, {**scope, **options}))
        return list(found.values())

    async def having(self, ids: Ids, key: str, value: str) -> list[Found]:
        """Return the memories with this item of metadata."""
        wanted = {"metadata": {key: value}} if self.style.hosted else {key: value}
        found: list[Found] = []
        for scope in self._scopes(ids):
            answer = await self._ask("get_all", **_narrowed(scope, wanted))
            found += self._own(ids, _results(answer))
        return [each for each in found if (each.get("metadata") or {}).get(key) == value]

    async def get(self, memory_id: str) -> Found | None:
        """Return a memory, whoever it belongs to: the caller looks."""
        try:
            answer = await self._ask("get", memory_id)
        except StoreError as error:
            if _is_missing(error.__cause__):
                return None
            raise
        return answer if isinstance(answer, dict) and "id" in answer else None

    async def update(self, memory_id: str, text: str, metadata: Mapping[str, Any]) -> None:
        """Give a memory a new text and new metadata: all of it, for mem0 1.x keeps no other."""
        await self._ask("update", memory_id, **{self.style.text: text}, metadata=dict(metadata))

    async def delete(self, memory_id: str) -> None:
        """Remove a memory, whoever it belongs to: the caller has looked."""
        await self._ask("delete", memory_id)

    async def delete_all(self, ids: Ids) -> None:
        """Remove what belongs to all of these; of what is left the caller sees to it."""
        await self._ask("delete_all", **ids)

    async def history(self, memory_id: str) -> list[Found]:
        """Return what happened to a memory, the oldest first."""
        events = _results(await self._ask("history", memory_id))
        return sorted(
            events, key=lambda each: str(each.get("updated_at") or each.get("created_at"))
        )

    def _scopes(self, ids: Ids) -> list[dict[str, Any]]:
        """Return the keywords that say whose memories are meant, for each call that it takes."""
        if not self.style.ids_in_filters:
            return [dict(ids)]
        if not self.style.hosted:
            return [{"filters": dict(ids)}]
        parts = [{key: value} for key, value in ids.items()]
        scopes = [{"filters": {"AND": parts}}]
        if "run_id" not in ids:  # on the platform, a run that is not named is no run at all
            scopes.append({"filters": {"AND": [*parts, {"run_id": "*"}]}})
        return scopes

    async def _pages(self, ids: Ids, scope: Mapping[str, Any]) -> list[Found]:
        found: dict[str, Found] = {}
        page = 1
        while True:
            answer = await self._ask("get_all", page=page, page_size=PAGE, **scope)
            results = _results(answer)
            new = {each["id"]: each for each in results if each["id"] not in found}
            found.update(new)
            if not new or _is_last(answer, len(results)):
                return list(self._own(ids, found.values()))
            page += 1

    async def _at_once(self, ids: Ids, scope: Mapping[str, Any]) -> list[Found]:
        limit = FIRST_LIMIT
        while True:  # there are no pages: ask for more than there are
            results = _results(await self._ask("get_all", **{self.style.limit: limit}, **scope))
            if len(results) < limit:
                return list(self._own(ids, results))
            limit *= 4

    def _own(self, ids: Ids, found: Iterable[Found]) -> Iterator[Found]:
        strange = 0
        for each in found:
            if all(self._fits(each, key, value) for key, value in ids.items()):
                yield each
            else:
                strange += 1
        if strange:
            self.dropped += strange
            logger.warning("mem0 returned %d memories that were not asked for; dropped", strange)
            self._events.emit("foreign_memories_dropped", ids=dict(ids), count=strange)

    def _fits(self, found: Found, key: str, value: str) -> bool:
        has = found.get(key)
        return has == value or (has is None and self.style.hosted)  # it may leave ids out

    async def _ask(self, verb: str, *arguments: Any, **options: Any) -> Any:
        try:
            return await self._turns.take(getattr(self.client, verb)(*arguments, **options))
        except Exception as error:
            raise _ours(verb, error) from error


def _ours(verb: str, error: Exception) -> MemorySpaceError:
    """Return the error that a caller of ours expects. mem0's message may hold a user's text."""
    for each in _causes(error):
        if isinstance(each, MemorySpaceError):
            return each  # of a model or an embedder of ours that mem0 was given
    if any(map(_may_pass, _causes(error))):
        return StoreUnavailable(f"mem0 cannot be reached to {verb} ({type(error).__name__})")
    return StoreError(f"mem0 failed to {verb} ({type(error).__name__}); its own error is the cause")


def _may_pass(error: BaseException) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _PASSING) or _status(error) in _BUSY or isinstance(error, OSError)


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


def _results(answer: Any) -> list[Found]:
    """Return the memories of an answer: in a list, or a list under results. Others are none."""
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
