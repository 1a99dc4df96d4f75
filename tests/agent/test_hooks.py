"""Hooks run once per call, in order, for whom they were registered and nobody else."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.agent import AgentBase, InvalidHook
from memoryspace.message import Msg


class Parent(AgentBase):
    async def reply(self, msg: Msg, mood: str = "calm", *more: Any, loud: bool = False) -> Any:
        return {"text": msg.content, "mood": mood, "more": more, "loud": loud}

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        self.heard = msg


class Child(Parent):
    async def reply(self, *args: Any, **kwargs: Any) -> Any:
        return {**await super().reply(*args, **kwargs), "child": True}


class Grandchild(Child):
    async def reply(self, *args: Any, **kwargs: Any) -> Any:
        return await super().reply(*args, **kwargs)


class Sibling(Parent):
    pass


CLASSES: list[type[AgentBase]] = [AgentBase, Parent, Child, Grandchild, Sibling]


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    yield
    for each in CLASSES:
        each.clear_class_hooks()


def hello(text: str = "hello") -> Msg:
    return Msg("user", text, "user")


def noting(notes: list[str], what: str) -> Any:
    def hook(agent: AgentBase, arguments: dict[str, Any], *output: Any) -> None:
        notes.append(what)

    return hook


# -- before and after ------------------------------------------------------------------------------


async def test_a_pre_hook_gets_all_arguments_by_name() -> None:
    seen: list[Any] = []
    agent = Parent()
    agent.register_instance_hook("pre_reply", "see", lambda agent, kwargs: seen.append(kwargs))
    await agent(hello(), "gay", 1, 2, loud=True)
    await agent(msg=hello("you"))
    assert [{**each, "msg": each["msg"].content} for each in seen] == [
        {"msg": "hello", "mood": "gay", "more": (1, 2), "loud": True},
        {"msg": "you", "mood": "calm", "more": (), "loud": False},
    ]


async def test_a_pre_hook_may_replace_the_arguments() -> None:
    async def shout(agent: AgentBase, kwargs: dict[str, Any]) -> dict[str, Any]:
        kwargs["msg"].content += "!"
        return {**kwargs, "loud": True}

    agent, msg = Parent(), hello()
    agent.register_instance_hook("pre_reply", "one", shout)
    agent.register_instance_hook("pre_reply", "two", shout)
    assert await agent(msg, "gay", 1) == {
        "text": "hello!!",
        "mood": "gay",
        "more": (1,),
        "loud": True,
    }
    assert msg.content == "hello"


async def test_what_a_hook_changes_without_returning_it_stays_unchanged() -> None:
    def change(agent: AgentBase, kwargs: dict[str, Any], *output: Any) -> None:
        kwargs["msg"].content = "changed"
        kwargs["mood"] = "changed"
        for each in output:
            each["text"] = "changed"

    agent = Parent()
    agent.register_instance_hook("pre_reply", "change", change)
    agent.register_instance_hook("post_reply", "change", change)
    assert (await agent(hello()))["text"] == "hello"


async def test_a_post_hook_may_replace_the_output() -> None:
    async def count(agent: AgentBase, kwargs: dict[str, Any], output: Any) -> Any:
        return {**output, "count": output.get("count", 0) + 1}

    agent = Parent()
    agent.register_instance_hook("post_reply", "one", count)
    agent.register_instance_hook("post_reply", "two", count)
    assert (await agent(hello()))["count"] == 2


async def test_a_default_left_out_by_a_hook_applies_again() -> None:
    agent = Parent()
    agent.register_instance_hook("pre_reply", "cut", lambda agent, kwargs: {"msg": kwargs["msg"]})
    assert (await agent(hello(), "gay"))["mood"] == "calm"


async def test_unknown_arguments_of_a_hook_are_an_error() -> None:
    agent = Parent()
    agent.register_instance_hook("pre_reply", "add", lambda agent, kwargs: {**kwargs, "new": 1})
    with pytest.raises(TypeError, match="new"):
        await agent(hello())


async def test_a_reply_of_any_arguments_gets_them_as_they_were() -> None:
    class Open(AgentBase):
        async def reply(self, *args: Any, **kwargs: Any) -> Any:
            return args, kwargs

    agent = Open()
    agent.register_instance_hook("pre_reply", "add", lambda agent, kwargs: {**kwargs, "new": 1})
    assert await agent(1, 2, x=3) == ((1, 2), {"x": 3, "new": 1})


async def test_the_first_parameter_may_have_any_name() -> None:
    class This(AgentBase):
        async def reply(this, self: str) -> str:  # noqa: N805  # the point of it
            return self

    agent = This()
    agent.register_instance_hook("pre_reply", "see", lambda agent, kwargs: kwargs)
    assert await agent(self="me") == "me"


@pytest.mark.parametrize("result", ["text", 1, [], ("msg",)])
async def test_a_pre_hook_with_another_result_is_an_error(result: Any) -> None:
    agent = Parent()
    agent.register_instance_hook("pre_reply", "bad", lambda agent, kwargs: result)
    with pytest.raises(AssertionError, match="pre-hook must return"):
        await agent(hello())


async def test_other_objects_reach_a_hook_as_they_are() -> None:
    seen: list[Any] = []
    agent, other = Parent(), Parent()
    agent.register_instance_hook("pre_reply", "see", lambda agent, kwargs: seen.append(kwargs))
    await agent(hello(), other)
    assert seen[0]["mood"] is other


async def test_observing_and_printing_have_hooks_too(capsys: pytest.CaptureFixture[str]) -> None:
    def change(agent: AgentBase, kwargs: dict[str, Any]) -> dict[str, Any]:
        kwargs["msg"].content += " you"
        return kwargs

    agent, msg = Parent(), hello()
    agent.register_instance_hook("pre_observe", "change", change)
    agent.register_instance_hook("pre_print", "change", change)
    await agent.observe(msg)
    await agent.print(msg)
    assert isinstance(agent.heard, Msg)
    assert agent.heard.content == "hello you"
    assert capsys.readouterr().out == "user: hello you\n"
    assert msg.content == "hello"


async def test_a_hook_that_fails_fails_the_call() -> None:
    agent = Parent()
    agent.register_instance_hook("post_reply", "fail", lambda *anything: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await agent(hello())


# -- order, once, for whom -------------------------------------------------------------------------


async def test_instance_hooks_come_first_then_classes_from_the_base_down() -> None:
    notes: list[str] = []
    agent = Child()
    Child.register_class_hook("pre_reply", "a", noting(notes, "child"))
    AgentBase.register_class_hook("pre_reply", "b", noting(notes, "base"))
    Parent.register_class_hook("pre_reply", "c", noting(notes, "parent"))
    agent.register_instance_hook("pre_reply", "d", noting(notes, "first"))
    agent.register_instance_hook("pre_reply", "e", noting(notes, "second"))
    await agent(hello())
    assert notes == ["first", "second", "base", "parent", "child"]


async def test_a_name_registered_again_keeps_its_place() -> None:
    notes: list[str] = []
    agent = Child()
    agent.register_instance_hook("pre_reply", "a", noting(notes, "old"))
    agent.register_instance_hook("pre_reply", "b", noting(notes, "b"))
    agent.register_instance_hook("pre_reply", "a", noting(notes, "new"))
    Parent.register_class_hook("pre_reply", "a", noting(notes, "parent"))
    Parent.register_class_hook("pre_reply", "b", noting(notes, "class b"))
    Child.register_class_hook("pre_reply", "a", noting(notes, "child"))
    await agent(hello())
    assert notes == ["new", "b", "child", "class b"]


@pytest.mark.parametrize("kind", [Parent, Child, Grandchild, Sibling])
async def test_hooks_run_once_however_often_super_is_called(kind: type[Parent]) -> None:
    notes: list[str] = []
    agent = kind()
    agent.register_instance_hook("pre_reply", "a", noting(notes, "pre"))
    agent.register_instance_hook("post_reply", "a", noting(notes, "post"))
    await agent(hello())
    assert notes == ["pre", "post"]


async def test_calls_at_the_same_time_each_run_their_hooks() -> None:
    notes: list[str] = []
    agent = Grandchild()

    async def slow(agent: AgentBase, kwargs: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        notes.append("pre")

    agent.register_instance_hook("pre_reply", "slow", slow)
    await asyncio.gather(*(agent(hello()) for _ in range(3)))
    assert notes == ["pre"] * 3


async def test_a_call_from_within_a_call_runs_its_hooks() -> None:
    class Recursive(AgentBase):
        async def reply(self, depth: int) -> int:
            return 0 if depth == 0 else 1 + await self.reply(depth - 1)

    notes: list[str] = []
    agent = Recursive()
    agent.register_instance_hook("pre_reply", "a", noting(notes, "pre"))
    assert await agent(2) == 2
    assert notes == ["pre"] * 3


async def test_class_hooks_reach_subclasses_but_no_parent_and_no_sibling() -> None:
    notes: list[str] = []
    Child.register_class_hook("pre_reply", "a", noting(notes, "ran"))
    for kind, runs in [(Parent, 0), (Sibling, 0), (Child, 1), (Grandchild, 1)]:
        notes.clear()
        await kind()(hello())
        assert len(notes) == runs


async def test_an_instance_hook_is_that_instances_alone() -> None:
    notes: list[str] = []
    one, two = Parent(), Parent()
    one.register_instance_hook("pre_reply", "a", noting(notes, "ran"))
    await two(hello())
    assert notes == []


async def test_a_method_of_a_class_beside_ours_runs_hooks() -> None:
    class Polite:
        async def reply(self, msg: Msg) -> str:
            return f"dear {msg.content}"

    class Agent(Polite, Parent):  # type: ignore[misc]  # Polite takes fewer arguments
        pass

    notes: list[str] = []
    agent = Agent()
    agent.register_instance_hook("pre_reply", "a", noting(notes, "pre"))
    assert await agent(hello()) == "dear hello"
    assert notes == ["pre"]


async def test_a_class_may_name_further_methods_with_hooks() -> None:
    class Thinker(Parent):
        supported_hook_types: ClassVar = (
            *Parent.supported_hook_types,
            "pre_reasoning",
            "post_reasoning",
        )

        async def _reasoning(self) -> str:
            return "hm"

        async def reply(self, *args: Any, **kwargs: Any) -> Any:
            return await self._reasoning()

    agent = Thinker()
    agent.register_instance_hook("post_reasoning", "a", lambda agent, kwargs, out: out + "!")
    assert await agent() == "hm!"
    with pytest.raises(InvalidHook):
        Parent.register_class_hook("post_reasoning", "a", print)


# -- registering -----------------------------------------------------------------------------------


@pytest.mark.parametrize("deed", ["register", "remove", "clear"])
def test_an_unknown_type_is_an_error(deed: str) -> None:
    arguments = {"register": ("pre_sing", "a", print), "remove": ("pre_sing", "a")}
    for owner, kind in [(Parent(), "instance"), (Parent, "class")]:
        verb = getattr(owner, f"{deed}_{kind}_hook{'s' if deed == 'clear' else ''}")
        with pytest.raises(AssertionError, match="has no hook type 'pre_sing'"):
            verb(*arguments.get(deed, ("pre_sing",)))


def test_removing_an_unknown_hook_is_an_error() -> None:
    Parent.register_class_hook("pre_reply", "a", print)
    with pytest.raises(ValueError, match="no hook 'a'"):
        Child.remove_class_hook("pre_reply", "a")
    with pytest.raises(ValueError, match="no hook 'b'"):
        Parent().remove_instance_hook("pre_reply", "b")


def test_a_hook_must_be_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        Parent().register_instance_hook("pre_reply", "a", "text")  # type: ignore[arg-type]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["register", "remove", "clear"]),
            st.sampled_from(["pre_reply", "post_reply"]),
            st.sampled_from("abc"),
        )
    )
)
def test_registering_removing_and_clearing_do_what_an_ordered_dict_does(
    deeds: list[tuple[str, str, str]],
) -> None:
    agent = Parent()
    model: dict[str, dict[str, Any]] = {"pre_reply": {}, "post_reply": {}}
    for deed, hook_type, name in deeds:
        if deed == "register":
            model[hook_type][name] = hook = noting([], name)
            agent.register_instance_hook(hook_type, name, hook)
        elif deed == "clear":
            agent.clear_instance_hooks(hook_type)
            model[hook_type].clear()
        elif name in model[hook_type]:
            agent.remove_instance_hook(hook_type, name)
            del model[hook_type][name]
        for each in model:
            assert agent._hooks(each) == [*model[each].values()]
    agent.clear_instance_hooks()
    assert agent._hooks("pre_reply") == agent._hooks("post_reply") == []


async def test_an_agents_own_method_as_a_hook_does_not_keep_it_alive() -> None:
    class Own(Parent):
        def watch(self, agent: AgentBase, kwargs: dict[str, Any]) -> None:
            self.watched = agent is self

    agent = Own()
    agent.register_instance_hook("pre_reply", "watch", agent.watch)
    await agent(hello())
    assert agent.watched
    gone = weakref.ref(agent)
    gc.disable()
    try:
        del agent
        assert gone() is None
    finally:
        gc.enable()
