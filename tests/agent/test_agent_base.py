"""An agent answers, listens and shows; an interrupt is told from every other cancellation."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.agent import AgentBase
from memoryspace.agent.printing import Console
from memoryspace.memory import InMemoryMemory
from memoryspace.message import Msg


class Agent(AgentBase):
    """Does what it is told, and remembers what it heard."""

    def __init__(self, work: Callable[[Msg | None], Awaitable[Any]] | None = None) -> None:
        super().__init__()
        self.name = "Ann"
        self.memory = InMemoryMemory()
        self.heard: list[Any] = []
        self._work = work
        self.set_console_output_enabled(False)

    async def reply(self, msg: Msg | None = None) -> Any:
        return await self._work(msg) if self._work is not None else Msg("Ann", "yes", "assistant")

    async def observe(self, msg: Msg | list[Msg] | None) -> None:
        self.heard.append(msg)
        await self.memory.add(msg)

    async def handle_interrupt(self, msg: Msg | None = None) -> Msg:
        return Msg("Ann", "interrupted", "assistant", metadata={"_is_interrupted": True})


class Waiting(Agent):
    """Waits until it is cancelled, and says when it began to."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Semaphore(0)
        self.errors: list[BaseException] = []

    async def reply(self, msg: Msg | None = None) -> Any:
        self.began.release()
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            self.errors.append(error)
            raise


def hello() -> Msg:
    return Msg("user", "hello", "user")


# -- what must be implemented ----------------------------------------------------------------------


async def test_a_bare_agent_says_what_it_lacks() -> None:
    for call in (AgentBase().reply, AgentBase(), AgentBase().handle_interrupt):
        with pytest.raises(NotImplementedError, match="AgentBase must implement"):
            await call()
    with pytest.raises(NotImplementedError, match="observe"):
        await AgentBase().observe(None)


async def test_agents_have_ids_of_their_own_and_an_empty_state() -> None:
    one, two = AgentBase(), AgentBase()
    assert one.id != two.id
    assert one.state_dict() == {}


async def test_the_memory_of_an_agent_is_part_of_its_state() -> None:
    one, two = Agent(), Agent()
    await one.observe(hello())
    two.load_state_dict(one.state_dict())
    assert [msg.content for msg in await two.memory.get_memory()] == ["hello"]


# -- interrupt -------------------------------------------------------------------------------------


async def test_an_interrupt_is_answered_by_the_handler() -> None:
    agent = Waiting()
    call = asyncio.create_task(agent(hello()))
    await agent.began.acquire()
    await agent.interrupt()
    assert (await call).metadata == {"_is_interrupted": True}
    assert call.cancelling() == 0


async def test_an_interrupt_before_the_first_step_is_kept() -> None:
    agent = Waiting()
    call = asyncio.create_task(agent())
    await agent.interrupt()
    assert (await call).metadata == {"_is_interrupted": True}
    assert agent.errors == []  # nothing was begun
    assert call.cancelling() == 0
    assert not agent._calls


async def test_an_interrupt_before_the_first_step_yields_to_a_cancellation() -> None:
    agent = Waiting()
    call = asyncio.create_task(agent())
    await agent.interrupt()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_an_interrupt_from_another_thread_before_the_first_step_is_kept() -> None:
    agent = Waiting()
    call = asyncio.create_task(agent())
    thread = threading.Thread(target=lambda: asyncio.run(agent.interrupt()))
    thread.start()
    thread.join()
    assert (await call).content == "interrupted"


async def test_an_interrupt_is_of_the_calls_made_before_it() -> None:
    agent = Agent()
    before = agent()
    await agent.interrupt()
    after = agent()
    assert [msg.content for msg in await asyncio.gather(before, after)] == ["interrupted", "yes"]


async def test_a_call_that_nobody_awaits_is_forgotten() -> None:
    agent = Agent()
    agent().close()
    assert not agent._calls
    await agent.aclose()


async def test_the_interrupts_message_reaches_the_reply() -> None:
    agent, said = Waiting(), hello()
    call = asyncio.create_task(agent())
    await agent.began.acquire()
    await agent.interrupt(said)
    await call
    assert agent.errors[0].args == (said,)


async def test_an_interrupt_of_nothing_does_nothing() -> None:
    agent = Agent()
    await agent.interrupt()
    assert (await agent()).content == "yes"


async def test_an_interrupt_reaches_every_call_under_way() -> None:
    agent = Waiting()
    calls = [asyncio.create_task(agent()) for _ in range(3)]
    for _ in calls:
        await agent.began.acquire()
    await agent.interrupt()
    assert [msg.content for msg in await asyncio.gather(*calls)] == ["interrupted"] * 3


async def test_a_timeout_around_an_agent_fires() -> None:
    agent = Waiting()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await agent()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent(), 0.001)


async def test_a_cancelled_task_stays_cancelled() -> None:
    agent = Waiting()
    call = asyncio.create_task(agent())
    await agent.began.acquire()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert call.cancelled()


async def test_a_timeout_and_an_interrupt_at_once_are_a_timeout() -> None:
    agent = Waiting()
    limits: list[asyncio.Timeout] = []

    async def limited() -> None:
        async with asyncio.timeout(None) as limit:
            limits.append(limit)
            await agent()

    call = asyncio.create_task(limited())
    await agent.began.acquire()
    limits[0].reschedule(0)
    await agent.interrupt()
    with pytest.raises(TimeoutError):
        await call


async def test_after_an_interrupt_a_later_timeout_still_fires() -> None:
    agent = Waiting()

    async def story() -> str:
        async with asyncio.timeout(None) as limit:
            first = await agent()
            limit.reschedule(0)
            await agent()
        return str(first.content)

    call = asyncio.create_task(story())
    await agent.began.acquire()
    await agent.interrupt()
    with pytest.raises(TimeoutError):
        await call


async def test_a_task_group_around_interrupted_agents_goes_on() -> None:
    agent = Waiting()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(agent()) for _ in range(2)]
        for _ in calls:
            await agent.began.acquire()
        await agent.interrupt()
    assert [call.result().content for call in calls] == ["interrupted"] * 2


async def test_a_task_group_that_fails_cancels_its_agents() -> None:
    agent = Waiting()

    async def fail() -> None:
        await agent.began.acquire()
        raise ValueError("no")

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(agent())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        await together()
    assert len(agent.errors) == 1


async def test_an_interrupt_of_the_outer_agent_passes_through_the_inner() -> None:
    inner = Waiting()
    outer = Agent(inner)
    call = asyncio.create_task(outer())
    await inner.began.acquire()
    await outer.interrupt()
    assert (await call).content == "interrupted"
    assert len(inner.errors) == 1


async def test_an_interrupt_of_the_inner_agent_leaves_the_outer_one_running() -> None:
    inner = Waiting()

    async def ask(msg: Msg | None) -> Msg:
        return Msg("Ann", f"she says: {(await inner()).content}", "assistant")

    call = asyncio.create_task(Agent(ask)())
    await inner.began.acquire()
    await inner.interrupt()
    assert (await call).content == "she says: interrupted"


async def test_an_interrupt_of_both_agents_ends_both() -> None:
    inner = Waiting()
    outer = Agent(inner)
    call = asyncio.create_task(outer())
    await inner.began.acquire()
    await inner.interrupt()
    await outer.interrupt()
    assert (await call).content == "interrupted"
    assert call.cancelling() == 0


async def test_an_interrupt_after_the_last_await_does_not_hit_the_caller() -> None:
    async def interrupt_myself(msg: Msg | None) -> str:
        await agent.interrupt()
        return "done"

    agent = Agent(interrupt_myself)
    assert (await agent()).content == "interrupted"
    await asyncio.sleep(0)  # would raise if anything were left
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_a_reply_that_catches_the_interrupt_has_the_last_word() -> None:
    async def catch(msg: Msg | None) -> str:
        await agent.interrupt()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return "caught"
        return "not reached"

    agent = Agent(catch)
    assert await agent() == "caught"
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_a_reply_that_fails_while_interrupted_fails() -> None:
    async def fail(msg: Msg | None) -> None:
        await agent.interrupt()
        raise ValueError("no")

    agent = Agent(fail)
    with pytest.raises(ValueError, match="no"):
        await agent()
    await asyncio.sleep(0)
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_a_second_interrupt_does_not_cut_the_handler_short() -> None:
    class Slow(Waiting):
        async def handle_interrupt(self, msg: Msg | None = None) -> Msg:
            self.began.release()
            await asyncio.sleep(0)
            return await super().handle_interrupt(msg)

    agent = Slow()
    call = asyncio.create_task(agent())
    await agent.began.acquire()
    await agent.interrupt()
    await agent.began.acquire()
    await agent.interrupt()
    assert (await call).content == "interrupted"


async def test_an_agent_can_be_interrupted_from_another_thread() -> None:
    agent = Waiting()
    call = asyncio.create_task(agent())
    await agent.began.acquire()
    thread = threading.Thread(target=lambda: asyncio.run(agent.interrupt()))
    thread.start()
    assert (await call).content == "interrupted"
    thread.join()


async def test_the_task_under_way_can_be_seen() -> None:
    agent = Waiting()
    call = asyncio.create_task(agent())
    await agent.began.acquire()
    assert agent._reply_task is call
    await agent.interrupt()
    await call
    assert agent._reply_task is None
    assert agent._reply_id is None


@given(st.lists(st.sampled_from(["interrupt", "cancel"]), min_size=1, max_size=4))
def test_any_outer_cancellation_wins_over_any_interrupt(deeds: list[str]) -> None:
    async def story() -> None:
        agent = Waiting()
        call = asyncio.create_task(agent())
        await agent.began.acquire()
        for deed in deeds:
            if deed == "cancel":
                call.cancel()
            else:
                await agent.interrupt()
        await asyncio.wait([call])
        assert call.cancelled() == ("cancel" in deeds)
        assert call.cancelling() == deeds.count("cancel")

    asyncio.run(story())


# -- subscribers -----------------------------------------------------------------------------------


async def test_subscribers_hear_the_reply_each_as_a_copy_of_its_own() -> None:
    speaker, listeners = Agent(), [Agent(), Agent()]
    speaker.reset_subscribers("hub", [speaker, *listeners])
    said = await speaker()
    assert speaker.heard == []
    heard = [each.heard[0] for each in listeners]
    assert [msg.id for msg in heard] == [said.id] * 2
    assert len({id(msg) for msg in [said, *heard]}) == 3


async def test_thoughts_are_not_heard() -> None:
    async def think(msg: Msg | None) -> Msg:
        blocks: list[Any] = [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "so"},
        ]
        return Msg("Ann", blocks, "assistant")

    speaker, listener = Agent(think), Agent()
    speaker.reset_subscribers("hub", [listener])
    said = await speaker()
    assert [block["type"] for block in said.content] == ["thinking", "text"]
    assert listener.heard[0].content == [{"type": "text", "text": "so"}]


async def test_a_mere_thought_is_not_heard_at_all() -> None:
    async def think(msg: Msg | None) -> Msg:
        return Msg("Ann", [{"type": "thinking", "thinking": "hm"}], "assistant")

    speaker, listener = Agent(think), Agent()
    speaker.reset_subscribers("hub", [listener])
    await speaker()
    assert listener.heard == []


async def test_several_messages_are_heard_as_such() -> None:
    async def two(msg: Msg | None) -> list[Msg]:
        return [hello(), hello()]

    speaker, listener = Agent(two), Agent()
    speaker.reset_subscribers("hub", [listener])
    await speaker()
    assert [len(each) for each in listener.heard] == [2]


@pytest.mark.parametrize("nothing", [None, [], 5])
async def test_no_message_is_nothing_to_hear(nothing: Any) -> None:
    async def say(msg: Msg | None) -> Any:
        return nothing

    speaker, listener = Agent(say), Agent()
    speaker.reset_subscribers("hub", [listener])
    assert await speaker() == nothing
    assert listener.heard == []


async def test_who_listens_by_two_hubs_hears_once() -> None:
    speaker, listener = Agent(), Agent()
    speaker.reset_subscribers("one", [listener])
    speaker.reset_subscribers("two", [listener])
    await speaker()
    assert len(listener.heard) == 1


async def test_a_subscriber_that_fails_breaks_neither_the_reply_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Deaf(Agent):
        async def observe(self, msg: Msg | list[Msg] | None) -> None:
            raise ValueError("a secret")

    speaker, deaf, listener = Agent(), Deaf(), Agent()
    speaker.reset_subscribers("hub", [deaf, listener])
    with caplog.at_level(logging.WARNING):
        assert (await speaker()).content == "yes"
    assert len(listener.heard) == 1
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


async def test_an_interrupted_reply_is_heard_too() -> None:
    speaker, listener = Waiting(), Agent()
    speaker.reset_subscribers("hub", [listener])
    call = asyncio.create_task(speaker())
    await speaker.began.acquire()
    await speaker.interrupt()
    await call
    assert listener.heard[0].content == "interrupted"


async def test_a_subscriber_is_not_kept_alive() -> None:
    speaker, listener = Agent(), Agent()
    speaker.reset_subscribers("hub", [listener])
    gone = weakref.ref(listener)
    gc.disable()
    try:
        del listener
        assert gone() is None
    finally:
        gc.enable()
    assert (await speaker()).content == "yes"


async def test_removed_subscribers_hear_nothing(caplog: pytest.LogCaptureFixture) -> None:
    speaker, listener = Agent(), Agent()
    speaker.reset_subscribers("hub", [listener])
    speaker.remove_subscribers("hub")
    await speaker()
    assert listener.heard == []
    speaker.remove_subscribers("hub")
    assert "no subscribers of hub 'hub'" in caplog.text


# -- printing --------------------------------------------------------------------------------------


def growing(*contents: Any) -> list[Msg]:
    """Return one message as it grows."""
    messages = [Msg("Ann", content, "assistant") for content in contents]
    for msg in messages:
        msg.id = "one"
    return messages


async def shown(capsys: pytest.CaptureFixture[str], *messages: Msg) -> str:
    agent = Agent()
    agent.set_console_output_enabled(True)
    for msg in messages:
        await agent.print(msg, last=msg is messages[-1])
    return capsys.readouterr().out


async def test_a_message_is_shown_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert await shown(capsys, Msg("Ann", "hello", "assistant")) == "Ann: hello\n"


async def test_only_what_is_new_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert await shown(capsys, *growing("he", "hello", "hello you")) == "Ann: hello you\n"


async def test_thoughts_are_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    blocks: list[Any] = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}]
    assert (
        await shown(capsys, *growing(blocks[:1], blocks, blocks)) == "Ann(thinking): hm\nAnn: so\n"
    )


async def test_tool_calls_are_shown_when_complete(capsys: pytest.CaptureFixture[str]) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "find", "input": {"word": "é"}}
    text = await shown(capsys, *growing([call], [call]))
    assert text.count("c1") == 1
    assert '"word": "é"' in text


async def test_media_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    picture: Any = {"type": "image", "source": {"type": "base64", "media_type": "x", "data": "YQ"}}
    assert await shown(capsys, Msg("Ann", [picture], "assistant")) == ""


async def test_two_messages_at_once_have_lines_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = Console()
    one, two = Msg("Ann", "one", "assistant"), Msg("Bob", "two", "assistant")
    for msg in (one, two):
        console.show(msg, last=False)
    one.content = "one more"
    console.show(one, last=True)
    console.show(two, last=True)
    assert capsys.readouterr().out == "Ann: one\nBob: two\nAnn:  more\n"


async def test_words_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    text = await shown(capsys, Msg("Ann", "a\x1b[2Jb\r\nc\td\x9b", "assistant"))
    assert text == "Ann: a\ufffd[2Jb\nc\td\ufffd\n"


def test_half_a_surrogate_does_not_break_the_reply(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as out:
        monkeypatch.setattr("sys.stdout", out)
        Console().show(Msg("Ann", "é \ud800", "assistant"), last=True)
    assert (tmp_path / "out").read_text() == "Ann: ? ?\n"


async def test_a_program_without_a_console_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    agent = Agent()
    agent.set_console_output_enabled(True)
    await agent.print(hello())
    assert agent._console._shown == {}


async def test_the_environment_can_silence_agents(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMORYSPACE_DISABLE_CONSOLE_OUTPUT", "true")
    await AgentBase().print(hello())
    assert capsys.readouterr().out == ""


async def test_the_old_name_for_silence_warns(capsys: pytest.CaptureFixture[str]) -> None:
    agent = AgentBase()
    with pytest.warns(DeprecationWarning, match="set_console_output_enabled"):
        agent.disable_console_output()
    await agent.print(hello())
    assert capsys.readouterr().out == ""


async def test_what_was_never_completed_is_forgotten_with_its_call() -> None:
    async def begin(msg: Msg | None) -> None:
        await agent.print(hello(), last=False)
        assert agent._console._shown

    agent = Agent(begin)
    agent.set_console_output_enabled(True)
    await agent()
    assert agent._console._shown == {}


async def test_the_queue_gets_copies_in_order() -> None:
    agent, msg = Agent(), hello()
    agent.set_msg_queue_enabled(True)
    assert agent.msg_queue is not None
    assert agent.msg_queue.maxsize == 100
    await agent.print(msg, last=False)
    msg.content = "hello you"
    await agent.print(msg)
    items = [agent.msg_queue.get_nowait() for _ in range(2)]
    assert [(item.content, last, speech) for item, last, speech in items] == [
        ("hello", False, None),
        ("hello you", True, None),
    ]


async def test_a_growing_message_is_not_copied_letter_by_letter() -> None:
    agent, text = Agent(), "a long text"
    agent.register_instance_hook("pre_print", "same", lambda agent, arguments: arguments)
    agent.set_msg_queue_enabled(True)
    await agent.print(Msg("Ann", [{"type": "text", "text": text}], "assistant"))
    assert agent.msg_queue is not None
    copy = agent.msg_queue.get_nowait()[0]
    assert copy.content[0]["text"] is text


async def test_a_queue_of_ones_own_is_used_and_let_go() -> None:
    agent, queue = Agent(), asyncio.Queue[Any]()
    agent.set_msg_queue_enabled(True, queue)
    await agent.print(hello())
    agent.set_msg_queue_enabled(False)
    await agent.print(hello())
    assert queue.qsize() == 1
    assert agent.msg_queue is None


# -- closing ---------------------------------------------------------------------------------------


async def test_closing_interrupts_what_is_under_way_and_waits_for_it() -> None:
    async with Waiting() as agent:
        calls = [asyncio.create_task(agent()) for _ in range(2)]
        for _ in calls:
            await agent.began.acquire()
    assert not agent._calls
    assert [msg.content for msg in await asyncio.gather(*calls)] == ["interrupted"] * 2


async def test_closing_waits_for_a_call_that_is_about_to_begin() -> None:
    async with Waiting() as agent:
        call = asyncio.create_task(agent())
    assert not agent._calls
    assert (await call).content == "interrupted"


async def test_closing_does_not_wait_for_a_call_that_nobody_runs() -> None:
    async with Agent() as agent:
        made = agent()
    assert (await made).content == "interrupted"


async def test_closing_lets_go_of_everything_and_can_be_done_twice() -> None:
    agent, listener = Agent(), Agent()
    agent.reset_subscribers("hub", [listener])
    agent.register_instance_hook("pre_reply", "fail", lambda agent, arguments: 1 / 0)
    agent.set_msg_queue_enabled(True)
    await agent.aclose()
    await agent.aclose()
    assert (await agent()).content == "yes"
    assert listener.heard == []
    assert agent.msg_queue is None


async def test_an_agent_may_close_itself_in_its_reply() -> None:
    async def close(msg: Msg | None) -> str:
        await agent.aclose()
        return "closed"

    agent = Agent(close)
    assert await agent() == "closed"
