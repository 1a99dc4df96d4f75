"""Tools: functions as models see them, and calls that always end in words."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from memoryspace.errors import InvalidInput
from memoryspace.message import ToolUseBlock
from memoryspace.session import JSONSession
from memoryspace.tool import ToolChooser, Toolkit, ToolResponse, told


def call_of(name: str, /, **arguments: Any) -> ToolUseBlock:
    return {"type": "tool_use", "id": "call-1", "name": name, "input": arguments}


async def answers(toolkit: Toolkit, call: ToolUseBlock) -> list[ToolResponse]:
    return [each async for each in await toolkit.call_tool_function(call)]


async def answer(toolkit: Toolkit, call: ToolUseBlock) -> str:
    return (await answers(toolkit, call))[-1].text


def with_tools(*functions: Callable[..., Any]) -> Toolkit:
    toolkit = Toolkit()
    for function in functions:
        toolkit.register_tool_function(function)
    return toolkit


def parameters_of(function: Callable[..., Any]) -> dict[str, Any]:
    (schema,) = with_tools(function).get_json_schemas()
    found: dict[str, Any] = schema["function"]["parameters"]
    return found


def find_train(start: str, end: str, seats: int = 1, *, quiet: bool = False) -> str:
    """Find a train.

    Only trains of this week are known.

    Args:
        start (`str`):
            The town to leave
            from.
        end (str): The town to go to: its name
        seats (int, optional): How many.

    Returns:
        str: a train
    """
    return f"{start}-{end}, {seats} seats{', quiet' if quiet else ''}"


@dataclass
class Place:
    town: str
    street: str = ""


class Box(msgspec.Struct):
    size: int
    places: list[Place]


class Inner(BaseModel):
    number: int


class Order(BaseModel):
    inner: Inner
    title: str = Field(description="how it is called")


# --- what a model sees ---


def test_a_function_is_described_by_its_signature_and_docstring() -> None:
    (schema,) = with_tools(find_train).json_schemas
    assert schema == {
        "type": "function",
        "function": {
            "name": "find_train",
            "description": "Find a train.\n\nOnly trains of this week are known.",
            "parameters": {
                "type": "object",
                "properties": {
                    "start": {"type": "string", "description": "The town to leave from."},
                    "end": {"type": "string", "description": "The town to go to: its name"},
                    "seats": {"type": "integer", "description": "How many.", "default": 1},
                    "quiet": {"type": "boolean", "default": False},
                },
                "required": ["start", "end"],
            },
        },
    }


def test_the_long_description_can_be_left_out_and_replaced() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(find_train, include_long_description=False)
    toolkit.register_tool_function(find_train, func_name="by_rail", func_description="By rail.")
    told_of = {
        each["function"]["name"]: each["function"]["description"] for each in toolkit.json_schemas
    }
    assert told_of == {"find_train": "Find a train.", "by_rail": "By rail."}


def test_self_and_open_ended_arguments_are_not_for_models() -> None:
    class Shop:
        def buy(self, what: str, *more: str, **options: Any) -> str:
            return what

    assert parameters_of(Shop().buy)["properties"] == {"what": {"type": "string"}}


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list, {"type": "array"}),
        (dict, {"type": "object"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Any, {}),
        (Path, {}),
        (Annotated[int, Field(description="hm")], {"type": "integer", "description": "hm"}),
    ],
)  # fmt: skip
def test_a_type_has_a_schema(kind: Any, schema: dict[str, Any]) -> None:
    def use(it) -> str:  # type: ignore[no-untyped-def]
        return ""

    use.__annotations__["it"] = kind
    assert parameters_of(use)["properties"]["it"] == schema


def test_parts_of_classes_stand_at_the_root() -> None:
    def use(box: Box, order: Order | None, either: Place | Order) -> str:
        return ""

    parameters = parameters_of(use)
    assert set(parameters["$defs"]) == {"Box", "Place", "Inner"}
    assert parameters["properties"]["box"] == {"$ref": "#/$defs/Box"}
    assert "$defs" not in str(parameters["properties"]).replace("#/$defs/", "")
    order = parameters["properties"]["order"]["anyOf"][0]["properties"]
    assert order["title"] == {"type": "string", "description": "how it is called"}
    assert len(parameters["properties"]["either"]["anyOf"]) == 2


def test_names_that_only_type_checkers_know_are_described_as_anything() -> None:
    def use(it: Unknown, number: int) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    assert parameters_of(use)["properties"] == {"it": {}, "number": {"type": "integer"}}


def test_preset_arguments_are_given_by_the_program_alone() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(find_train, preset_kwargs={"start": "Rome"})
    toolkit.register_tool_function(functools.partial(find_train, seats=4), func_name="for_four")
    first, second = (each["function"]["parameters"] for each in toolkit.json_schemas)
    assert (set(first["properties"]), first["required"]) == ({"end", "seats", "quiet"}, ["end"])
    assert set(second["properties"]) == {"start", "end", "quiet"}


async def test_a_model_cannot_change_what_is_preset() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(find_train, preset_kwargs={"start": "Rome"})
    assert await answer(toolkit, call_of("find_train", end="Pisa")) == "Rome-Pisa, 1 seats"
    refused = await answer(toolkit, call_of("find_train", start="Bonn", end="Pisa"))
    assert "there is no argument 'start'" in refused


async def test_a_schema_of_ones_own_is_shown_and_checked() -> None:
    toolkit = Toolkit()
    parameters = {
        "type": "object",
        "properties": {"start": {"type": "string"}, "end": {"enum": ["Pisa"]}},
        "required": ["start", "end"],
    }
    schema = {"type": "function", "function": {"name": "rail", "parameters": parameters}}
    toolkit.register_tool_function(find_train, json_schema=schema, preset_kwargs={"start": "Rome"})
    (shown,) = toolkit.json_schemas
    assert shown["function"]["name"] == "rail"
    assert shown["function"]["description"].startswith("Find a train.")
    assert shown["function"]["parameters"]["required"] == ["end"]
    assert await answer(toolkit, call_of("rail", end="Pisa")) == "Rome-Pisa, 1 seats"
    assert "wrong" in await answer(toolkit, call_of("rail", end="Bonn"))
    assert parameters["required"] == ["start", "end"]


# --- registering ---


@pytest.mark.parametrize("name", ["", "a b", "übung", "x" * 65, "a.b"])
def test_a_name_that_providers_refuse_is_refused_first(name: str) -> None:
    with pytest.raises(InvalidInput, match="func_name"):
        Toolkit().register_tool_function(find_train, func_name=name)


def test_a_name_that_is_taken() -> None:
    toolkit = with_tools(find_train)
    with pytest.raises(InvalidInput, match="already"):
        toolkit.register_tool_function(find_train)
    toolkit.register_tool_function(find_train, func_description="new", namesake_strategy="skip")
    assert toolkit.tools["find_train"].json_schema["function"]["description"] != "new"
    toolkit.register_tool_function(find_train, func_description="new", namesake_strategy="override")
    assert toolkit.tools["find_train"].json_schema["function"]["description"] == "new"
    toolkit.remove_tool_function("find_train")
    toolkit.remove_tool_function("find_train")
    assert toolkit.json_schemas == []
    with pytest.raises(InvalidInput, match="no tool"):
        toolkit.remove_tool_function("find_train", allow_not_exist=False)


def test_an_argument_by_position_alone_and_a_strange_schema_are_refused() -> None:
    def by_position(a: int, /) -> str:
        return ""

    with pytest.raises(InvalidInput, match="position"):
        Toolkit().register_tool_function(by_position)
    with pytest.raises(InvalidInput, match="json_schema"):
        Toolkit().register_tool_function(find_train, json_schema={"name": "x"})


# --- calling ---


async def test_all_kinds_of_functions_answer() -> None:
    def plain() -> str:
        return "plain"

    async def coroutine() -> ToolResponse:
        return told("coroutine")

    def generator() -> Iterator[str]:
        yield "ge"
        yield "generator"

    async def async_generator() -> AsyncGenerator[ToolResponse, None]:
        yield told("as")
        yield told("async_generator")

    async def gives_a_generator() -> AsyncGenerator[ToolResponse, None]:
        return async_generator()

    class Parrot:
        async def __call__(self, word: str) -> str:
            """Say a word."""
            return word

    toolkit = with_tools(plain, coroutine, generator, async_generator, gives_a_generator)
    toolkit.register_tool_function(Parrot(), func_name="callable")
    assert [each.text for each in await answers(toolkit, call_of("plain"))] == ["plain"]
    assert [each.text for each in await answers(toolkit, call_of("coroutine"))] == ["coroutine"]
    assert [each.text for each in await answers(toolkit, call_of("generator"))] == [
        "ge",
        "generator",
    ]
    streamed = ["as", "async_generator"]
    assert [each.text for each in await answers(toolkit, call_of("async_generator"))] == streamed
    assert [each.text for each in await answers(toolkit, call_of("gives_a_generator"))] == streamed
    assert await answer(toolkit, call_of("callable", word="hi")) == "hi"


async def test_a_plain_function_does_not_hold_up_the_loop() -> None:
    release = threading.Event()

    def waits() -> str:
        assert release.wait(10)
        return threading.current_thread().name

    calling = asyncio.create_task(answer(with_tools(waits), call_of("waits")))
    await asyncio.sleep(0)
    release.set()  # which only a running loop gets to
    assert await calling != threading.main_thread().name


async def test_what_is_no_response_becomes_one() -> None:
    def data() -> dict[str, Any]:
        return {"a": [1, 2]}

    def nothing() -> None: ...

    def strange() -> object:
        return object()

    def sloppy() -> ToolResponse:
        return ToolResponse("just text")  # type: ignore[arg-type]  # that is what is tested

    toolkit = with_tools(data, nothing, strange, sloppy)
    assert await answer(toolkit, call_of("sloppy")) == "just text"
    assert await answer(toolkit, call_of("data")) == '{"a":[1,2]}'
    assert await answer(toolkit, call_of("nothing")) == "Done."
    assert "must return" in await answer(toolkit, call_of("strange"))


async def test_arguments_arrive_as_the_types_that_are_asked_for() -> None:
    got: list[Any] = []

    async def take(
        place: Place, order: Order, many: list[Box], number: int, either: Order | int
    ) -> None:
        got.extend([place, order, many, number, either])

    places = [{"town": "Rome"}]
    arguments = {
        "place": {"town": "Rome"},
        "order": {"inner": {"number": 2}, "title": "t"},
        "many": [{"size": "3", "places": places}],
        "number": "7",
        "either": 8,
    }
    assert await answer(with_tools(take), call_of("take", **arguments)) == "Done."
    assert got == [
        Place("Rome"),
        Order(inner=Inner(number=2), title="t"),
        [Box(3, [Place("Rome")])],
        7,
        8,
    ]


async def test_wrong_arguments_are_told_and_nothing_is_called() -> None:
    called: list[int] = []

    def pick(number: int, colour: Literal["red"] = "red") -> str:
        called.append(number)
        return ""

    toolkit = with_tools(pick)
    assert "number is missing" in await answer(toolkit, call_of("pick"))
    text = await answer(toolkit, call_of("pick", number="many", colour="blue", size=3))
    for part in ("number: Expected `int`", "colour: ", "there is no argument 'size'"):
        assert part in text
    assert called == []


@pytest.mark.parametrize(
    "call",
    [
        {"input": {}, "raw_input": '{"path": "a'},
        {"input": {"path": "a"}, "raw_input": '{"path": "a'},
        {"input": '{"path": "a'},
        {"input": "[]"},
        {"input": None},
    ],
)
async def test_arguments_that_were_cut_off_call_nothing(call: dict[str, Any]) -> None:
    removed: list[str] = []

    def remove(path: str = "everything") -> str:
        removed.append(path)
        return ""

    block: Any = {"type": "tool_use", "id": "1", "name": "remove", **call}
    assert "cut off" in await answer(with_tools(remove), block)
    assert removed == []


async def test_arguments_may_be_the_text_a_model_wrote() -> None:
    block: Any = {"type": "tool_use", "id": "1", "name": "find_train"}
    toolkit = with_tools(find_train)
    assert await answer(toolkit, {**block, "input": '{"start": "A", "end": "B"}'}) == "A-B, 1 seats"
    for raw in ("", '{"start": "A", "end": "B",}', '{"start": "A", "end": "B"}\n```'):
        given = {"input": {"start": "A", "end": "B"}, "raw_input": raw}
        assert await answer(toolkit, {**block, **given}) == "A-B, 1 seats"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(["place", "order", "many", "number", "either", "word", "other"])


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["take", "find_train"]) | JSON,
            "input": st.dictionaries(NAMES, JSON, max_size=6) | JSON,
            "raw_input": st.text(max_size=30) | JSON,
        },
    )
)
def test_whatever_a_model_sends_it_is_answered_in_words(call: dict[str, Any]) -> None:
    async def take(
        place: Place, order: Order, many: list[Box], number: int, either: Order | int, word: str
    ) -> str:
        return "taken"

    toolkit = with_tools(take, find_train)
    found = asyncio.run(answers(toolkit, {"type": "tool_use", "id": "1", **call}))  # type: ignore[typeddict-item]
    assert len(found) == 1
    assert found[0].text


async def test_an_unknown_tool_and_one_put_away_are_told() -> None:
    toolkit = with_tools(find_train)
    toolkit.create_tool_group("maps", "Maps")
    toolkit.register_tool_function(find_train, "maps", func_name="find_way")
    assert "no tool 'fly'. Tools at hand: find_train." in await answer(toolkit, call_of("fly"))
    assert "'maps', which is not active" in await answer(toolkit, call_of("find_way"))


async def test_a_tools_error_is_told_in_its_own_words(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> AsyncGenerator[ToolResponse, None]:
        yield told("half of it")
        raise ValueError("the secret plan is missing")

    (first, last) = await answers(with_tools(fails), call_of("fails"))
    assert first.text == "half of it"
    assert last.text == "half of it\nError: ValueError: the secret plan is missing"
    assert "secret" not in caplog.text


async def test_a_plain_function_that_runs_out_of_items_does_not_hang_the_call() -> None:
    def first() -> str:
        return next(iter(()))

    async with asyncio.timeout(10):
        (answer,) = await answers(with_tools(first), call_of("first"))
    assert answer.text == "Error: RuntimeError: the function raised StopIteration"


async def test_a_cancelled_call_is_told_as_interrupted_and_stays_cancelled() -> None:
    seen: list[ToolResponse] = []
    reached, cleaned = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncGenerator[ToolResponse, None]:
        try:
            yield told("the beginning")
            reached.set()
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    async def consume() -> None:
        responses = await with_tools(slow).call_tool_function(call_of("slow"))
        async for each in responses:
            seen.append(each)  # noqa: PERF401  # what came before the end counts

    task = asyncio.create_task(consume())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [each.is_interrupted for each in seen] == [False, True]
    assert seen[-1].text.startswith("the beginning\nThe call was interrupted")
    assert cleaned.is_set()


async def test_a_timeout_around_a_call_is_a_timeout() -> None:
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await answers(with_tools(slow), call_of("slow"))


async def test_something_cancelled_within_a_tool_is_the_tools_own_trouble() -> None:
    async def cancels_itself() -> str:
        raise asyncio.CancelledError

    (only,) = await answers(with_tools(cancels_itself), call_of("cancels_itself"))
    assert (only.text, only.is_interrupted) == ("Error: CancelledError", False)


# --- groups ---


def toolkit_with_groups() -> Toolkit:
    toolkit = with_tools(find_train)
    toolkit.create_tool_group("maps", "For finding ways", notes="Ask for one town at a time.")
    toolkit.create_tool_group("files", "For reading and writing", active=True)
    toolkit.register_tool_function(find_train, "maps", func_name="find_way")
    toolkit.register_tool_function(find_train, "files", func_name="read_file")
    return toolkit


def names(toolkit: Toolkit) -> list[str]:
    return [each["function"]["name"] for each in toolkit.json_schemas]


def test_groups_put_tools_at_hand_and_away() -> None:
    toolkit = toolkit_with_groups()
    assert names(toolkit) == ["find_train", "read_file"]
    toolkit.update_tool_groups(["maps", "basic"], active=True)
    toolkit.update_tool_groups(["files"], active=False)
    assert names(toolkit) == ["find_train", "find_way"]
    assert "one town at a time" in toolkit.get_activated_notes()
    toolkit.remove_tool_groups("maps")
    assert [*toolkit.tools] == ["find_train", "read_file"]
    for wrong in (
        lambda: toolkit.create_tool_group("files", ""),
        lambda: toolkit.create_tool_group("basic", ""),
        lambda: toolkit.update_tool_groups(["maps"], active=True),
        lambda: toolkit.remove_tool_groups(["basic"]),
        lambda: toolkit.register_tool_function(find_train, "maps"),
    ):
        with pytest.raises(InvalidInput):
            wrong()


async def test_which_groups_are_active_is_state(tmp_path: Path) -> None:
    toolkit = toolkit_with_groups()
    toolkit.update_tool_groups(["maps"], active=True)
    toolkit.update_tool_groups(["files"], active=False)
    session = JSONSession(tmp_path)
    await session.save_session_state("s", toolkit=toolkit)
    again = toolkit_with_groups()
    await session.load_session_state("s", toolkit=again)
    assert (again.active_groups, names(again)) == (["maps"], ["find_train", "find_way"])


async def test_a_model_chooses_its_groups() -> None:
    toolkit, own = toolkit_with_groups(), Toolkit()
    chooser = ToolChooser(toolkit)
    own.register_tool_function(chooser.reset_equipped_tools, json_schema=chooser.json_schema)
    (schema,) = own.json_schemas
    chosen = schema["function"]["parameters"]["properties"]["group_names"]
    assert chosen["items"]["enum"] == ["maps", "files"]
    assert "maps: For finding ways" in chosen["description"]
    text = await answer(own, call_of("reset_equipped_tools", group_names=["maps"]))
    assert text.startswith("Active groups: maps.")
    assert "one town at a time" in text
    assert toolkit.active_groups == ["maps"]
    assert "wrong" in await answer(own, call_of("reset_equipped_tools", group_names=["all"]))
