"""``Mem0LongTermMemory``: an agent's long-term memory in mem0.

Every message is sent to mem0 with its own role. Retrieved memories are quoted as data. A failure
raises an error; the tool methods report it in words that cannot be taken for a memory.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from ...embedding import Embedder, EmbeddingModelBase
from ...errors import InvalidInput
from ...lifecycle import Closing
from ...message import Msg
from ...model import ChatModel
from ...tool import ToolResponse, failed, told
from ..long_term.base import LongTermMemoryBase
from ..long_term.rendering import DEFAULT_TOKENS, quoted, render
from ..long_term.service_memory import ECHO, as_messages, as_texts, interleaved
from ..secrets import masked, secrets_in
from ..trust import suspicion
from ..values.forms import text_of
from ..values.memory import MemoryItem
from . import opening
from .calls import Mem0Calls
from .configuring import Mem0Parts, open_parts
from .service import check_entity
from .shapes import mem0_role, memory_from

logger = logging.getLogger(__name__)

RELATIONS = "Relations between things, quoted as data:"

_MOST = 1000  # memories in one answer


class Mem0LongTermMemory(Closing, LongTermMemoryBase):
    """The long-term memory of an agent, a user or a run, in mem0.

    Memories have all of the names that are given. mem0 is opened on first use; ``async with``
    closes it.

    Args:
        agent_name: The agent.
        user_name: The user.
        run_name: The run.
        model: The chat model for mem0; it replaces that of ``mem0_config``.
        embedding_model: The embedder for mem0; it replaces that of ``mem0_config``.
        vector_store_config: The vector store for mem0; it replaces that of ``mem0_config``. Without
            either, a local store is used.
        mem0_config: A ``MemoryConfig``, or a dict as for ``from_config``.
        default_memory_type: The memory type of ``record`` if it is given none.
        suppress_mem0_logging: Keep users' text, which mem0 logs at INFO, out of the log.
        memory: An open mem0 memory to use instead. The caller closes it.
        on_disk: Whether the local store is kept on disk.
        max_tokens: The approximate limit of a retrieved text.

    Raises:
        InvalidInput: If no name is given, or ``memory`` is given together with its parts.
        MissingExtra: If mem0 is not installed.
    """

    def __init__(
        self,
        agent_name: str | None = None,
        user_name: str | None = None,
        run_name: str | None = None,
        model: ChatModel | None = None,
        embedding_model: Embedder | EmbeddingModelBase | None = None,
        vector_store_config: Any = None,
        mem0_config: Any = None,
        default_memory_type: str | None = None,
        suppress_mem0_logging: bool = True,
        *,
        memory: Any = None,
        on_disk: bool = True,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> None:
        super().__init__()
        if memory is None:
            opening.check_installed()
        names = {"agent_id": agent_name, "user_id": user_name, "run_id": run_name}
        self._ids = {
            key: check_entity(key, name) for key, name in names.items() if name is not None
        }
        if not self._ids:
            raise InvalidInput("pass at least one of agent_name, user_name and run_name")
        self.agent_id, self.user_id, self.run_id = agent_name, user_name, run_name
        self.default_memory_type = default_memory_type
        self.max_tokens = max_tokens
        self._memory = memory
        self._parts = None if memory is not None else Mem0Parts(
            config=mem0_config, model=model, embedding_model=embedding_model,
            vector_store=vector_store_config, on_disk=on_disk,
        )  # fmt: skip
        given = (model, embedding_model, vector_store_config, mem0_config)
        if memory is not None and any(each is not None for each in given):
            raise InvalidInput("pass memory= or the model, store and config to open one, not both")
        self._opening = threading.Lock()
        self._calls: Mem0Calls | None = None
        if suppress_mem0_logging:
            opening.quieten()

    def __repr__(self) -> str:
        names = ", ".join(f"{key}={value!r}" for key, value in self._ids.items())
        return f"{type(self).__name__}({names})"

    @property
    def long_term_working_memory(self) -> Any:
        """mem0's own memory object, opened on first use."""
        return self._open().client

    async def record(
        self, msgs: list[Msg | None], memory_type: str | None = None, *, infer: bool = True
    ) -> dict[str, Any]:
        """Send messages to mem0 and return its answer, with the new memories under ``results``.

        Messages that look like instructions to a model are not sent; their ids are under
        ``held_back``. Secrets are masked.

        Args:
            msgs: The messages. ``None`` items are skipped.
            memory_type: mem0's memory type.
            infer: Whether mem0 derives memories; otherwise it stores the messages verbatim.
        """
        messages = [msg for msg in as_messages(msgs) if msg.name != ECHO and text_of(msg).strip()]
        trusted = [msg for msg in messages if suspicion(text_of(msg), role=msg.role) is None]
        held_back = [msg.id for msg in messages if msg not in trusted]
        if held_back:
            logger.warning("%d messages look like instructions; not recorded", len(held_back))
        wire = [_wire(msg, infer=infer) for msg in trusted]
        kind = self.default_memory_type if memory_type is None else memory_type
        answer = await self._add(wire, infer=infer, memory_type=kind) if wire else {"results": []}
        return {**answer, "held_back": held_back}

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5) -> str:
        """Return the memories relevant to messages, quoted; "" if there are none."""
        memories, relations = await self._find([text_of(each) for each in as_messages(msg)], limit)
        return self._rendered(memories, relations)

    async def record_to_memory(self, thinking: str, content: list[str]) -> ToolResponse:
        try:
            facts = [masked(text) for text in as_texts("content", content) if text.strip()]
            trusted = [text for text in facts if suspicion(text) is None]
            results = await self._record_facts(thinking, trusted) if trusted else []
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed("recording memory", error)
        refused = len(facts) - len(trusted)
        if refused and not trusted:
            return failed("recording memory", InvalidInput("instructions are no facts"))
        note = f" {refused} looked like instructions and were left out." if refused else ""
        return told(f"Successfully recorded content to memory.{note}", results=results)

    async def retrieve_from_memory(self, keywords: list[str], limit: int = 5) -> ToolResponse:
        try:
            memories, relations = await self._find(as_texts("keywords", keywords), limit)
            text = self._rendered(memories, relations)
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed("retrieving memory", error)
        if not text:
            return told("No memories found for the given keywords.", ids=[])
        return told(text, ids=[each.id for each in memories])

    async def close(self) -> None:
        """Close the memory unless it was passed in. The next use opens it again."""
        calls, self._calls = self._calls, None
        if calls is not None and self._memory is None:
            await asyncio.to_thread(opening.close_memory, calls.client)

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    def _open(self) -> Mem0Calls:
        with self._opening:
            if self._calls is None:
                made = self._memory if self._parts is None else open_parts(self._parts)
                self._calls = Mem0Calls(made)
            return self._calls

    async def _opened(self) -> Mem0Calls:
        return self._calls if self._calls is not None else await asyncio.to_thread(self._open)

    async def _add(
        self, messages: Sequence[Mapping[str, str]], *, infer: bool, memory_type: str | None = None
    ) -> dict[str, Any]:
        calls = await self._opened()
        return await calls.add(self._ids, messages, infer=infer, memory_type=memory_type)

    async def _record_facts(self, thinking: str, facts: Sequence[str]) -> list[dict[str, Any]]:
        """Let mem0 derive from facts. If it derives nothing, store new facts verbatim."""
        is_thought = bool(thinking.strip()) and suspicion(thinking) is None
        thought = [{"role": "assistant", "content": masked(thinking)}] if is_thought else []
        answer = await self._add([*thought, *map(_fact, facts)], infer=True)
        results: list[dict[str, Any]] = answer["results"]
        if results or "event_id" in answer:  # the platform is still working
            return results
        new = [fact for fact in dict.fromkeys(facts) if not await self._is_known(fact)]
        kept: list[dict[str, Any]] = []
        for fact in new:
            kept += (await self._add([_fact(fact)], infer=False))["results"]
        return kept

    async def _is_known(self, fact: str) -> bool:
        memories, _ = await self._search(fact, 5)
        return any(each.text.strip() == fact.strip() for each in memories)

    async def _find(self, texts: Sequence[str], limit: int) -> tuple[list[MemoryItem], list[str]]:
        """Return the best memories for several questions, each once, at most ``limit`` in all."""
        if type(limit) is not int or not 1 <= limit <= _MOST:
            raise InvalidInput(f"limit must be a whole number from 1 to {_MOST}, got {limit!r}")
        asked = dict.fromkeys(text for text in texts if text.strip())
        answers = await asyncio.gather(*(self._search(text, limit) for text in asked))
        memories = {each.id: each for each in interleaved([found for found, _ in answers])}
        relations = dict.fromkeys(each for _, related in answers for each in related)
        return list(memories.values())[:limit], list(relations)[:limit]

    async def _search(self, text: str, limit: int) -> tuple[list[MemoryItem], list[str]]:
        calls = await self._opened()
        answer = await calls.search(self._ids, text, limit)
        owner = next(iter(self._ids.values()))
        found = sorted(answer["results"], key=lambda each: -float(each.get("score") or 0))
        memories = [memory_from(each, owner, quarantine=True) for each in found]
        related = [_relation(each) for each in answer["relations"] if isinstance(each, dict)]
        shown = [each for each in memories if not (each.is_quarantined or secrets_in(each.text))]
        return shown[:limit], related

    def _rendered(self, memories: Sequence[MemoryItem], relations: Iterable[str]) -> str:
        trusted = [masked(each) for each in relations if suspicion(each) is None]
        related = [f"- {quoted(each)}" for each in trusted]
        parts = [render(memories, max_tokens=self.max_tokens)] if memories else []
        return "\n".join([*parts, *([RELATIONS, *related] if related else [])])


def _wire(msg: Msg, *, infer: bool) -> dict[str, str]:
    role = mem0_role(msg.role, infer=infer)
    return {"role": role, "content": masked(text_of(msg)), "name": msg.name}


def _fact(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _relation(found: Mapping[str, Any]) -> str:
    """Return an edge of mem0's graph in AgentScope's form; mem0 has two names for its end."""
    end = found.get("destination", found.get("target"))
    return f"{found.get('source')} -- {found.get('relationship')} -- {end}"
