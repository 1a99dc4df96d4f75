"""``ReActAgent``: an agent that reasons, calls tools and remembers, as in AgentScope v1.

Its memory is valid at all times. Whatever ends a reply (an answer, an error, an interrupt, a
timeout, a crash), every stored tool call has a stored result, at the latest when the next reply
begins. It replies to one call at a time: see ``react_turns``.

Its parts do not depend on it: ``PromptBuilder`` makes prompts, ``AgentTools`` holds the tools,
``LongTerm`` looks up and records long-term memories, and ``ReplyState`` is the state of one reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import InvalidInput
from ..formatter import FormatterBase
from ..loops import finish
from ..memory import InMemoryMemory, MemoryBase, repair_memory
from ..memory.pages import HINT
from ..message import Msg, ToolUseBlock, new_id
from ..model import ChatModelBase, ToolChoice
from ..model.base import StructuredModel
from ..model.schemas import Schema
from ..plan import PlanNotebook
from ..service.long_term import LongTermMemoryBase
from ..tool import Toolkit
from ..tool.calling import once
from . import compression
from .react_acting import act
from .react_answering import ask, receive, store_cut_off, whole
from .react_base import ReActAgentBase
from .react_long_term import LongTerm, LongTermMode
from .react_prompt import PromptBuilder
from .react_state import ReplyState, hint, says_something
from .react_structured import ANSWER_TOOL, StructuredAnswer
from .react_tools import AgentTools
from .react_turns import ENDED, ReplyTurn, ReplyTurns

logger = logging.getLogger(__name__)

_INTERRUPTED = "You interrupted me. What would you like me to do?"
_SUM_UP = """\
You have used all {steps} steps. Call no more tools. Answer now with what you have: what is done,
what came of it, and what is still open."""
_NOT_SUMMED_UP = "I did not finish within {steps} steps, and could not sum up what is done so far."


class ReActAgent(ReActAgentBase):
    """An agent with a model, a memory and tools.

    The tools for long-term memory, archived context and plans belong to the agent. The ``toolkit``
    is not changed, so agents can share it. The state of an agent is its name, its instructions, its
    memory, the active tool groups and its plan.

    Args:
        name: The name of the agent, used as the name of its replies.
        sys_prompt: The instructions.
        model: The chat model.
        formatter: Makes the model's prompts.
        toolkit: The tools that the model can call.
        memory: The working memory; in RAM by default.
        long_term_memory: Long-term memory of the agent.
        long_term_memory_mode: ``"agent_control"`` gives the model tools to use it;
            ``"static_control"`` looks it up before each reply and records each reply in the
            background (``aclose()`` waits for that); ``"both"`` does both.
        enable_meta_tool: Whether the model can choose the active groups of tools.
        parallel_tool_calls: Whether the tool calls of one step run concurrently.
        knowledge: Not supported; pass a ``long_term_memory``.
        plan_notebook: Lets the model plan; see ``PlanNotebook``.
        print_hint_msg: Whether to print hints to the model.
        max_iters: The largest number of steps per reply.
        compression_config: Keeps prompts within a token budget; see ``CompressionConfig``.

    Raises:
        InvalidInput: If an option has an invalid value.

    Examples:
        >>> async def hello(model: ChatModelBase, formatter: FormatterBase) -> Msg:
        ...     agent = ReActAgent("planner", "You plan gardens.", model, formatter)
        ...     return await agent(Msg("alice", "Where do I begin?", "user"))
    """

    CompressionConfig: TypeAlias = compression.CompressionConfig

    def __init__(
        self,
        name: str,
        sys_prompt: str,
        model: ChatModelBase,
        formatter: FormatterBase,
        toolkit: Toolkit | None = None,
        memory: MemoryBase | None = None,
        long_term_memory: LongTermMemoryBase | None = None,
        long_term_memory_mode: LongTermMode = "both",
        enable_meta_tool: bool = False,
        parallel_tool_calls: bool = False,
        *,
        knowledge: None = None,
        plan_notebook: PlanNotebook | None = None,
        print_hint_msg: bool = False,
        max_iters: int = 10,
        compression_config: compression.CompressionConfig | None = None,
    ) -> None:
        super().__init__()
        if max_iters < 1:
            raise InvalidInput(f"max_iters must be 1 or more, got {max_iters}")
        if knowledge is not None:
            raise InvalidInput("knowledge is not supported; pass a long_term_memory instead")
        self.name = name
        self._sys_prompt = sys_prompt
        self.model = model
        self.formatter = formatter
        self.toolkit = toolkit if toolkit is not None else Toolkit()
        self.memory = memory if memory is not None else InMemoryMemory()
        self.long_term_memory = long_term_memory
        self.plan_notebook = plan_notebook
        self.parallel_tool_calls = parallel_tool_calls
        self.print_hint_msg = print_hint_msg
        self.max_iters = max_iters
        self.compression_config = compression_config
        self.register_state("name")
        self.register_state("_sys_prompt")
        self._archive_session = new_id()
        self.register_state("_archive_session")
        self._turns = ReplyTurns()
        self._state = ReplyState()
        self._long_term = LongTerm(long_term_memory, long_term_memory_mode)
        self._tools = AgentTools(chooses=enable_meta_tool)
        self._tools.add(self._long_term.tools)
        self._tools.add(plan_notebook.list_tools() if plan_notebook is not None else ())
        self._open_window()

    @property
    def sys_prompt(self) -> str:
        """The instructions, with the notes of the active tool groups."""
        return f"{self._sys_prompt}\n\n{self.toolkit.get_activated_notes()}".strip()

    async def reply(
        self,
        msg: Msg | list[Msg] | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Msg:
        """Reply to messages, or continue the conversation without new ones.

        Errors of the model are raised; the memory is then as after an interrupt.

        Args:
            msg: The new messages.
            structured_model: A pydantic class, a Struct or a JSON schema. The metadata of the reply
                is then a document of that schema, or empty if the model never gave one.

        Returns:
            The reply.
        """
        async with self._turns.take() as turn:
            try:
                reply = await self._answered(turn, msg, structured_model)
            except ENDED:
                await self._repair()
                raise
            self._long_term.record(self.memory)
            return reply

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Add messages of others to the memory."""
        await self.memory.add(msg)

    async def handle_interrupt(
        self,
        msg: Msg | list[Msg] | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Msg:
        """Return the reply to an interrupt; its metadata has ``_is_interrupted`` set."""
        async with self._turns.take():
            await self.memory.add(msg)  # the reply may not have stored it yet
            reply = Msg(self.name, _INTERRUPTED, "assistant", {"_is_interrupted": True})
            await self.print(reply, True)
            await self.memory.add(reply)
            return reply

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state, also one that AgentScope saved."""
        super().load_state_dict({"_archive_session": self._archive_session, **state_dict}, strict)

    async def aclose(self) -> None:
        """Interrupt running replies and record what long-term memory still lacks."""
        await super().aclose()
        await self._long_term.flush(self.memory)

    async def _answered(
        self, turn: ReplyTurn, msg: Msg | list[Msg] | None, structured_model: StructuredModel | None
    ) -> Msg:
        await repair_memory(self.memory)
        await self.memory.add(msg)
        self._state = ReplyState(
            asked=[msg] if isinstance(msg, Msg) else msg if msg is not None else [],
            recalled=await self._long_term.recalled(msg),
            structured=StructuredAnswer(structured_model) if structured_model is not None else None,
        )
        for _ in range(self.max_iters):
            said = await self._reasoning(self._state.tool_choice)
            await self._act(said.get_content_blocks("tool_use"))  # type: ignore[arg-type]  # these
            answer = self._state.answer(said)
            if answer is said:
                return said
            if answer is not None:
                return await self._given(answer)
            turn.check()
        return await self._summarizing()

    async def _reasoning(self, tool_choice: ToolChoice | None = None) -> Msg:
        """Ask the model for the next step and store its answer. Hints are shown once."""
        shown = await self.memory.get_memory(HINT, prepend_summary=False)
        said = whole(await self._said(await self._hints(), tool_choice))
        if says_something(said):
            await finish(self.memory.add(said))
        self._state.nudge = ""
        if shown:  # not earlier: a model that failed has not seen them
            await self.memory.delete([each.id for each in shown])
        return said

    async def _acting(self, tool_call: ToolUseBlock) -> dict[str, Any] | None:
        """Call a tool and store its result; return the structured answer once there is one."""
        structured = self._state.structured
        if structured is not None and tool_call["name"] == ANSWER_TOOL:
            responses = once(structured.take(tool_call))
        else:
            responses = await self._tools.call(tool_call, self.toolkit)
        await act(tool_call, responses, self.memory, self.print)
        return structured.value if structured is not None else None

    async def _act(self, calls: Sequence[ToolUseBlock]) -> None:
        """Run the tool calls of one step. If one fails, the others still run to their end."""
        if not self.parallel_tool_calls:
            for call in calls:
                await self._acting(call)
            return
        ended = await asyncio.gather(*map(self._acting, calls), return_exceptions=True)
        for each in ended:
            if isinstance(each, BaseException):
                raise each

    async def _summarizing(self) -> Msg:
        """Ask the model for a final answer after its last step."""
        try:
            said = await self._said([hint(_SUM_UP.format(steps=self.max_iters))], "none")
        except Exception as error:
            logger.warning("agent %r could not sum up: %s", self.name, type(error).__name__)
            said = Msg(self.name, [], "assistant")
        said.content = said.get_content_blocks(("text", "thinking"))  # no more calls
        if not says_something(said):
            text = _NOT_SUMMED_UP.format(steps=self.max_iters)
            return await self._given(Msg(self.name, text, "assistant"))
        await finish(self.memory.add(said))
        return said

    async def _said(self, hints: Sequence[Msg], tool_choice: ToolChoice | None) -> Msg:
        """Ask the model and print its answer. If it is cut off, store the part there is."""
        for each in hints if self.print_hint_msg else ():
            await self.print(each, True)
        tools = self._schemas()
        prompt = await self._prompts().build(self.sys_prompt, self._state, hints, tools)
        said = Msg(self.name, [], "assistant")
        try:
            await receive(said, ask(self.model, prompt, tools, tool_choice), self.print)
        except ENDED:
            await store_cut_off(self.memory, said)
            raise
        return said

    async def _given(self, answer: Msg) -> Msg:
        """Print and store an answer that the agent composed itself."""
        await self.print(answer, True)
        await finish(self.memory.add(answer))
        return answer

    async def _hints(self) -> list[Msg]:
        """Return the hints for this step only; they are not stored."""
        notebook, nudge = self.plan_notebook, self._state.nudge
        plan = await notebook.get_current_hint() if notebook is not None else None
        return [*([plan] if plan is not None else []), *([hint(nudge)] if nudge else [])]

    def _schemas(self) -> list[Schema]:
        schemas = self._tools.json_schemas(self.toolkit)
        structured = self._state.structured
        if structured is None:
            return schemas
        others = [each for each in schemas if each["function"]["name"] != ANSWER_TOOL]
        return [*others, structured.json_schema]

    def _prompts(self) -> PromptBuilder:
        if self._window_for != (self.memory, self._archive_session):
            self._open_window()  # the memory was replaced, or a state was loaded
        counter = compression.counter_of(self.compression_config)
        return PromptBuilder(self.memory, self.formatter, self.window, counter)

    def _open_window(self) -> None:
        self._window_for = self.memory, self._archive_session
        scope = compression.scope_of(self.memory, self.name, self._archive_session)
        self.window = compression.window_of(
            self.compression_config, scope, self.memory, self.model, self.formatter
        )
        # A memory that compacts itself has such tools too.
        source = self.memory if self.window is None else self.window
        self._tools.add(getattr(source, "tools", ()))

    async def _repair(self) -> None:
        """Add a result for every open tool call, so that the conversation can continue."""
        try:
            await finish(repair_memory(self.memory))
        except Exception as error:  # the next reply tries again
            logger.warning("agent %r could not repair: %s", self.name, type(error).__name__)
