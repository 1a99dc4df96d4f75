"""A history as the compactor sees it: repaired, in atomic groups, some of which must stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ..errors import NotSerializable
from ..message import Msg, Repair, groups_of, repair
from ..message.msg import peek_content
from ..message.repairing import NO_RESULT
from ..message.sharing import thaw
from ..message.tool_blocks import results_in
from .rendering import dump

Fate: TypeAlias = Literal["resident", "summarised", "dropped"]


class Pages(Struct, frozen=True):
    """The page table: which messages are not resident, or only in part.

    Attributes:
        offloaded: Ids of messages whose big parts are stubs.
        summarised: Ids of messages that the summary replaces.
        dropped: Ids of hints that were removed.
        summary: The text of the summary.
    """

    offloaded: frozenset[str] = frozenset()
    summarised: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    summary: str = ""


class Group:
    """A message, or a tool call with its results, which are never separated.

    Attributes:
        originals: The messages as they are.
        messages: The messages as they are shown.
        costs: The tokens of each message as shown.
        verbatim: Ids of messages that must be shown unchanged. A group that has any stays.
        is_recent: Whether the group is among the newest messages, which leave last.
        fate: Whether the group is resident, summarised or dropped.
    """

    __slots__ = ("_written", "costs", "fate", "is_recent", "messages", "originals", "verbatim")

    def __init__(self, messages: list[Msg], verbatim: frozenset[str], is_recent: bool) -> None:
        self.originals = messages
        self.messages = list(messages)
        self.costs = [0] * len(messages)
        self.verbatim = verbatim
        self.is_recent = is_recent
        self.fate: Fate = "resident"
        self._written: str | None = None

    def __repr__(self) -> str:
        return f"Group({[msg.id for msg in self.originals]}, cost={self.cost}, fate={self.fate!r})"

    @property
    def id(self) -> str:
        """The id of the first message, by which the page table knows the group."""
        return self.originals[0].id

    @property
    def cost(self) -> int:
        """The tokens of all messages as shown."""
        return sum(self.costs)

    @property
    def may_leave(self) -> bool:
        """Whether the whole group may leave: nothing in it must stay, and all is serialisable."""
        return self.fate == "resident" and not self.verbatim and bool(self.written)

    @property
    def written(self) -> str:
        """The messages as JSON items of an array; "" if they cannot be serialised."""
        if self._written is None:
            try:
                self._written = ",".join(dump(msg.to_dict()) for msg in self.originals)
            except NotSerializable:
                self._written = ""
        return self._written

    def is_among(self, ids: frozenset[str]) -> bool:
        """Return whether all messages of the group are among ``ids``, except inserted results.

        A result that arrives after its call has left is new, so the call returns with it.
        """
        return self.id in ids and all(msg.id in ids or _is_no_result(msg) for msg in self.originals)

    def is_whole(self, at: int) -> bool:
        """Return whether the message at a place is shown unchanged."""
        return self.messages[at] is self.originals[at]


class GroupedHistory:
    """All messages, repaired and in groups, and the ids of those that must stay.

    These are ``instructions`` (system messages at the beginning), ``pinned`` messages, and
    ``newest``, the newest user message.
    """

    def __init__(
        self,
        messages: Sequence[Msg],
        *,
        pinned: Collection[str] = (),
        hints: Collection[str] = (),
        keep_recent: int = 0,
    ) -> None:
        whole = distinct(messages)
        self.messages, self.repairs = _repaired(whole)
        self.began = whole[0].timestamp if whole else ""
        self.hints = frozenset(hints)
        self.pinned = frozenset(pinned)
        self.newest = _newest_request(whole, self.hints)
        self.instructions = _instructions(self.messages)
        stays = self.pinned | self.instructions | {self.newest}
        self.groups = _grouped(self.messages, stays, keep_recent)


def distinct(messages: Sequence[Msg]) -> list[Msg]:
    """Return the messages with unique ids: a repeated id gets a suffix, always the same one."""
    seen: set[str] = set()
    whole: list[Msg] = []
    for msg in messages:
        if msg.id in seen:
            msg = _renamed(msg, seen)
        seen.add(msg.id)
        whole.append(msg)
    return whole


def _repaired(messages: list[Msg]) -> tuple[list[Msg], tuple[Repair, ...]]:
    mended = repair(messages)
    return distinct(mended.messages), mended.repairs


def _renamed(msg: Msg, taken: Collection[str]) -> Msg:
    number = 2
    while f"{msg.id}#{number}" in taken:
        number += 1
    other = thaw(msg)
    other.id = f"{msg.id}#{number}"
    return other


def _grouped(messages: list[Msg], stays: frozenset[str], keep_recent: int) -> list[Group]:
    groups: list[Group] = []
    first_recent = len(messages) - keep_recent
    seen = 0
    for members in groups_of(messages):
        seen += len(members)
        verbatim = frozenset(msg.id for msg in members if msg.id in stays)
        groups.append(Group(members, verbatim, is_recent=seen > first_recent))
    return groups


def _newest_request(messages: Sequence[Msg], hints: frozenset[str]) -> str:
    """Return the id of the newest message with a user's own content, or ""."""
    for msg in reversed(messages):
        if msg.role == "user" and msg.id not in hints and not _only_answers(msg):
            return msg.id
    return ""


def _is_no_result(msg: Msg) -> bool:
    """Return whether a repair inserted this message for a missing result."""
    results = results_in(msg)
    return bool(results) and all(result.get("output") == NO_RESULT for result in results)


def _only_answers(msg: Msg) -> bool:
    content = peek_content(msg)
    return not isinstance(content, str) and 0 < len(content) == len(results_in(msg))


def _instructions(messages: Sequence[Msg]) -> frozenset[str]:
    ids: set[str] = set()
    for msg in messages:
        if msg.role != "system" or results_in(msg):
            break
        ids.add(msg.id)
    return frozenset(ids)
