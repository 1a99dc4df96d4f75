"""Compatibility with the long-term memories of ReMe in AgentScope.

These classes exist for users of ReMe and AgentScope: they keep the names, signatures and answers,
so that only the import has to change. They run on our own services; ReMe is not needed and its
configuration is not read. ``async with`` starts and stops the service, and methods raise before
that. The caller starts and stops a service that was passed in.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Generic, TypeVar

from ...embedding import Embedder, EmbeddingModelBase, as_embedder
from ...errors import InvalidInput, NotStarted
from ...lifecycle import Running
from ...message import Msg
from ...model import ChatModel
from ...tool import ToolResponse, failed, told
from ..personal import PersonalMemoryService
from ..settings import ServiceSettings
from ..stored import StoredMemoryService
from ..task import TaskMemoryService
from ..values.forms import text_of
from ..values.memory import MemoryItem
from .rendering import DEFAULT_TOKENS
from .service_memory import ECHO, ServiceLongTermMemory, as_messages, as_texts, fact

S = TypeVar("S", bound=StoredMemoryService)

_DEFAULT_USER = "default_user"
_UNREAD = (
    "{!r} is ignored: this class does not use ReMe. Instead of its llm and embedding_model, pass "
    "model= and embedding_model=; instead of its vector_store, pass service= with a store. Its "
    "flows and prompts have no counterpart"
)


class ReMeLongTermMemoryBase(Running, ServiceLongTermMemory, Generic[S]):
    """Base of the three ReMe memories, for users of ReMe and AgentScope.

    Args:
        agent_name: Stored as an attribute; not used otherwise.
        user_name: The user whose memory this is.
        run_name: The session to write to.
        model: A chat model that improves extraction.
        embedding_model: An embedder, or an embedding model of AgentScope, that improves search.
        reme_config_path: Accepted and ignored; a warning names the replacements.
        service: A service to use instead of a new one. The caller starts and stops it.
        max_tokens: The approximate limit of a retrieved text.

    Raises:
        InvalidInput: If a service is given together with a model or an embedding model.
    """

    service: S
    _about = "memory"
    _nothing = "No memories found for the given keywords."

    def __init__(
        self,
        agent_name: str | None = None,
        user_name: str | None = None,
        run_name: str | None = None,
        model: ChatModel | None = None,
        embedding_model: Embedder | EmbeddingModelBase | None = None,
        reme_config_path: str | os.PathLike[str] | None = None,
        *,
        service: S | None = None,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> None:
        if service is not None and (model is not None or embedding_model is not None):
            raise InvalidInput("pass service= or model=/embedding_model=, not both")
        if reme_config_path is not None:
            warnings.warn(_UNREAD.format(os.fspath(reme_config_path)), UserWarning, stacklevel=2)
        self._is_own = service is None
        made = self._make_service(model, _settings(embedding_model)) if service is None else service
        user = _DEFAULT_USER if user_name is None else user_name
        super().__init__(made, user, run_name, max_tokens=max_tokens)
        self.agent_name = agent_name
        self.workspace_id = user
        self._app_started = False

    def _make_service(self, model: ChatModel | None, settings: ServiceSettings) -> S:
        raise NotImplementedError

    async def start(self) -> None:
        """Start the service, unless it was passed in."""
        if self._is_own:
            await self.service.start()
        self._app_started = True

    async def stop(self) -> None:
        """Stop the service, unless it was passed in."""
        self._app_started = False
        if self._is_own:
            await self.service.stop()

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5) -> str:
        """Return the memories relevant to the last message, quoted; "" if there are none."""
        self._check_started()
        messages = as_messages(msg)[-1:]
        return self._rendered(await self._search_all([text_of(each) for each in messages], limit))

    async def retrieve_from_memory(self, keywords: list[str], limit: int = 5) -> ToolResponse:
        """Look up what is remembered. Use it before answering what may have been told earlier.

        Args:
            keywords (`list[str]`):
                What to look for: names, topics, or short questions, each looked up by itself.
            limit (`int`, defaults to 5):
                How many memories to return at most for each keyword.
        """
        self._check_started()
        try:
            blocks = await self._blocks(as_texts("keywords", keywords), limit)
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed(f"retrieving {self._about}", error)
        return told("\n\n".join(blocks) if blocks else self._nothing)

    async def _blocks(self, keywords: Sequence[str], limit: int) -> list[str]:
        """Return one block for each keyword, without memories of earlier blocks."""
        blocks: list[str] = []
        seen: set[str] = set()
        for keyword in dict.fromkeys(keywords):
            asked = await self._search_keyword(keyword, limit)
            found = [each for each in asked if each.id not in seen]
            seen.update(each.id for each in found)
            if found:
                blocks.append(f"Keyword '{keyword}':\n{self._rendered(found)}")
        return blocks

    async def _search_all(self, texts: Sequence[str], limit: int) -> list[MemoryItem]:
        return await self._find(texts, limit)

    async def _search_keyword(self, keyword: str, limit: int) -> list[MemoryItem]:
        return await self._search_all([keyword], limit)

    def _check_started(self) -> None:
        if not self._app_started:
            raise NotStarted(
                f"the app context of {type(self).__name__} is not started: use it in `async with`"
            )


class ReMePersonalLongTermMemory(ReMeLongTermMemoryBase[PersonalMemoryService]):
    """Long-term memory of facts about a user, for users of ReMe and AgentScope."""

    _about = "personal memory"

    def _make_service(
        self, model: ChatModel | None, settings: ServiceSettings
    ) -> PersonalMemoryService:
        return PersonalMemoryService(model=model, settings=settings)

    async def record(self, msgs: list[Msg | None]) -> list[str]:
        """Store messages and the facts about the user in them; return the ids of the new ones."""
        self._check_started()
        return await super().record(msgs)

    async def record_to_memory(self, thinking: str, content: list[str]) -> ToolResponse:
        """Remember facts about the user: who they are, what they like, what they plan.

        Args:
            thinking (`str`):
                Why this is worth remembering, in your own words.
            content (`list[str]`):
                The facts, each as one sentence the user could say, such as "I live in Rome".
        """
        self._check_started()
        try:
            added = await self._add(self._facts(thinking, content))
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed(f"recording {self._about}", error)
        done = f"Successfully recorded {len(added)} memory/memories to personal memory."
        return told(done if added else "Memory recording completed.", result={"ids": added})


class ReMeTaskLongTermMemory(ReMeLongTermMemoryBase[TaskMemoryService]):
    """Long-term memory of lessons from tasks, for users of ReMe and AgentScope."""

    _about = "task memory"
    _nothing = "No task experiences found for the given keywords."

    def _make_service(
        self, model: ChatModel | None, settings: ServiceSettings
    ) -> TaskMemoryService:
        return TaskMemoryService(model=model, settings=settings)

    async def record(self, msgs: list[Msg | None], score: float = 1.0) -> list[str]:
        """Store one trajectory and learn from it.

        Args:
            msgs: The messages of the trajectory.
            score: How well the task went, from 0 (failed) to 1 (done).
        """
        self._check_started()
        messages = [msg for msg in as_messages(msgs) if msg.name != ECHO]
        return await self._add_trajectory(messages, score) if messages else []

    async def record_to_memory(
        self, thinking: str, content: list[str], score: float = 1.0
    ) -> ToolResponse:
        """Remember what a task has taught, for the next one of its kind.

        Args:
            thinking (`str`):
                The task, and what made it easy or hard.
            content (`list[str]`):
                The lessons, each one understandable on its own.
            score (`float`, defaults to 1.0):
                How well the task went, from 0 (failed) to 1 (done).
        """
        self._check_started()
        try:
            added = [
                await self._add_trajectory(_lesson_trajectory(thinking, text), score)
                for text in dict.fromkeys(as_texts("content", content))
                if text.strip()
            ]
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed(f"recording {self._about}", error)
        number = sum(map(bool, added))
        ids = [each for ids in added for each in ids]
        return told(f"Successfully recorded {number} task memory/memories.", result={"ids": ids})

    async def _search_keyword(self, keyword: str, limit: int) -> list[MemoryItem]:
        """Return every match: a keyword names only part of a task, so its relevance is low."""
        return await self._find([keyword], limit, least=0.0)

    async def _add_trajectory(self, messages: Sequence[Msg], score: float) -> list[str]:
        return await self.service.add_trajectory(
            self.user_id, list(messages), score=score, session_id=self.session_id
        )


def _settings(model: Embedder | EmbeddingModelBase | None) -> ServiceSettings:
    return ServiceSettings() if model is None else ServiceSettings(embedder=as_embedder(model))


def _lesson_trajectory(thinking: str, text: str) -> list[Msg]:
    """Return a lesson as a trajectory of two messages: the task and the result."""
    task = thinking if thinking.strip() else text
    return [fact("", task, "user", of=text), fact("", text, "assistant", of=task)]
