"""An agent reasons, acts and answers; models that fail, ramble or say nothing do no harm."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from memoryspace.agent import CompressionConfig, ReActAgent, ReActAgentBase
from memoryspace.context import ExtractiveSummary
from memoryspace.errors import InvalidInput, ModelFailed, ModelUnavailable
from memoryspace.formatter import OpenAIChatFormatter
from memoryspace.memory import InMemoryMemory
from memoryspace.message import Msg
from memoryspace.plan import PlanNotebook
from memoryspace.session import JSONSession
from memoryspace.testing import ScriptedModel
from react_parts import (
    AnyModel,
    add,
    agent_of,
    broken_stream,
    call,
    check_for_all_providers,
    history,
    prompts_of,
    text,
    toolkit_of,
    unanswered,
    user,
)


class Sum(BaseModel):
    total: int
    words: str = ""


# --- reasoning and acting ---


@pytest.mark.parametrize("stream", [False, True])
async def test_it_calls_a_tool_and_answers(stream: bool) -> None:
    agent = agent_of([text("Let me see."), call("add", a=1, b=2)], "It is 3.", stream=stream)
    reply = await agent(user("What is 1 + 2?"))
    assert (reply.name, reply.role, reply.get_text_content()) == ("Friday", "assistant", "It is 3.")
    assert await history(agent) == [
        "user: What is 1 + 2?",
        "assistant: Let me see. add?",
        "system: add!",
        "assistant: It is 3.",
    ]
    first, second = agent.model.calls  # type: ignore[attr-defined]
    assert [each["role"] for each in first.messages] == ["system", "user"]
    assert [each["role"] for each in second.messages][-2:] == ["assistant", "tool"]
    assert second.messages[-1]["content"] == "3"
    assert [each["function"]["name"] for each in first.tools or []] == ["add"]


async def test_without_tools_none_are_offered() -> None:
    agent = agent_of("Hello.", toolkit=None)
    await agent(user("Hi"))
    (asked,) = agent.model.calls  # type: ignore[attr-defined]
    assert (asked.tools, asked.tool_choice) == (None, None)


async def test_several_messages_or_none_may_be_asked() -> None:
    agent = agent_of("Both.", "Go on.")
    await agent([user("a"), user("b")])
    await agent()
    assert await history(agent) == ["user: a", "user: b", "assistant: Both.", "assistant: Go on."]


async def test_tools_run_at_once_if_they_may() -> None:
    both = asyncio.Barrier(2)

    async def meet() -> str:
        """Wait for another one."""
        await both.wait()
        return "met"

    two = [call("meet", "c-1"), call("meet", "c-2")]
    agent = agent_of(two, "Done.", toolkit=toolkit_of(meet), parallel_tool_calls=True)
    assert (await agent(user("Meet!"))).get_text_content() == "Done."
    assert await unanswered(agent.memory) == []


async def test_an_empty_memory_that_was_given_is_used() -> None:
    class Counted(InMemoryMemory):
        def __len__(self) -> int:
            return 0

    memory = Counted()
    agent = agent_of("Hello.", memory=memory)
    await agent(user("Hi"))
    assert agent.memory is memory
    assert await memory.size() == 2


async def test_another_memory_may_be_put_in_its_place() -> None:
    config = CompressionConfig(trigger_threshold=3000, summariser=ExtractiveSummary())
    agent = agent_of("One.", "Two.", compression_config=config)
    await agent(user("first"))
    agent.memory = InMemoryMemory()
    await agent(user("second"))
    assert await history(agent) == ["user: second", "assistant: Two."]
    assert "first" not in str(prompts_of(agent)[-1])


async def test_hooks_run_around_reasoning_and_acting() -> None:
    seen: list[str] = []
    agent = agent_of([call("add", a=1, b=2)], "It is 3.")
    for kind in ReActAgentBase.supported_hook_types:
        agent.register_instance_hook(kind, "note", lambda *args, kind=kind: seen.append(kind))
    await agent(user("?"))
    steps = [each for each in seen if "reason" in each or "act" in each]
    assert steps == [
        *("pre_reasoning", "post_reasoning", "pre_acting", "post_acting"),
        *("pre_reasoning", "post_reasoning"),
    ]


async def test_a_hook_may_change_what_was_reasoned() -> None:
    def double(agent: ReActAgent, arguments: Any, said: Msg) -> Msg:
        for block in said.get_content_blocks("tool_use"):
            block["input"]["a"] = 20  # type: ignore[typeddict-item]
        return said

    agent = agent_of([call("add", a=1, b=2)], "It is 22.")
    agent.register_instance_hook("post_reasoning", "double", double)
    await agent(user("?"))
    assert prompts_of(agent)[-1][-1]["content"] == "22"


async def test_what_it_observes_it_remembers() -> None:
    agent = agent_of("Yes.")
    await agent.observe(Msg("bob", "It rains.", "assistant"))
    await agent.observe(None)
    await agent(user("Did it rain?"))
    assert "It rains." in str(prompts_of(agent)[0])


async def test_a_toolkit_is_shared_and_stays_as_it_is() -> None:
    toolkit = toolkit_of(add)
    notebooks = [PlanNotebook(), PlanNotebook()]
    agents = [agent_of("Hi.", toolkit=toolkit, plan_notebook=each) for each in notebooks]
    for agent in agents:
        await agent(user("Hello"))
        tools = agent.model.calls[0].tools  # type: ignore[attr-defined]
        assert "create_plan" in [each["function"]["name"] for each in tools]
    assert [*toolkit.tools] == ["add"]


async def test_a_model_may_choose_groups_of_tools() -> None:
    toolkit = toolkit_of()
    toolkit.create_tool_group("sums", "For sums", notes="Add two numbers at a time.")
    toolkit.register_tool_function(add, "sums")
    choose = [call("reset_equipped_tools", group_names=["sums"])]
    agent = agent_of(choose, [call("add", a=1, b=2)], "3", toolkit=toolkit, enable_meta_tool=True)
    await agent(user("?"))
    first, second, third = agent.model.calls  # type: ignore[attr-defined]
    assert [each["function"]["name"] for each in first.tools] == ["reset_equipped_tools"]
    assert [each["function"]["name"] for each in second.tools] == ["add", "reset_equipped_tools"]
    assert "Add two numbers at a time." in str(second.messages[0])
    assert third.messages[-1]["content"] == "3"


async def test_two_questions_at_once_are_answered_one_after_the_other() -> None:
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(0)
        return "waited"

    lines = [[call("wait")], "first answer", [call("wait")], "second answer"]
    agent = agent_of(*lines, toolkit=toolkit_of(wait))
    replies = await asyncio.gather(agent(user("first")), agent(user("second")))
    assert [each.get_text_content() for each in replies] == ["first answer", "second answer"]
    assert [each for each in await history(agent) if "wait" not in each] == [
        "user: first",
        "assistant: first answer",
        "user: second",
        "assistant: second answer",
    ]


async def test_a_tool_that_asks_its_own_agent_is_told_so() -> None:
    async def ask_yourself() -> str:
        """Ask the agent itself."""
        await agent(user("?"))
        return ""

    agent = agent_of([call("ask_yourself")], "I cannot.", toolkit=toolkit_of(ask_yourself))
    assert (await agent(user("Ask yourself!"))).get_text_content() == "I cannot."
    assert "AgentBusy" in prompts_of(agent)[-1][-1]["content"]


async def test_an_agent_may_be_another_ones_tool() -> None:
    helper = agent_of("It is 4.")

    async def ask_helper(question: str) -> str:
        """Ask a colleague."""
        reply = await helper(user(question))
        return reply.get_text_content() or ""

    agent = agent_of([call("ask_helper", question="2+2?")], "4.", toolkit=toolkit_of(ask_helper))
    await agent(user("2+2?"))
    assert prompts_of(agent)[-1][-1]["content"] == "It is 4."


@pytest.mark.parametrize(
    "wrong",
    [{"long_term_memory_mode": "always"}, {"max_iters": 0}, {"knowledge": ["a base"]}],
    ids=["mode", "steps", "knowledge"],
)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        agent_of("", **wrong)


# --- hints ---


async def test_a_hint_is_shown_once_and_only_then_forgotten() -> None:
    agent = agent_of(ModelUnavailable("down"), "I see.", "And now.")
    await agent.memory.add(user("Mind the gap."), marks="hint")
    with pytest.raises(ModelUnavailable):
        await agent(user("Hi"))
    await agent()
    assert "Mind the gap." in str(prompts_of(agent)[1])
    await agent(user("And?"))
    assert "Mind the gap." not in str(prompts_of(agent)[2])
    assert await history(agent) == [
        *("user: Hi", "assistant: I see.", "user: And?", "assistant: And now.")
    ]


async def test_a_hint_that_comes_while_the_model_speaks_waits_for_its_turn() -> None:
    async def remind() -> str:
        """Leave a hint."""
        return ""

    agent = agent_of(toolkit=toolkit_of(remind))

    class Interjects(ScriptedModel):
        async def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if not self.calls:
                await agent.memory.add(user("New hint."), marks="hint")
            return await super().__call__(*args, **kwargs)

    agent.model = Interjects([call("remind")], "Done.")
    await agent(user("Go"))
    assert "New hint." in str(prompts_of(agent)[1])


async def test_the_plan_is_shown_at_each_step_and_never_stored() -> None:
    step = {"name": "dig", "description": "dig deep", "expected_outcome": "a hole"}
    plan = {"name": "Garden", "description": "d", "expected_outcome": "e", "subtasks": [step, step]}
    lines = [[call("create_plan", **plan)], [call("add", a=1, b=2)], "Dug."]
    shown: list[str] = []
    agent = agent_of(*lines, plan_notebook=PlanNotebook(), print_hint_msg=True)
    agent.register_instance_hook(
        "pre_print", "note", lambda self, kwargs: shown.append(str(kwargs["msg"].content))
    )
    await agent(user("Dig!"))
    first, second, third = map(str, prompts_of(agent))
    assert "system-hint" not in first
    assert second.count("You are at number 0") == third.count("You are at number 0") == 1
    assert "system-hint" not in str(await agent.memory.get_memory())
    assert sum("system-hint" in each for each in shown) == 2


async def test_a_hint_does_not_push_the_question_out_of_a_short_prompt() -> None:
    step = {"name": "dig", "description": "dig deep", "expected_outcome": "a hole"}
    plan = {"name": "Garden", "description": "d", "expected_outcome": "e", "subtasks": [step]}
    long = [[text("so it goes " * 60), call("add", a=1, b=1)] for _ in range(4)]
    agent = agent_of(
        [call("create_plan", **plan)],
        *long,
        "Dug.",
        plan_notebook=PlanNotebook(),
        formatter=OpenAIChatFormatter(max_tokens=400),
    )
    await agent(user("Dig where the oak stands!"))
    assert all("where the oak stands" in str(each) for each in prompts_of(agent))
    assert "You are at number 0" in str(prompts_of(agent)[-1])


# --- answers in a form ---


@pytest.mark.parametrize(
    "form", [Sum, {"type": "object", "properties": {"total": {"type": "integer"}}}]
)
async def test_an_answer_in_a_form(form: Any) -> None:
    lines = [[call("add", a=1, b=2)], [text("Here."), call("generate_response", total=3)]]
    agent = agent_of(*lines)
    reply = await agent(user("?"), structured_model=form)
    assert reply.metadata["total"] == 3
    assert reply.get_text_content() == "Here."
    first, _ = agent.model.calls  # type: ignore[attr-defined]
    assert first.tool_choice == "required"
    assert [each["function"]["name"] for each in first.tools] == ["add", "generate_response"]
    assert await unanswered(agent.memory) == []
    assert (await agent.memory.get_memory())[-1].metadata["total"] == 3
    agent.model = ScriptedModel("Hi.")
    await agent(user("And in words?"))
    assert "generate_response" not in str(agent.model.calls[0].tools)


async def test_a_wrong_answer_is_told_what_is_wrong() -> None:
    class Answer(msgspec.Struct):
        total: int

    wrong, right = call("generate_response", total="many"), call("generate_response", total="3")
    agent = agent_of([wrong], [right])
    reply = await agent(user("?"), structured_model=Answer)
    assert reply.metadata == {"total": 3}
    assert "$.total" in prompts_of(agent)[1][-1]["content"]
    assert reply.get_text_content() == '{"total": 3}'


async def test_an_answer_in_the_text_is_found() -> None:
    agent = agent_of('Sure! ```json\n{"total": 3, "words": "three"}\n```')
    reply = await agent(user("?"), structured_model=Sum)
    assert reply.metadata == {"total": 3, "words": "three"}


async def test_a_model_without_tools_is_shown_the_form() -> None:
    agent = agent_of("It is three.", '{"total": 3}')
    reply = await agent(user("?"), structured_model=Sum)
    assert reply.metadata == {"total": 3, "words": ""}
    assert '"total"' in str(prompts_of(agent)[1][-1]).replace('\\"', '"')


async def test_a_model_that_will_not_answer_in_a_form_is_reminded_and_survived() -> None:
    agent = agent_of("three", "three", "It is three.", max_iters=2)
    reply = await agent(user("?"), structured_model=Sum)
    assert "generate_response" in str(prompts_of(agent)[1][-1])
    assert (reply.metadata, reply.get_text_content()) == ({}, "It is three.")
    assert "system-hint" not in str(await agent.memory.get_memory())


async def test_a_tool_of_the_programs_with_that_name_gives_way() -> None:
    def generate_response(total: str) -> str:
        """Do something else."""
        raise AssertionError

    agent = agent_of([call("generate_response", total=3)], toolkit=toolkit_of(generate_response))
    reply = await agent(user("?"), structured_model=Sum)
    assert reply.metadata["total"] == 3


# --- models that fail ---


@pytest.mark.parametrize("error", [ModelUnavailable("busy"), TimeoutError(), KeyError("choices")])
async def test_a_model_that_fails_fails_the_reply_and_nothing_else(error: Exception) -> None:
    agent = agent_of([call("add", a=1, b=2)], error, "Here again.")
    with pytest.raises(type(error)):
        await agent(user("?"))
    assert await history(agent) == ["user: ?", "assistant: add?", "system: add!"]
    assert (await agent()).get_text_content() == "Here again."
    await check_for_all_providers(await agent.memory.get_memory())


async def test_a_stream_that_breaks_leaves_no_call_open() -> None:
    cut: Any = {
        "type": "tool_use",
        "id": "c",
        "name": "add",
        "input": {},
        "raw_input": '{"a": 1, "b',
    }
    pieces = [[text("Let")], [text("Let me"), cut]]
    agent = agent_of(model=AnyModel(broken_stream(pieces, ModelUnavailable("hung up"))))
    with pytest.raises(ModelUnavailable):
        await agent(user("?"))
    assert await history(agent) == ["user: ?", "assistant: Let me add?", "system: add!"]
    assert "There is no result" in str(await agent.memory.get_memory())
    await check_for_all_providers(await agent.memory.get_memory())
    agent.model = ScriptedModel("Now.")
    await agent()
    assert await unanswered(agent.memory) == []


async def test_a_stream_that_breaks_while_it_thinks_leaves_nothing() -> None:
    thought: Any = {"type": "thinking", "thinking": "Hm"}
    agent = agent_of(model=AnyModel(broken_stream([[thought]], ModelUnavailable("hung up"))))
    with pytest.raises(ModelUnavailable):
        await agent(user("?"))
    assert await history(agent) == ["user: ?"]


async def test_arguments_that_were_cut_off_are_told_and_not_used() -> None:
    cut: Any = {
        "type": "tool_use",
        "id": "c",
        "name": "add",
        "input": {"a": 1},
        "raw_input": '{"a": 1, ',
    }
    agent = agent_of([cut], "Sorry.")
    await agent(user("?"))
    assert "cut off" in prompts_of(agent)[1][-1]["content"]


@pytest.mark.parametrize("junk", ["text", None, {"content": []}, 3])
async def test_what_is_no_answer_is_a_clear_error(junk: Any) -> None:
    agent = agent_of(model=AnyModel(junk))
    with pytest.raises(ModelFailed, match="instead of an answer"):
        await agent(user("?"))
    assert await history(agent) == ["user: ?"]


@pytest.mark.parametrize(
    "junk",
    [
        [{"type": "tool_use"}],
        [{"type": "tool_use", "id": "", "name": "", "input": "{"}],
        [{"type": "tool_use", "id": 7, "name": "add", "input": None}],
        ["just text"],
        [call("add", "same", a=1, b=1), call("add", "same", a=2, b=2)],
        [{"type": "tool_use", "id": "x", "name": "no such tool", "input": {}}],
        [{"no": "type"}, call("add", a=1, b=1)],
        [
            call("add", "x", a=1, b=1),
            {"type": "tool_result", "id": "x", "name": "add", "output": ""},
        ],
        [{"type": "tool_result", "id": "x", "name": "add", "output": "made up"}],
        [{"type": "text", "text": None}, {"type": "thinking"}],
        [{"type": "image", "source": {"type": "url", "url": "http://example.org/a.png"}}],
    ],
)
async def test_broken_blocks_are_survived(junk: list[Any]) -> None:
    agent = agent_of(junk, "Sorry.", "Fine.")
    await agent(user("?"))
    assert await unanswered(agent.memory) == []
    await check_for_all_providers(await agent.memory.get_memory())
    await agent(user("Again?"))
    await check_for_all_providers(await agent.memory.get_memory())


@pytest.mark.parametrize("nothing", [[], [{"type": "thinking", "thinking": "Hm"}], [text("  ")]])
async def test_an_answer_that_says_nothing_is_asked_again(nothing: list[Any]) -> None:
    agent = agent_of(nothing, "Here.")
    assert (await agent(user("?"))).get_text_content() == "Here."
    assert "empty" in str(prompts_of(agent)[1][-1])
    assert await history(agent) == ["user: ?", "assistant: Here."]


async def test_a_model_that_loops_sums_up_in_the_end() -> None:
    loop = [[call("add", a=1, b=1)] for _ in range(3)]
    agent = agent_of(*loop, "So far: 2.", max_iters=3)
    assert (await agent(user("?"))).get_text_content() == "So far: 2."
    last = agent.model.calls[-1]  # type: ignore[attr-defined]
    assert last.tool_choice == "none"
    assert "all 3 steps" in str(last.messages[-1])
    assert (await history(agent))[-1] == "assistant: So far: 2."
    assert "all 3 steps" not in str(await agent.memory.get_memory())


@pytest.mark.parametrize(
    "last", [ModelUnavailable("down"), [], [call("add", a=1, b=1)]], ids=["fails", "empty", "calls"]
)
async def test_a_model_that_cannot_sum_up_is_survived(last: Any) -> None:
    agent = agent_of([call("add", a=1, b=1)], last, max_iters=1)
    reply = await agent(user("?"))
    assert "did not finish within 1 steps" in (reply.get_text_content() or "")
    assert (await agent.memory.get_memory())[-1].id == reply.id
    assert await unanswered(agent.memory) == []
    await check_for_all_providers(await agent.memory.get_memory())


async def test_a_memory_that_fails_fails_the_reply_clearly() -> None:
    class Full(InMemoryMemory):
        async def add(self, memories: Any, *args: Any, **kwargs: Any) -> None:
            if isinstance(memories, Msg) and memories.role == "assistant":
                raise OSError("the disk is full")
            await super().add(memories, *args, **kwargs)

    agent = agent_of("Hi.", memory=Full())
    with pytest.raises(OSError, match="disk is full"):
        await agent(user("?"))
    assert await history(agent) == ["user: ?"]


# --- state and life ---


async def test_a_crash_in_the_middle_of_a_call_can_be_gone_on_from(tmp_path: Path) -> None:
    session = JSONSession(tmp_path)
    agent = agent_of(plan_notebook=PlanNotebook())
    await agent.observe(user("What is 1 + 2?"))
    await agent.observe(Msg("Friday", [call("add", a=1, b=2)], "assistant"))
    await session.save_session_state("s", agent=agent)  # and the process is gone

    again = agent_of("It is 3.", plan_notebook=PlanNotebook())
    again.name = "Somebody"
    await session.load_session_state("s", agent=again)
    assert again.name == "Friday"
    assert (await again()).get_text_content() == "It is 3."
    assert await unanswered(again.memory) == []
    assert "There is no result" in prompts_of(again)[0][-1]["content"]


async def test_the_state_of_an_agent(tmp_path: Path) -> None:
    agent = agent_of("Hi.", plan_notebook=PlanNotebook())
    agent.toolkit.create_tool_group("sums", "For sums", active=True)
    await agent(user("Hello"))
    own = {"name", "_sys_prompt", "_archive_session"}
    assert set(agent.state_dict()) == {*own, "memory", "toolkit", "plan_notebook"}
    again = agent_of(plan_notebook=PlanNotebook())
    again.toolkit.create_tool_group("sums", "For sums")
    again.load_state_dict(agent.state_dict())
    assert await history(again) == await history(agent)
    assert again.toolkit.active_groups == ["sums"]


async def test_a_state_of_agentscopes_can_be_loaded() -> None:
    said = Msg("bob", "Hello", "user").to_dict()
    state = {
        "name": "Jarvis",
        "_sys_prompt": "You help.",
        "memory": {"_compressed_summary": "", "content": [[said, []]]},
        "toolkit": {"active_groups": []},
    }
    agent = agent_of("Hi.")
    agent.load_state_dict(state)
    assert agent.name == "Jarvis"
    assert await history(agent) == ["user: Hello"]


async def test_an_agent_is_gone_when_nobody_has_it() -> None:
    gc.collect()
    gc.disable()
    try:
        config = CompressionConfig(trigger_threshold=3000, summariser=ExtractiveSummary())
        agent = agent_of(
            [call("add", a=1, b=2)], "3", compression_config=config, plan_notebook=PlanNotebook()
        )
        await agent(user("?"))
        with pytest.raises(ModelFailed):
            await agent(user("the script is over"))
        seen = weakref.ref(agent)
        del agent
        assert seen() is None
    finally:
        gc.enable()


async def test_what_is_printed_is_what_is_said() -> None:
    shown: list[tuple[str, bool]] = []

    def note(agent: ReActAgent, kwargs: dict[str, Any]) -> None:
        shown.append((str(kwargs["msg"].content), kwargs["last"]))

    agent = agent_of([call("add", a=1, b=2)], "Three.", stream=True)
    agent.register_instance_hook("pre_print", "note", note)
    await agent(user("?"))
    assert [last for _, last in shown].count(True) == 3
    assert shown[-1] == (str([text("Three.")]), True)
    assert any("Thr'" in content and not last for content, last in shown)


def test_the_configuration_stands_in_the_class_too() -> None:
    assert ReActAgent.CompressionConfig is CompressionConfig
    agent = ReActAgent("a", "", ScriptedModel(), OpenAIChatFormatter())
    assert agent.sys_prompt == ""
