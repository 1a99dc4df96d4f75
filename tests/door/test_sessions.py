"""Working memory behind the door: a budget that holds, and nothing that is lost."""

from __future__ import annotations

import pytest

from memoryspace import Memory, Msg
from memoryspace.errors import InvalidInput, UnknownHandle

from doors import LASTING, PLACES, opener, somebody

LONG = [f"line {n} of the plan: " + "dig and water the garden " * 12 for n in range(40)]


@pytest.mark.parametrize("place", PLACES)
def test_a_conversation_is_read_within_a_budget(place: str) -> None:
    user = somebody()
    with opener(place) as open_memory, open_memory() as memory:
        session = memory.session("garden", user=user)
        [goal] = session.add("Plan a garden of 12 m².", marks="pinned")
        session.add(LONG)
        shown = session.messages(max_tokens=1000)
        report = session.report()
        assert report is not None
        assert report.is_within_budget
        assert goal in {msg.id for msg in shown}
        assert len(shown) < len(session.all_messages()) == session.size() == 41
        expanded = "\n".join(session.expand(handle) for handle in report.handles)
        assert "line 0 of the plan" in expanded


@pytest.mark.parametrize("place", LASTING)
def test_what_left_can_be_read_after_a_restart(place: str) -> None:
    user = somebody()
    with opener(place) as open_memory:
        with open_memory() as memory:
            session = memory.session("garden", user=user)
            session.add(LONG)
            session.messages(max_tokens=1000)
            report = session.report()
            assert report is not None
            before = [session.expand(handle) for handle in report.handles]
        with open_memory() as memory:
            session = memory.session("garden", user=user)
            assert [session.expand(handle) for handle in report.handles] == before


@pytest.mark.parametrize("place", PLACES)
def test_what_left_is_deleted_with_its_messages(place: str) -> None:
    user = somebody()
    with opener(place) as open_memory, open_memory() as memory:
        session = memory.session("garden", user=user)
        ids = session.add(LONG)
        session.messages(max_tokens=1000)
        report = session.report()
        assert report is not None
        assert session.delete(ids) == len(ids)
        for handle in report.handles:
            with pytest.raises(UnknownHandle):
                session.expand(handle)
        session.clear()
        assert memory.stats(user=user).usage.records == 0  # type: ignore[union-attr]


def test_handles_of_another_session_or_user_lead_nowhere() -> None:
    with Memory("memory:") as memory:
        session = memory.session("garden", user="ann")
        session.add(LONG)
        session.messages(max_tokens=1000)
        report = session.report()
        assert report is not None
        for other in (memory.session("else", user="ann"), memory.session("garden", user="bob")):
            with pytest.raises(UnknownHandle):
                other.expand(report.handles[0])


def test_marks_choose_messages() -> None:
    with Memory("memory:", user="ann") as memory:
        session = memory.session("garden")
        [hint] = session.add("Ask about the soil.", marks="hint")
        session.add(Msg("bob", "It is loam.", "user"))
        assert [msg.id for msg in session.messages(mark="hint")] == [hint]
        assert session.mark("todo", hint) == 1
        assert session.unmark("hint") == 1
        assert session.messages(mark="hint") == []
        assert [msg.id for msg in session.messages(mark="todo")] == [hint]


def test_calls_of_tools_come_as_dicts() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "soil", "arguments": '{"at": 1}'}}
    with Memory("memory:", user="ann") as memory:
        session = memory.session("garden")
        session.add({"role": "assistant", "content": None, "tool_calls": [call]})
        session.add({"role": "tool", "tool_call_id": "1", "name": "soil", "content": "loam"})
        kinds = [msg.content[0]["type"] for msg in session.all_messages()]  # type: ignore[index]
        assert kinds == ["tool_use", "tool_result"]


def test_a_budget_too_small_says_so() -> None:
    with Memory("memory:", user="ann") as memory, pytest.raises(InvalidInput, match="at least 100"):
        memory.session("garden").messages(max_tokens=10)


def test_long_term_and_working_memory_do_not_mix() -> None:
    with Memory("memory:", user="ann") as memory:
        memory.add("I live in Rome.", session="garden")
        memory.session("garden").add("I live in Oslo.")
        assert memory.list().texts == ("I live in Rome.",)
        assert [msg.content for msg in memory.session("garden").all_messages()] == [
            "I live in Oslo."
        ]
