"""ReMe's long-term memories, by their names and answers, over our own services.

``async with`` starts the service and stops it; whatever is asked before that raises. A service
that is passed in is the caller's to start and to stop. Nothing else of ReMe is needed, and nothing
of a configuration of ReMe's is read.
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
    "nothing of {!r} is used: there is no ReMe here. In the place of its llm and embedding_model "
    "give model= and embedding_model=, in that of its vector_store a service= on a store; its "
    "flows and prompts have no counterpart"
)


class ReMeLongTermMemoryBase(Running, ServiceLongTermMemory, Generic[S]):
    """What the three have in common: whose memory it is, and when it is open.

    ``user_name`` is whose memory it is, ``run_name`` the session that is written to; ``agent_name``
    is kept. ``model`` and ``embedding_model`` make it better and may be left out; the latter is any
    embedder, or a model as AgentScope calls one. ``reme_config_path`` is taken so that calls need
    no change, and a warning says what stands in its place.
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
            raise InvalidInput("a service has its own model and embedder: give it, or these")
        if reme_config_path is not None:
            warnings.warn(_UNREAD.format(os.fspath(reme_config_path)), UserWarning, stacklevel=2)
        self._is_own = service is None
        made = self._made(model, _settings(embedding_model)) if service is None else service
        user = _DEFAULT_USER if user_name is None else user_name
        super().__init__(made, user, run_name, max_tokens=max_tokens)
        self.agent_name = agent_name
        self.workspace_id = user
        self._app_started = False

    def _made(self, model: ChatModel | None, settings: ServiceSettings) -> S:
        raise NotImplementedError

    async def start(self) -> None:
        """Start the service, if it was made here."""
        if self._is_own:
            await self.service.start()
        self._app_started = True

    async def stop(self) -> None:
        """Stop the service, if it was made here."""
        self._app_started = False
        if self._is_own:
            await self.service.stop()

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5) -> str:
        """Return what is remembered about the last of the messages, quoted; "" if nothing is."""
        self._check_started()
        messages = as_messages(msg)[-1:]
        return self._rendered(await self._asked([text_of(each) for each in messages], limit))

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
        """Return one block for each keyword that finds something not told before."""
        blocks: list[str] = []
        seen: set[str] = set()
        for keyword in dict.fromkeys(keywords):
            asked = await self._looked_up(keyword, limit)
            found = [each for each in asked if each.id not in seen]
            seen.update(each.id for each in found)
            if found:
                blocks.append(f"Keyword '{keyword}':\n{self._rendered(found)}")
        return blocks

    async def _asked(self, texts: Sequence[str], limit: int) -> list[MemoryItem]:
        return await self._find(texts, limit)

    async def _looked_up(self, keyword: str, limit: int) -> list[MemoryItem]:
        return await self._asked([keyword], limit)

    def _check_started(self) -> None:
        if not self._app_started:
            raise NotStarted(
                f"the app context of this {type(self).__name__} is not started: "
                "use it in `async with`"
            )


class ReMePersonalLongTermMemory(ReMeLongTermMemoryBase[PersonalMemoryService]):
    """What is known of a person."""

    _about = "personal memory"

    def _made(self, model: ChatModel | None, settings: ServiceSettings) -> PersonalMemoryService:
        return PersonalMemoryService(model=model, settings=settings)

    async def record(self, msgs: list[Msg | None]) -> list[str]:
        """Remember messages, and what they tell of the person."""
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
    """What attempts at tasks have taught."""

    _about = "task memory"
    _nothing = "No task experiences found for the given keywords."

    def _made(self, model: ChatModel | None, settings: ServiceSettings) -> TaskMemoryService:
        return TaskMemoryService(model=model, settings=settings)

    async def record(self, msgs: list[Msg | None], score: float = 1.0) -> list[str]:
        """Remember one trajectory and learn from it; ``score`` says how well it went."""
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
                await self._add_trajectory(_told_lesson(thinking, text), score)
                for text in dict.fromkeys(as_texts("content", content))
                if text.strip()
            ]
        except Exception as error:  # whatever it is, the model must be told that it failed
            return failed(f"recording {self._about}", error)
        number = sum(map(bool, added))
        ids = [each for ids in added for each in ids]
        return told(f"Successfully recorded {number} task memory/memories.", result={"ids": ids})

    async def _looked_up(self, keyword: str, limit: int) -> list[MemoryItem]:
        """Look a keyword up, which names only some of a task: whatever has it is told."""
        return await self._find([keyword], limit, least=0.0)

    async def _add_trajectory(self, messages: Sequence[Msg], score: float) -> list[str]:
        return await self.service.add_trajectory(
            self.user_id, list(messages), score=score, session_id=self.session_id
        )


def _settings(model: Embedder | EmbeddingModelBase | None) -> ServiceSettings:
    return ServiceSettings() if model is None else ServiceSettings(embedder=as_embedder(model))


def _told_lesson(thinking: str, text: str) -> list[Msg]:
    """Return a lesson as the shortest trajectory: what was asked, and what came of it."""
    task = thinking if thinking.strip() else text
    return [fact("", task, "user", of=text), fact("", text, "assistant", of=task)]
