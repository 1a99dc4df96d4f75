"""A person among agents: asked at the terminal or otherwise, in words or in a form."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pydantic
import pytest

from memoryspace.agent import (
    AgentBase,
    TerminalUserInput,
    UserAgent,
    UserInputBase,
    UserInputData,
)
from memoryspace.agent.terminal import Terminal
from memoryspace.message import Msg


class Saying(UserInputBase):
    def __init__(self, *blocks: Any, structured: dict[str, Any] | None = None) -> None:
        self.data = UserInputData([*blocks], structured)
        self.asked: list[Any] = []

    async def __call__(
        self, agent_id: str, agent_name: str, *, structured_model: Any = None
    ) -> UserInputData:
        self.asked.append((agent_id, agent_name, structured_model))
        return self.data


Answers = Callable[..., list[str]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Let a person type these lines; return the prompts they saw."""

    def typed(*lines: str) -> list[str]:
        left, prompts = [*lines], []

        def read(prompt: str) -> str:
            prompts.append(prompt)
            if not left:
                raise EOFError
            return left.pop(0)

        monkeypatch.setattr("builtins.input", read)
        return prompts

    return typed


@pytest.fixture(autouse=True)
def terminal_again() -> Iterator[None]:
    yield
    UserAgent.override_class_input_method(TerminalUserInput())


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def user() -> UserAgent:
    agent = UserAgent("Bob")
    agent.set_console_output_enabled(False)
    return agent


async def test_a_person_is_asked_at_the_terminal(answers: Answers) -> None:
    prompts = answers("hello")
    msg = await user()()
    assert (msg.name, msg.role, msg.content, msg.metadata) == ("Bob", "user", "hello", {})
    assert prompts == ["User Input: "]


async def test_what_a_person_says_is_shown(
    answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    answers("hello")
    await UserAgent("Bob")()
    shown = capsys.readouterr().out
    assert shown.lstrip("\n") == "Bob: hello\n"  # another agent may have left a line unfinished


async def test_one_text_becomes_the_content_and_several_blocks_stay_blocks() -> None:
    agent = user()
    agent.override_instance_input_method(Saying(text("hello")))
    assert (await agent()).content == "hello"
    agent.override_instance_input_method(Saying(text("a"), text("b")))
    assert (await agent()).content == [text("a"), text("b")]
    agent.override_instance_input_method(Saying())
    assert (await agent()).content == ""


async def test_a_form_stands_in_the_metadata() -> None:
    agent, way = user(), Saying(text("x"), structured={"age": 5})
    agent.override_instance_input_method(way)
    msg = await agent(Msg("Ann", "how old?", "assistant"), structured_model={"type": "object"})
    assert msg.metadata == {"age": 5}
    assert way.asked == [(agent.id, "Bob", {"type": "object"})]


async def test_an_instance_overrides_its_class_and_a_class_its_parent() -> None:
    class Guest(UserAgent):
        pass

    Guest.override_class_input_method(Saying(text("guest")))
    UserAgent.override_class_input_method(Saying(text("user")))
    guest, other = Guest("a"), user()
    assert (await guest()).content == "guest"
    assert (await other()).content == "user"
    guest.override_instance_input_method(Saying(text("mine")))
    assert (await guest()).content == "mine"
    assert (await Guest("b")()).content == "guest"


def test_only_an_input_method_will_do() -> None:
    for override in (
        user().override_instance_input_method,
        UserAgent.override_class_input_method,
    ):
        with pytest.raises(ValueError, match="must be a UserInputBase, got str"):
            override("no")  # type: ignore[arg-type]


async def test_a_person_observes_and_hears_no_interrupt() -> None:
    agent = user()
    assert await agent.observe(Msg("Ann", "hello", "assistant")) is None
    with pytest.raises(NotImplementedError):
        await agent.handle_interrupt()


# -- forms -----------------------------------------------------------------------------------------


class Person(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(description="in years")
    tags: list[str] = []
    nick: str | None = None


class Place(msgspec.Struct):
    city: str
    height: float = 0.0


async def test_each_field_is_asked_for(answers: Answers) -> None:
    prompts = answers("hello", "5", "42", '["a"]', "Bo")
    msg = await user()(structured_model=Person)
    assert msg.content == "hello"
    assert msg.metadata == {"name": "5", "age": 42, "tags": ["a"], "nick": "Bo"}
    assert prompts[1:3] == ["  name (string): ", "  age (in years): "]


async def test_optional_fields_may_be_skipped(answers: Answers) -> None:
    prompts = answers("hello", "Bob", "42", "", "")
    msg = await user()(structured_model=Person)
    assert msg.metadata == {"name": "Bob", "age": 42, "tags": [], "nick": None}
    assert prompts[3] == "  tags (array; empty to skip): "


async def test_a_field_is_asked_for_until_it_fits(
    answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = answers("hello", "Bob", "old", "", "42", "x", '["x"]', "")
    msg = await user()(structured_model=Person)
    assert (msg.metadata["age"], msg.metadata["tags"]) == (42, ["x"])
    assert len([each for each in prompts if "age" in each]) == 3
    assert "old" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "model",
    [
        Place,
        {
            "type": "object",
            "properties": {"city": {"type": "string"}, "height": {"type": "number"}},
            "required": ["city"],
        },
    ],
)
async def test_structs_and_schemas_are_forms_too(answers: Answers, model: Any) -> None:
    answers("hello", "Rome", "21.5")
    msg = await user()(structured_model=model)
    assert msg.metadata == {"city": "Rome", "height": 21.5}


async def test_fields_that_do_not_fit_together_are_asked_for_again(answers: Answers) -> None:
    class Span(pydantic.BaseModel):
        first: int
        last: int

        @pydantic.model_validator(mode="after")
        def ordered(self) -> Span:
            if self.first > self.last:
                raise ValueError("first comes after last")
            return self

    answers("hello", "2", "1", "1", "2")
    assert (await user()(structured_model=Span)).metadata == {"first": 1, "last": 2}


# -- the terminal ----------------------------------------------------------------------------------


async def test_the_end_of_input_is_told(answers: Answers) -> None:
    answers()
    with pytest.raises(EOFError):
        await user()()


async def test_agents_go_on_while_a_person_thinks(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = threading.Event()

    def read(prompt: str) -> str:
        typed.wait()
        return "hello"

    monkeypatch.setattr("builtins.input", read)
    call = asyncio.create_task(user()())
    await asyncio.sleep(0)
    assert not call.done()
    typed.set()
    assert (await call).content == "hello"


async def test_a_line_nobody_waits_for_any_more_answers_the_next_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed, reads = threading.Event(), []

    def read(prompt: str) -> str:
        reads.append(prompt)
        typed.wait()
        return "hello"

    monkeypatch.setattr("builtins.input", read)
    terminal = Terminal()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(terminal.read("one? "), 0.01)
    second = asyncio.create_task(terminal.read("two? "))
    await asyncio.sleep(0)
    typed.set()
    assert await second == "hello"
    assert reads == ["one? "]
    assert capsys.readouterr().out == "two? "


async def test_questions_are_asked_one_after_another(answers: Answers) -> None:
    prompts = answers("a", "b")
    terminal = Terminal()
    lines = await asyncio.gather(terminal.read("one? "), terminal.read("two? "))
    assert lines == ["a", "b"]
    assert prompts == ["one? ", "two? "]


def test_a_line_for_a_loop_that_is_gone_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = threading.Event()

    def read(prompt: str) -> str:
        typed.wait()
        return "hello"

    async def give_up() -> None:
        await asyncio.wait_for(terminal.read("? "), 0.01)

    monkeypatch.setattr("builtins.input", read)
    terminal = Terminal()
    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    typed.set()
    assert asyncio.run(terminal.read("? ")) == "hello"


async def test_a_user_is_an_agent_with_hooks(answers: Answers) -> None:
    answers("hello")
    agent = user()
    agent.register_instance_hook(
        "post_reply", "sign", lambda agent, kwargs, out: Msg(out.name, out.content + "!", "user")
    )
    assert isinstance(agent, AgentBase)
    assert (await agent()).content == "hello!"
