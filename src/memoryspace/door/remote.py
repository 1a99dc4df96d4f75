"""``RemoteMemory``: the verbs of the door on a memory server.

It gives the same answers and raises the same errors as a memory of this process. Writes carry an
idempotency key, so a request whose answer was lost is sent again without a second effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import msgspec

from ..context import LossReport
from ..errors import InvalidInput, NotOffered, NotStarted, StoreUnavailable, UnknownMemory
from ..events import EventStream
from ..message import Msg, new_id
from ..portable import portable
from ..record import Scope
from ..retrieval.hits import WhyNot
from ..service.reading.arguments import as_ids
from ..service.values.forms import body_of
from ..service.values.memory import RAW, MemoryItem
from ..service.values.receipt import Receipt
from ..service.values.results import Deleted, Status
from ..service.values.review import Decided, Proposals
from ..store.users import UserPage
from .address import shown
from .closing import closed_at_exit, no_longer_open
from .config import Config
from .http import Wire, place
from .memory import AsyncMemory, configured
from .messages import Addable, Time, as_msgs, as_said
from .recalls import Recall, Recalls
from .results import (
    Collected,
    Context,
    Diff,
    Erased,
    Memories,
    Moment,
    SearchResult,
    Stats,
)
from .review import AsyncReview
from .session import DEFAULT_BUDGET, AsyncSession

if TYPE_CHECKING:
    from ..care import BackupReport, Examination
    from ..moving import ExportReport, ImportReport, Progress

Filters = Mapping[str, Any]
Names = list[str]  # within the class, ``list`` is a verb


class RemoteMemory(AsyncMemory):
    """A memory on a server; ``AsyncMemory("http://…")`` makes it.

    Args:
        address: The address of the server.
        user: Whose memory calls are about that name no user.
        api_key: The key; by default that of ``MEMORYSPACE_API_KEY`` or of the configuration.
        config: The configuration.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        user: str | None = None,
        api_key: str | None = None,
        config: Config | None = None,
        settings: None = None,
        model: None = None,
    ) -> None:
        if settings is not None or model is not None:
            raise InvalidInput("settings and model are the server's: configure it where it runs")
        self.config = config = configured(config, user=user)
        where = config.address if address is None else address
        assert where is not None  # is_server found one
        self._address = shown(where)
        self._wire = Wire(where, config.api_key if api_key is None else api_key)
        self._events = EventStream()
        self._is_open = self._is_closed = False

    @property
    def events(self) -> EventStream:
        """A stream of this process; what happens on the server is at its address ``/v1/events``."""
        return self._events

    async def open(self) -> None:
        """Check that the server answers."""
        if self._is_closed:
            raise NotStarted("this memory is closed; open another one")
        if not self._is_open:
            self._is_open = True
            closed_at_exit(self)

    async def close(self) -> None:
        """Close the connections."""
        self._is_closed, self._is_open = True, False
        no_longer_open(self)
        await self._wire.close()

    # -- memories ----------------------------------------------------------------------------------

    async def add(
        self,
        messages: Addable | Sequence[Addable],
        *,
        user: str | None = None,
        session: str | None = None,
        marks: str | Sequence[str] | None = None,
        when: Time | None = None,
    ) -> Receipt:
        """Remember one message or several; see ``AsyncMemory.add``."""
        said = [_plain(each) for each in as_said(messages, when)]
        body = {"messages": said, "session": session, "marks": _several(marks)}
        answer = await self._ask(
            "POST", "/v1/memories", user, body, headers={"Idempotency-Key": new_id()}
        )
        return Receipt.from_dict(answer)

    async def get(
        self, memory_id: str, *, user: str | None = None, session: str | None = None
    ) -> MemoryItem | None:
        """Return a memory by its id, or ``None`` if there is none."""
        path, query = f"/v1/memories/{place(memory_id)}", {"session": session}
        try:
            return MemoryItem.from_dict(await self._ask("GET", path, user, query=query))
        except UnknownMemory:
            return None

    async def list(
        self,
        *,
        user: str | None = None,
        session: str | None = None,
        kind: str | Sequence[str] = RAW,
        limit: int = 50,
        newest: bool = True,
        cursor: str | None = None,
        filters: Filters | None = None,
    ) -> Memories:
        """Return one page of memories."""
        body = {
            "session": session,
            "kind": kind if isinstance(kind, str) else [*kind],
            "limit": limit,
            "newest": newest,
            "cursor": cursor,
            "filters": _filters(filters),
        }
        return Memories.from_dict(await self._ask("POST", "/v1/memories/list", user, body))

    async def update(
        self,
        memory_id: str,
        message: Addable | None = None,
        *,
        user: str | None = None,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        marks: str | Sequence[str] | None = None,
        version: int | None = None,
    ) -> MemoryItem:
        """Change a memory and return its new version."""
        said = message
        if message is not None and not isinstance(message, str):
            said = _plain(as_said(message)[0])
        body = {
            "message": said,
            "metadata": None if metadata is None else dict(metadata),
            "importance": importance,
            "marks": None if marks is None else _several(marks),
        }
        answer = await self._ask(
            "PATCH",
            f"/v1/memories/{place(memory_id)}",
            user,
            body,
            query={"session": session},
            headers={} if version is None else {"If-Match": f'"{version}"'},
            may_repeat=False,
        )
        return MemoryItem.from_dict(answer)

    async def delete(
        self,
        memory_ids: str | Sequence[str],
        *,
        user: str | None = None,
        session: str | None = None,
    ) -> Deleted:
        """Delete memories, with everything derived from them."""
        body = {"ids": as_ids(memory_ids), "session": session}
        return Deleted.from_dict(await self._ask("POST", "/v1/memories/delete", user, body))

    async def delete_session(self, session: str, *, user: str | None = None) -> Deleted:
        """Delete a conversation."""
        query = {"session": session}
        return Deleted.from_dict(await self._ask("DELETE", "/v1/sessions", user, query=query))

    async def delete_user(self, user: str) -> Erased:
        """Erase a user."""
        return Erased.from_dict(
            await self._ask("DELETE", "/v1/users", user, query={"confirm": user})
        )

    async def history(
        self, memory_id: str, *, user: str | None = None, session: str | None = None
    ) -> Memories:
        """Return every version of a memory, oldest first, the present one last."""
        path, query = f"/v1/history/{place(memory_id)}", {"session": session}
        return Memories.from_dict(await self._ask("GET", path, user, query=query))

    async def facts(
        self,
        *,
        user: str | None = None,
        as_of: Time | None = None,
        superseded: bool = False,
        limit: int = 100,
    ) -> Memories:
        """Return what is believed about a user, newest first."""
        query = {"as_of": _time(as_of), "superseded": superseded or None, "limit": limit}
        return Memories.from_dict(await self._ask("GET", "/v1/facts", user, query=query))

    async def sessions(self, *, user: str | None = None) -> Names:
        """Return the names of a user's conversations."""
        return Names((await self._ask("GET", "/v1/sessions", user))["items"])

    def session(self, session_id: str, *, user: str | None = None) -> AsyncSession:
        """Return the working memory of a conversation."""
        return RemoteSession(self, Scope(self._whose(user), session_id))

    @property
    def review(self) -> AsyncReview:
        """What waits for a decision."""
        return RemoteReview(self)

    async def settle(self, *, user: str | None = None) -> Status:
        """Finish now what is still being derived or embedded for a user."""
        return Status.from_dict(await self._ask("POST", "/v1/operations/settle", user))

    async def retry(self, *, user: str | None = None) -> int:
        """Start derivations again that failed for good; return how many."""
        return int((await self._ask("POST", "/v1/operations/retry", user))["restarted"])

    # -- recall ------------------------------------------------------------------------------------

    async def search(
        self,
        question: str,
        *,
        user: str | None = None,
        limit: int = 10,
        session: str | None = None,
        kind: str | Sequence[str] | None = None,
        filters: Filters | None = None,
        min_relevance: float | None = None,
        when: Time | None = None,
        explain: bool = True,
    ) -> SearchResult:
        """Return the memories that answer a question, best first."""
        body = {
            "question": question,
            "limit": limit,
            "session": session,
            "kind": kind if kind is None or isinstance(kind, str) else [*kind],
            "filters": _filters(filters),
            "min_relevance": min_relevance,
            "when": _time(when),
            "explain": explain,
        }
        return SearchResult.from_dict(await self._ask("POST", "/v1/search", user, body))

    async def context(
        self,
        question: str,
        *,
        user: str | None = None,
        max_tokens: int | None = None,
        session: str | None = None,
        filters: Filters | None = None,
        min_relevance: float | None = None,
        when: Time | None = None,
    ) -> Context:
        """Return the text to put into a prompt."""
        body = {
            "question": question,
            "max_tokens": max_tokens,
            "session": session,
            "filters": _filters(filters),
            "min_relevance": min_relevance,
            "when": _time(when),
        }
        return Context.from_dict(await self._ask("POST", "/v1/context", user, body))

    async def why_not(
        self,
        question: str,
        memory_id: str,
        *,
        user: str | None = None,
        limit: int = 10,
        session: str | None = None,
        filters: Filters | None = None,
        when: Time | None = None,
    ) -> WhyNot:
        """Explain why ``search`` does not return a memory."""
        body = {
            "question": question,
            "memory_id": memory_id,
            "limit": limit,
            "session": session,
            "filters": _filters(filters),
            "when": _time(when),
        }
        return WhyNot.from_dict(await self._ask("POST", "/v1/why-not", user, body))

    async def feedback(
        self, recall_id: str, used: str | Sequence[str], *, user: str | None = None
    ) -> Recall:
        """Say which memories of a search or context helped."""
        path = f"/v1/recalls/{place(recall_id)}/feedback"
        return Recall.from_dict(await self._ask("POST", path, user, {"used": _several(used)}))

    async def recalls(self, *, user: str | None = None, limit: int = 20) -> Recalls:
        """Return a user's recall log."""
        return Recalls.from_dict(
            await self._ask("GET", "/v1/recalls", user, query={"limit": limit})
        )

    async def never_recalled(self, *, user: str | None = None, limit: int = 50) -> Memories:
        """Return memories that no logged recall has returned, oldest first."""
        found = await self._ask("GET", "/v1/recalls/never", user, query={"limit": limit})
        return Memories.from_dict(found)

    # -- the memory as a whole ---------------------------------------------------------------------

    async def stats(self, *, user: str | None = None) -> Stats:
        """Return what the memory stands on and how much is remembered of a user."""
        return Stats.from_dict(await self._ask("GET", "/v1/stats", user))

    async def users(self, *, cursor: str | None = None, limit: int = 100) -> UserPage:
        """Return one page of the users who have memories."""
        query = {"cursor": cursor, "limit": limit}
        return UserPage.from_dict(await self._wire.ask("GET", "/v1/users", query=query))

    async def health(self) -> bool:
        """Return whether the server can serve."""
        try:
            answer = await self._wire.ask("GET", "/health/ready")
        except StoreUnavailable:
            return False
        return bool(answer["status"] == "ready")

    async def snapshot(self) -> Moment:
        """Write a checkpoint and return this moment."""
        return Moment.from_dict(await self._wire.ask("POST", "/v1/space/snapshot"))

    async def at(self, moment: Moment | int | Time) -> Self:
        """Not offered over HTTP."""
        self._local("at")

    async def fork(
        self, folder: str | PathLike[str], moment: Moment | int | Time | None = None
    ) -> Path:
        """Not offered over HTTP."""
        self._local("fork")

    async def export(
        self,
        target: str | PathLike[str],
        *,
        users: str | Sequence[str] | None = None,
        vectors: bool = False,
        progress: Progress | None = None,
    ) -> ExportReport:
        """Not offered over HTTP."""
        self._local("export")

    async def import_(
        self,
        source: str | PathLike[str],
        *,
        kind: str | None = None,
        user: str | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Not offered over HTTP."""
        self._local("import_")

    async def backup(
        self, target: str | PathLike[str], *, progress: Callable[..., None] | None = None
    ) -> BackupReport:
        """Not offered over HTTP."""
        self._local("backup")

    async def doctor(self, *, repair: bool = False) -> Examination:
        """Not offered over HTTP."""
        self._local("doctor")

    async def diff(
        self, before: Moment | int | Time, after: Moment | int | Time | None = None
    ) -> Diff:
        """Return which memories differ between two moments."""
        query = {"before": _moment(before), "after": None if after is None else _moment(after)}
        return Diff.from_dict(await self._wire.ask("GET", "/v1/space/diff", query=query))

    async def restore(self, moment: Moment | int | Time) -> Moment:
        """Make the memory what it was at a moment."""
        body = {"moment": _moment(moment)}
        answer = await self._wire.ask("POST", "/v1/space/restore", body=body, may_repeat=False)
        return Moment.from_dict(answer)

    async def gc(self, *, explain: bool = False) -> Collected:
        """Collect garbage now, or only explain what would be freed."""
        answer = await self._wire.ask("POST", "/v1/space/gc", body={"explain": explain})
        return Collected.from_dict(answer)

    def _local(self, verb: str) -> NoReturn:
        raise NotOffered(f"{verb}() is not offered over HTTP; call it where the server runs")

    async def _ask(
        self,
        method: str,
        path: str,
        user: str | None,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        may_repeat: bool = True,
    ) -> Any:
        await self.open()
        whose = {"user": self.config.user if user is None else user}
        return await self._wire.ask(
            method,
            path,
            query={**whose, **(query or {})},
            body=body,
            headers=headers,
            may_repeat=may_repeat,
        )


class RemoteSession(AsyncSession):
    """A conversation's working memory on a server."""

    def __init__(self, memory: RemoteMemory, scope: Scope) -> None:
        assert scope.session is not None  # RemoteMemory.session names one
        self._remote = memory
        self._scope = scope
        self._path = f"/v1/sessions/{place(scope.session)}"
        self._report: LossReport | None = None

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return str(self._scope.session)

    @property
    def user(self) -> str:
        """The user whose conversation it is."""
        return self._scope.user

    async def add(
        self, messages: Addable | Sequence[Addable], *, marks: str | Sequence[str] | None = None
    ) -> list[str]:
        """Append messages and return their ids."""
        said = [_plain(each) for each in as_msgs(messages)]
        body = {"messages": said, "marks": _several(marks)}
        return list((await self._ask("POST", "/messages", body))["items"])

    async def messages(
        self, *, max_tokens: int = DEFAULT_BUDGET, mark: str | None = None
    ) -> list[Msg]:
        """Return the conversation within a budget, older parts summarised."""
        query = {"max_tokens": max_tokens, "mark": mark}
        answer = await self._ask("GET", "/messages", query=query)
        if answer["report"] is not None:
            self._report = msgspec.convert(answer["report"], LossReport)
        return [Msg.from_dict(each) for each in answer["messages"]]

    async def all_messages(self) -> list[Msg]:
        """Return every message, whatever the budget."""
        answer = await self._ask("GET", "/messages", query={"everything": True})
        return [Msg.from_dict(each) for each in answer["messages"]]

    async def expand(self, handle: str) -> str:
        """Return what was paged out under a handle, or the message with this id, as text."""
        return str((await self._ask("POST", "/expand", {"handle": handle}))["text"])

    async def mark(self, mark: str, ids: str | Sequence[str]) -> int:
        """Add a mark to messages and return how many got it."""
        body = {"mark": mark, "ids": _several(ids)}
        return int((await self._ask("POST", "/marks", body))["changed"])

    async def unmark(self, mark: str, ids: str | Sequence[str] | None = None) -> int:
        """Remove a mark from messages, or from all, and return how many lost it."""
        body = {"mark": mark, "ids": None if ids is None else _several(ids), "remove": True}
        return int((await self._ask("POST", "/marks", body))["changed"])

    async def delete(self, ids: str | Sequence[str]) -> int:
        """Delete messages and return how many were there."""
        body = {"ids": _several(ids)}
        return int((await self._ask("POST", "/messages/delete", body))["changed"])

    async def clear(self) -> None:
        """Delete the whole conversation, with its summary and what was paged out of it."""
        await self._ask("DELETE", "/messages")

    async def size(self) -> int:
        """Return the number of messages."""
        return len(await self.all_messages())

    def report(self) -> LossReport | None:
        """Return what the last compaction left out, as read with ``messages``."""
        return self._report

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        return await self._remote._ask(method, self._path + path, self.user, body, query=query)


class RemoteReview(AsyncReview):
    """What waits for a decision, on a server."""

    def __init__(self, memory: RemoteMemory) -> None:
        self._remote = memory

    async def waiting(
        self, *, user: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Proposals:
        """Return facts that wait for approval, oldest first."""
        query = {"cursor": cursor, "limit": limit}
        found = await self._remote._ask("GET", "/v1/review/facts", user, query=query)
        return Proposals.from_dict(found)

    async def approve(self, memory_ids: str | Sequence[str], *, user: str | None = None) -> Decided:
        """Believe facts from now on."""
        return await self._decided("approve", memory_ids, user)

    async def reject(self, memory_ids: str | Sequence[str], *, user: str | None = None) -> Decided:
        """Drop facts."""
        return await self._decided("reject", memory_ids, user)

    async def undo(self, memory_ids: str | Sequence[str], *, user: str | None = None) -> Decided:
        """Take the last decision about facts back."""
        return await self._decided("undo", memory_ids, user)

    async def _decided(
        self, verb: str, memory_ids: str | Sequence[str], user: str | None
    ) -> Decided:
        body = {"ids": as_ids(memory_ids)}
        answer = await self._remote._ask("POST", f"/v1/review/{verb}", user, body)
        return Decided.from_dict(answer)

    async def quarantined(self, *, user: str | None = None) -> Memories:
        """Return the messages that are held back, oldest first."""
        return Memories.from_dict(await self._remote._ask("GET", "/v1/review/quarantine", user))

    async def release(
        self,
        memory_ids: str | Sequence[str],
        *,
        user: str | None = None,
        session: str | None = None,
    ) -> list[str]:
        """Let messages be found that were held back; return their ids."""
        body = {"ids": as_ids(memory_ids), "session": session}
        return list((await self._remote._ask("POST", "/v1/review/release", user, body))["items"])


def _plain(said: Any) -> dict[str, Any]:
    """Return a message as the server takes it: its form and its body, so that it stays itself."""
    form, body = body_of(said)
    return {"form": form, "body": portable(body)}


def _several(values: str | Sequence[str] | None) -> list[str]:
    if values is None:
        return []
    return [values] if isinstance(values, str) else list(values)


def _filters(filters: Filters | None) -> Any:
    return None if filters is None else portable(dict(filters))


def _time(when: Time | None) -> Any:
    return when if when is None or isinstance(when, str | int | float) else when.isoformat()


def _moment(moment: Moment | int | Time) -> Any:
    return moment.lsn if isinstance(moment, Moment) else _time(moment)
