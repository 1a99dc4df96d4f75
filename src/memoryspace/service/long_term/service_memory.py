"""``ServiceLongTermMemory``: an agent's long-term memory over any ``MemoryService``.

Memories are rendered as quoted data. If the service fails, ``record`` and ``retrieve`` raise; the
tool methods report the failure in words that cannot be taken for a memory.
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

# The name of the message in which an agent keeps retrieved memories. It is never recorded again.
ECHO = "long_term_memory"

_MOST = 1000  # memories in one answer
_MOST_INSTRUCTIONS = 5


class ServiceLongTermMemory(LongTermMemoryBase):
    """One user's long-term memory in a service.

    The caller starts and stops the service.

    Args:
        service: The service to read from and write to.
        user_id: The user whose memory this is.
        session_id: The session to write to.
        only_session: Search that session only, instead of all of the user's sessions.
        neighbours: Also retrieve messages next to a match.
        with_secrets: Also retrieve memories that contain secrets.
        max_tokens: The approximate limit of the retrieved text.
        min_relevance: Memories below this relevance are not retrieved, so that an unrelated prompt
            gets none.

    Raises:
        InvalidInput: If ``only_session`` is given without a ``session_id``, or an argument is out
            of range.

    Example:
        memory = ServiceLongTermMemory(service, "ann")
        await memory.record([Msg("ann", "I live in Rome", "user")])
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
            raise InvalidInput("only_session=True needs a session_id: pass the session to search")
        self.service = service
        self.user_id = check_id("user id", user_id)
        self.session_id = session_id if session_id is None else check_id("session id", session_id)
        self.max_tokens = max_tokens
        self._neighbours = neighbours
        self._with_secrets = with_secrets
        self._min_relevance = check_relevance(min_relevance)
        self._filters = {"session_id": session_id} if only_session else {}

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(user_id={self.user_id!r}, session_id={self.session_id!r})"

    async def record(self, msgs: list[Msg | None]) -> list[str]:
        """Store messages and return the ids of the new ones.

        Messages that the service refuses because of a secret are left out. Otherwise they would
        block the others on every attempt.
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
        """Return the memories relevant to messages, quoted; "" if there are none.

        The user's standing instructions are included, whatever the messages are about.

        Args:
            msg: One message or several.
            limit: The most memories to return, not counting standing instructions.
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
        """Return the best memories for several questions, each once, at most ``limit`` in all.

        The ``asking`` messages are left out, in case they are stored already.
        """
        if type(limit) is not int or not 1 <= limit <= _MOST:
            raise InvalidInput(f"limit must be a whole number from 1 to {_MOST}, got {limit!r}")
        asked = dict.fromkeys(text for text in texts if text.strip())
        own = {msg.id for msg in asking}
        most = min(limit + len(own), _MOST)
        least = self._min_relevance if least is None else least
        answers = await asyncio.gather(*(self._search(text, most, least) for text in asked))
        found = [each for each in interleaved(answers) if each.id not in own]
        return [each for each in found if self._may_be_shown(each)][:limit]

    async def _instructions(self) -> list[MemoryItem]:
        """Return the user's newest standing instructions on how to answer."""
        if not isinstance(self.service, StoredMemoryService):
            return []
        return (await self.service.instructions(self.user_id))[:_MOST_INSTRUCTIONS]

    def _may_be_shown(self, memory: MemoryItem) -> bool:
        """Return whether a memory may be shown. Other services do not mark secrets: search them."""
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
        filters = {"top_k": limit, **self._filters}  # a service with the seven basic methods only
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
    """Return a fact as a message whose id is a hash of its content.

    A repeated call therefore records nothing twice. The hash covers ``thinking`` and ``of``, the
    text that the fact belongs to: the same fact in another context is recorded again.
    """
    msg = Msg(role, text, role, metadata={"thinking": thinking} if thinking else None)
    msg.id = hashlib.sha256(json.dumps([thinking, text, role, of]).encode()).hexdigest()[:32]
    return msg


def interleaved(answers: Sequence[Sequence[MemoryItem]]) -> list[MemoryItem]:
    """Return the first of each answer, then the second of each, and so on, without duplicates.

    The scores of different answers are not comparable.
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
    """Return one message or several as a list without ``None``."""
    given = msgs if isinstance(msgs, list | tuple) else [msgs]
    messages = [msg for msg in given if msg is not None]
    for msg in messages:
        if not isinstance(msg, Msg):
            raise TypeError(
                f"long-term memory takes Msg or a list of them, got {type(msg).__name__}"
            )
    return messages


def as_texts(what: str, value: Any) -> list[str]:
    """Return a model's argument as a list of texts; a single text becomes a list of one."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{what} must be a list of str")
    return list(texts)
