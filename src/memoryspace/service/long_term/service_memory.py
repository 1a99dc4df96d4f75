"""``ServiceLongTermMemory``: an agent's long-term memory over any ``MemoryService``.

What comes back is rendered as quoted data. A service that fails raises from ``record`` and
``retrieve``; the tool functions then say that they failed, never something that reads like memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from ...errors import InvalidInput, SecretRefused
from ...message import Msg
from ...message.msg import Role
from ...record import check_id
from ...retrieval.relevance import RELEVANT
from ...tool import ToolResponse, failed, told
from ..base import MemoryService
from ..reading.arguments import check_relevance
from ..secrets import secrets_in
from ..stored import StoredMemoryService
from ..values.forms import draft_of
from ..values.forms import text_of as words_of
from ..values.memory import SECRET, MemoryItem, Said
from .base import LongTermMemoryBase
from .rendering import DEFAULT_TOKENS, render

# An agent puts what it retrieved into its own memory under this name: not to be recorded again.
ECHO = "long_term_memory"

_MOST = 1000  # memories in one answer
_MOST_INSTRUCTIONS = 5


class ServiceLongTermMemory(LongTermMemoryBase):
    """One user's long-term memory. The service is the caller's to start and to stop.

    What is recorded goes to ``session_id``; it is looked up in all of the user's sessions or, with
    ``only_session``, in that one. What is retrieved takes at most about ``max_tokens``; with
    ``neighbours``, what was said beside a match may be retrieved for its sake. What is less
    relevant than ``min_relevance`` is not retrieved, so that an unrelated prompt gets nothing; what
    holds a secret is not, unless it is wanted ``with_secrets``.
    """

    def __init__(
        self,
        service: MemoryService,
        user_id: str,
        session_id: str | None = None,
        *,
        only_session: bool = False,
        neighbours: bool = False,
        with_secrets: bool = False,
        max_tokens: int = DEFAULT_TOKENS,
        min_relevance: float = RELEVANT,
    ) -> None:
        super().__init__()
        if only_session and session_id is None:
            raise InvalidInput("only_session needs a session_id: which session is it to be?")
        self.service = service
        self.user_id = check_id("user id", user_id)
        self.session_id = session_id if session_id is None else check_id("session id", session_id)
        self.max_tokens = max_tokens
        self._neighbours = neighbours
        self._with_secrets = with_secrets
        self._min_relevance = check_relevance(min_relevance)
        self._filters = {"session_id": session_id} if only_session else {}

    async def record(self, msgs: list[Msg | None]) -> list[str]:
        """Remember messages and return the ids of those that are new.

        Those that the service refuses for a secret are left out: tried again, they would keep the
        others from being recorded for ever.
        """
        messages = [msg for msg in as_messages(msgs) if msg.name != ECHO]
        try:
            return await self._add(messages) if messages else []
        except SecretRefused as refusal:
            if not refusal.messages:
                raise
            left = [msg for at, msg in enumerate(messages) if at not in refusal.messages]
            return await self._add(left)

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5) -> str:
        """Return what is remembered about a message or several, quoted; "" if nothing is.

        How the user wants to be answered stands beside it, whatever the messages are about.
        """
        messages = as_messages(msg)
        found = await self._find([words_of(each) for each in messages], limit, messages)
        standing = await self._instructions() if messages else []
        return self._rendered([*found, *(each for each in standing if each not in found)])

    async def record_to_memory(self, thinking: str, content: list[str]) -> ToolResponse:
        """Remember something important for later conversations, such as a fact about the user.

        Args:
            thinking (`str`):
                Why this is worth remembering, in your own words.
            content (`list[str]`):
                What to remember. Each item is one fact that can be understood on its own, with
                names, places and dates written out.
        """
        try:
            added = await self._add(self._facts(thinking, content))
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed("recording memory", error)
        return told(f"Successfully recorded content to memory: {len(added)} new.", ids=added)

    async def retrieve_from_memory(self, keywords: list[str], limit: int = 5) -> ToolResponse:
        """Look up what is remembered. Use it before answering what may have been told earlier.

        Args:
            keywords (`list[str]`):
                What to look for: names, topics, or short questions, each looked up by itself.
            limit (`int`, defaults to 5):
                How many memories to return at most.
        """
        try:
            found = await self._find(as_texts("keywords", keywords), limit)
            text = self._rendered(found)
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed("retrieving memory", error)
        if not found:
            return told("No memories found for the given keywords.", ids=[])
        return told(text, ids=[each.id for each in found])

    async def _add(self, messages: Sequence[Msg]) -> list[str]:
        said: list[Said] = list(messages)
        return await self.service.add_memory(self.user_id, said, self.session_id) if said else []

    def _facts(self, thinking: str, content: list[str]) -> list[Msg]:
        facts = dict.fromkeys(text for text in as_texts("content", content) if text.strip())
        return [fact(thinking, text) for text in facts]

    async def _find(
        self,
        texts: Sequence[str],
        limit: int,
        asking: Sequence[Msg] = (),
        *,
        least: float | None = None,
    ) -> list[MemoryItem]:
        """Return the best for several questions, each memory once, at most ``limit`` in all.

        Messages that ask, if they are remembered already, are no answers to themselves.
        """
        if type(limit) is not int or not 1 <= limit <= _MOST:
            raise InvalidInput(f"limit must be a whole number from 1 to {_MOST}, got {limit!r}")
        asked = dict.fromkeys(text for text in texts if text.strip())
        own = {msg.id for msg in asking}
        most = min(limit + len(own), _MOST)
        least = self._min_relevance if least is None else least
        answers = await asyncio.gather(*(self._search(text, most, least) for text in asked))
        found = [each for each in in_turn(answers) if each.id not in own]
        return [each for each in found if self._may_be_shown(each)][:limit]

    async def _instructions(self) -> list[MemoryItem]:
        """Return how the user wants to be answered, whatever is asked; the newest ones."""
        if not isinstance(self.service, StoredMemoryService):
            return []
        return (await self.service.instructions(self.user_id))[:_MOST_INSTRUCTIONS]

    def _may_be_shown(self, memory: MemoryItem) -> bool:
        """Tell whether a memory holds no secret; what came from elsewhere is not marked."""
        return self._with_secrets or not (memory.holds_secret or secrets_in(memory.text))

    async def _search(self, text: str, limit: int, least: float) -> list[MemoryItem]:
        service, user = self.service, self.user_id
        if type(service).search is not MemoryService.search:
            without = {} if self._with_secrets else {"without": SECRET}
            hits = await service.search(
                user,
                text,
                top_k=limit,
                filters={**self._filters, **without},
                neighbours=self._neighbours,
                min_relevance=least,
            )
            return [hit.memory for hit in hits]
        filters = {"top_k": limit, **self._filters}  # a service with the seven verbs alone
        return [self._memory(said) for said in await service.search_memory(user, [text], filters)]

    def _memory(self, said: Said) -> MemoryItem:
        draft = draft_of(said)
        when = 0.0 if draft.created_at is None else draft.created_at
        memory_id = draft.id if draft.id is not None else "unknown"
        return MemoryItem(
            id=memory_id, user_id=self.user_id, session_id="", value=draft.value, text=draft.text,
            role=draft.role, name=draft.name, created_at=when, updated_at=when, origin=draft.origin,
        )  # fmt: skip

    def _rendered(self, memories: Sequence[MemoryItem]) -> str:
        return render(memories, max_tokens=self.max_tokens)


def fact(thinking: str, text: str, role: Role = "user", *, of: str = "") -> Msg:
    """Return something to remember as a message whose id is its own.

    A call that is tried again records nothing twice. The thought is part of what it is, and so is
    ``of``, what it belongs to: what holds again is recorded again.
    """
    msg = Msg(role, text, role, metadata={"thinking": thinking} if thinking else None)
    msg.id = hashlib.sha256(json.dumps([thinking, text, role, of]).encode()).hexdigest()[:32]
    return msg


def in_turn(answers: Sequence[Sequence[MemoryItem]]) -> list[MemoryItem]:
    """Return the first of each answer, then the second of each …: scores do not compare.

    What says the same is told once.
    """
    longest = max(map(len, answers), default=0)
    ranked = [answer[rank] for rank in range(longest) for answer in answers if rank < len(answer)]
    seen: set[tuple[str, str]] = set()
    return [each for each in ranked if not _was_seen(seen, (each.text.strip(), each.kind))]


def _was_seen(seen: set[tuple[str, str]], key: tuple[str, str]) -> bool:
    is_known = key in seen
    seen.add(key)
    return is_known


def as_messages(msgs: Any) -> list[Msg]:
    """Return what was given as a list of messages; ``None`` among them is left out."""
    given = msgs if isinstance(msgs, list | tuple) else [msgs]
    messages = [msg for msg in given if msg is not None]
    for msg in messages:
        if not isinstance(msg, Msg):
            raise TypeError(
                f"long-term memory takes Msg or a list of them, got {type(msg).__name__}"
            )
    return messages


def as_texts(what: str, value: Any) -> list[str]:
    """Return what a model gave for a list of texts; a single text is a list of one."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{what} must be a list of str")
    return list(texts)
