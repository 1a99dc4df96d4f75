"""A hub: everybody hears everybody, who has left neither hears nor is heard, nothing stays."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.agent import AgentBase
from memoryspace.message import Msg
from memoryspace.pipeline import MsgHub


class Agent(AgentBase):
    def __init__(self, name: str = "Ann", fails: bool = False) -> None:
        super().__init__()
        self.name = name
        self.heard: list[Msg] = []
        self._fails = fails

    async def reply(self, msg: Msg | None = None) -> Msg:
        return Msg(self.name, f"{self.name} speaks", "assistant")

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        if self._fails:
            raise ValueError("a secret")
        self.heard.extend(msg if isinstance(msg, list) else [msg] if msg is not None else [])

    @property
    def words(self) -> list[Any]:
        return [msg.content for msg in self.heard]


def hello() -> Msg:
    return Msg("host", "hello", "user")


def known_hubs(*agents: AgentBase) -> list[Any]:
    return [hub for agent in agents for hub in agent._subscribers._by_hub]


async def test_everybody_hears_everybody_else() -> None:
    ann, bob, eve = Agent("Ann"), Agent("Bob"), Agent("Eve")
    async with MsgHub([ann, bob, eve]):
        await ann()
        await bob()
    assert [each.words for each in (ann, bob, eve)] == [
        ["Bob speaks"],
        ["Ann speaks"],
        ["Ann speaks", "Bob speaks"],
    ]


async def test_after_the_hub_nobody_hears_anybody() -> None:
    ann, bob = Agent(), Agent()
    async with MsgHub([ann, bob]):
        pass
    await ann()
    assert bob.heard == []
    assert known_hubs(ann, bob) == []


async def test_nothing_is_left_when_the_conversation_fails() -> None:
    ann, bob = Agent(), Agent()

    async def fail() -> None:
        async with MsgHub([ann, bob]):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await fail()
    assert known_hubs(ann, bob) == []


async def test_the_announcement_is_heard_by_all_each_as_a_copy() -> None:
    ann, bob, msg = Agent(), Agent(), hello()
    async with MsgHub([ann, bob], announcement=msg):
        heard = [ann.heard[0], bob.heard[0]]
    assert [each.id for each in heard] == [msg.id] * 2
    assert len({id(each) for each in [msg, *heard]}) == 3


async def test_several_messages_may_be_announced() -> None:
    ann = Agent()
    async with MsgHub([ann], announcement=[hello(), hello()]):
        assert ann.words == ["hello", "hello"]


async def test_an_announcement_that_fails_leaves_nothing_behind() -> None:
    ann, deaf = Agent(), Agent(fails=True)
    with pytest.raises(ExceptionGroup, match="could not observe"):
        await MsgHub([deaf, ann], announcement=hello()).__aenter__()
    assert ann.words == ["hello"]
    assert known_hubs(ann, deaf) == []


async def test_a_broadcast_reaches_all_and_then_tells_who_failed() -> None:
    ann, deaf, bob = Agent(), Agent(fails=True), Agent()
    async with MsgHub([ann, deaf, bob], name="table") as hub:
        with pytest.raises(ExceptionGroup) as caught:
            await hub.broadcast(hello())
    assert ann.words == bob.words == ["hello"]
    assert [type(each) for each in caught.value.exceptions] == [ValueError]
    assert "table" in str(caught.value)


async def test_a_participant_that_cannot_observe_a_reply_does_not_end_the_conversation() -> None:
    ann, deaf, bob = Agent("Ann"), Agent(fails=True), Agent()
    async with MsgHub([ann, deaf, bob]):
        assert (await ann()).content == "Ann speaks"
    assert bob.words == ["Ann speaks"]


async def test_thoughts_are_not_broadcast() -> None:
    ann = Agent()
    blocks: list[Any] = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}]
    async with MsgHub([ann]) as hub:
        await hub.broadcast(Msg("host", blocks, "user"))
    assert ann.words == [[{"type": "text", "text": "so"}]]


async def test_who_is_added_hears_and_is_heard() -> None:
    ann, bob = Agent("Ann"), Agent("Bob")
    async with MsgHub([ann]) as hub:
        hub.add(bob)
        hub.add([bob])
        await ann()
        await bob()
    assert (ann.words, bob.words) == (["Bob speaks"], ["Ann speaks"])


async def test_who_has_left_neither_hears_nor_is_heard() -> None:
    ann, bob, eve = Agent("Ann"), Agent("Bob"), Agent("Eve")
    async with MsgHub([ann, bob, eve]) as hub:
        hub.delete(bob)
        await ann()
        await bob()
    await bob()
    assert (ann.words, bob.words, eve.words) == ([], [], ["Ann speaks"])
    assert known_hubs(ann, bob, eve) == []


async def test_deleting_a_stranger_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    ann, stranger = Agent(), Agent()
    async with MsgHub([ann], name="table") as hub:
        hub.delete([stranger])
    assert f"agent {stranger.id!r} does not take part in hub 'table'" in caplog.text


async def test_without_auto_broadcast_only_broadcasts_are_heard() -> None:
    ann, bob = Agent("Ann"), Agent("Bob")
    async with MsgHub([ann, bob], enable_auto_broadcast=False) as hub:
        await ann()
        await hub.broadcast(hello())
        hub.set_auto_broadcast(True)
        await ann()
        hub.set_auto_broadcast(False)
        await ann()
    assert bob.words == ["hello", "Ann speaks"]
    assert known_hubs(ann, bob) == []


async def test_a_closed_hub_connects_nobody() -> None:
    ann, bob = Agent(), Agent()
    hub = MsgHub((ann,))
    hub.add(bob)
    hub.set_auto_broadcast(True)
    assert hub.participants == [ann, bob]
    assert known_hubs(ann, bob) == []


async def test_hubs_may_be_nested() -> None:
    ann, bob, eve = Agent("Ann"), Agent("Bob"), Agent("Eve")
    async with MsgHub([ann, bob]):
        async with MsgHub([ann, bob, eve]):
            await ann()
        await ann()
    assert (bob.words, eve.words) == (["Ann speaks"] * 2, ["Ann speaks"])


async def test_an_open_hub_that_is_forgotten_keeps_no_participant_alive() -> None:
    ann, bob = Agent(), Agent()
    await MsgHub([ann, bob]).__aenter__()
    gone = weakref.ref(bob)
    gc.disable()
    try:
        del bob
        assert gone() is None
    finally:
        gc.enable()
    assert (await ann()).content == "Ann speaks"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["add", "delete", "speak"]), st.integers(0, 3)),
            st.tuples(st.just("auto"), st.booleans()),
        ),
        max_size=12,
    )
)
def test_who_hears_what_is_as_one_would_think(deeds: list[tuple[str, Any]]) -> None:
    async def story() -> None:
        agents = [Agent(str(number)) for number in range(4)]
        here, auto = {0, 1}, True
        expected: list[list[str]] = [[] for _ in agents]
        async with MsgHub([agents[0], agents[1]]) as hub:
            for deed, what in deeds:
                if deed == "auto":
                    hub.set_auto_broadcast(what)
                    auto = what
                elif deed == "speak":
                    await agents[what]()
                    for other in here - {what} if auto and what in here else ():
                        expected[other].append(f"{what} speaks")
                else:
                    getattr(hub, deed)(agents[what])
                    here = here | {what} if deed == "add" else here - {what}
        assert [each.words for each in agents] == expected
        assert known_hubs(*agents) == []

    asyncio.run(story())
