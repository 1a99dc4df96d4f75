"""``ReActAgent``: an agent that reasons, calls tools and remembers. AgentScope v1's shape.

Its memory is valid at all times. Whatever ends a reply (an answer, an error, an interrupt, a
timeout, a crash), every call that is stored has a stored result, at the latest when the next reply
begins. It answers one question at a time: see ``react_turns``.

It works with parts that do not know it: ``Sight`` makes prompts, ``AgentTools`` are what it can do,
``LongTerm`` is what it remembers by itself, a ``Question`` what a reply is about.
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
from .react_answering import ask, hear, remember_cut_off, whole
from .react_base import ReActAgentBase
from .react_long_term import LongTerm, LongTermMode
from .react_question import Question, hint, says_something
from .react_sight import Sight
from .react_structured import ANSWER_TOOL, StructuredAnswer
from .react_tools import AgentTools
from .react_turns import ENDED, Turn, Turns

logger = logging.getLogger(__name__)

_INTERRUPTED = "You interrupted me. What would you like me to do?"
_SUM_UP = """\
You have used all {steps} steps. Call no more tools. Answer now with what you have: what is done,
what came of it, and what is still open."""
_NOT_SUMMED_UP = "I did not finish within {steps} steps, and could not sum up what is done so far."


class ReActAgent(ReActAgentBase):
    """An agent with a model, a memory and tools.

    ``memory`` is in RAM unless given. ``long_term_memory`` is used by the model through tools
    (``agent_control``), or by the agent itself (``static_control``): looked up before each reply
    and recorded after it, in the background; ``aclose()`` waits for that. ``compression_config``
    keeps prompts within a window; what left can be read again. Tools of these kinds are the agent's
    own: the ``toolkit`` is left as it is, and agents may share it.

    Its state is its name, its instructions, its memory, the active tool groups and its plan.
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
            raise InvalidInput("knowledge is not taken; give a long_term_memory instead")
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
        self._turns = Turns()
        self._question = Question()
        self._long_term = LongTerm(long_term_memory, long_term_memory_mode)
        self._tools = AgentTools(chooses=enable_meta_tool)
        self._tools.add(self._long_term.tools)
        self._tools.add(plan_notebook.list_tools() if plan_notebook is not None else ())
        self._open_window()

    @property
    def sys_prompt(self) -> str:
        """The instructions, with the notes of the tool groups that are active."""
        return f"{self._sys_prompt}\n\n{self.toolkit.get_activated_notes()}".strip()

    async def reply(
        self,
        msg: Msg | list[Msg] | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Msg:
        """Answer, or without ``msg`` go on with what was begun.

        With ``structured_model`` (a pydantic class, a Struct or a JSON schema) the metadata of the
        reply is a document of that form; it is empty if the model did not give one in all steps.
        What the model raises is raised; the memory is then as after an interrupt.
        """
        async with self._turns.take() as turn:
            try:
                said = await self._answered(turn, msg, structured_model)
            except ENDED:
                await self._mend()
                raise
            self._long_term.record(self.memory)
            return said

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        """Remember what others said."""
        await self.memory.add(msg)

    async def handle_interrupt(
        self,
        msg: Msg | list[Msg] | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Msg:
        """Answer an interrupt of a reply to ``msg``; metadata ``_is_interrupted`` tells of it."""
        async with self._turns.take():
            await self.memory.add(msg)  # the interrupt may have been first
            said = Msg(self.name, _INTERRUPTED, "assistant", {"_is_interrupted": True})
            await self.print(said, True)
            await self.memory.add(said)
            return said

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state, one of AgentScope's too."""
        super().load_state_dict({"_archive_session": self._archive_session, **state_dict}, strict)

    async def aclose(self) -> None:
        """Interrupt what is under way, and record what is still to be remembered."""
        await super().aclose()
        await self._long_term.flush(self.memory)

    async def _answered(
        self, turn: Turn, msg: Msg | list[Msg] | None, structured_model: StructuredModel | None
    ) -> Msg:
        await repair_memory(self.memory)
        await self.memory.add(msg)
        self._question = Question(
            asked=[msg] if isinstance(msg, Msg) else msg if msg is not None else [],
            recalled=await self._long_term.recalled(msg),
            structured=StructuredAnswer(structured_model) if structured_model is not None else None,
        )
        for _ in range(self.max_iters):
            said = await self._reasoning(self._question.tool_choice)
            await self._act(said.get_content_blocks("tool_use"))  # type: ignore[arg-type]  # these
            answer = self._question.answer(said)
            if answer is said:
                return said
            if answer is not None:
                return await self._given(answer)
            turn.check()
        return await self._summarizing()

    async def _reasoning(self, tool_choice: ToolChoice | None = None) -> Msg:
        """Let the model say what to do next, and remember it. Hints are shown once."""
        shown = await self.memory.get_memory(HINT, prepend_summary=False)
        said = whole(await self._said(await self._hints(), tool_choice))
        if says_something(said):
            await finish(self.memory.add(said))
        self._question.nudge = ""
        if shown:  # and only now: a model that failed has not seen them
            await self.memory.delete([each.id for each in shown])
        return said

    async def _acting(self, tool_call: ToolUseBlock) -> dict[str, Any] | None:
        """Call a tool and remember its result; return the structured answer if it is there."""
        structured = self._question.structured
        if structured is not None and tool_call["name"] == ANSWER_TOOL:
            responses = once(structured.take(tool_call))
        else:
            responses = await self._tools.call(tool_call, self.toolkit)
        await act(tool_call, responses, self.memory, self.print)
        return structured.value if structured is not None else None

    async def _act(self, calls: Sequence[ToolUseBlock]) -> None:
        """Run the calls of one step. One that fails does not keep the others from their end."""
        if not self.parallel_tool_calls:
            for call in calls:
                await self._acting(call)
            return
        ended = await asyncio.gather(*map(self._acting, calls), return_exceptions=True)
        for each in ended:
            if isinstance(each, BaseException):
                raise each

    async def _summarizing(self) -> Msg:
        """Let the model answer with what it has when it has used up its steps."""
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
        """Ask the model and show its answer. One that is cut off is remembered as far as it is."""
        for each in hints if self.print_hint_msg else ():
            await self.print(each, True)
        tools = self._schemas()
        prompt = await self._sight().prompt(self.sys_prompt, self._question, hints, tools)
        said = Msg(self.name, [], "assistant")
        try:
            await hear(said, ask(self.model, prompt, tools, tool_choice), self.print)
        except ENDED:
            await remember_cut_off(self.memory, said)
            raise
        return said

    async def _given(self, answer: Msg) -> Msg:
        """Show and remember an answer that the agent itself has put together."""
        await self.print(answer, True)
        await finish(self.memory.add(answer))
        return answer

    async def _hints(self) -> list[Msg]:
        """Return what the model is told at this step alone; it is not remembered."""
        notebook, nudge = self.plan_notebook, self._question.nudge
        plan = await notebook.get_current_hint() if notebook is not None else None
        return [*([plan] if plan is not None else []), *([hint(nudge)] if nudge else [])]

    def _schemas(self) -> list[Schema]:
        schemas = self._tools.json_schemas(self.toolkit)
        structured = self._question.structured
        if structured is None:
            return schemas
        others = [each for each in schemas if each["function"]["name"] != ANSWER_TOOL]
        return [*others, structured.json_schema]

    def _sight(self) -> Sight:
        if self._window_for != (self.memory, self._archive_session):
            self._open_window()  # the agent was given another memory, or a state
        counter = compression.counter_of(self.compression_config)
        return Sight(self.memory, self.formatter, self.window, counter)

    def _open_window(self) -> None:
        self._window_for = self.memory, self._archive_session
        scope = compression.scope_of(self.memory, self.name, self._archive_session)
        self.window = compression.window_of(
            self.compression_config, scope, self.memory, self.model, self.formatter
        )
        # A memory that keeps itself short has such tools too.
        source = self.memory if self.window is None else self.window
        self._tools.add(getattr(source, "tools", ()))

    async def _mend(self) -> None:
        """Answer every call that is still open, so that the conversation can go on."""
        try:
            await finish(repair_memory(self.memory))
        except Exception as error:  # the next reply tries again
            logger.warning("agent %r could not mend: %s", self.name, type(error).__name__)
