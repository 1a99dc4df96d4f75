"""The door gives the same answers at every address, and keeps what it acknowledged."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memoryspace import Memory
from memoryspace.errors import InvalidInput, NotStarted, UnknownMemory, VersionConflict

from doors import LASTING, PLACES, WORDS, opener, somebody

_FACT_ID = re.compile("fact-[0-9a-f]+")  # it depends on the user

MAY = "2026-05-04T09:00:00+00:00"
JUNE = "2026-06-01T09:00:00+00:00"


def told(memory: Memory, user: str) -> None:
    """Tell a small story, with ids and times that are the same every time."""
    memory.add({"id": "rome", "content": "I live in Rome and I love hiking."}, user=user, when=MAY)
    memory.add({"id": "oslo", "content": "I moved to Oslo last week!"}, user=user, when=JUNE)
    answer = {"id": "tip", "role": "assistant", "content": "Try the fish soup at the harbour."}
    memory.add(answer, user=user, when=JUNE, session="dinner")


def answers(memory: Memory, user: str) -> dict[str, Any]:
    """Return what every verb says of the story, without what differs from run to run."""
    hits = memory.search("Where do I live?", user=user, when=JUNE)
    context = memory.context("Where do I live?", user=user, when=JUNE, min_relevance=0.1)
    return {
        "hits": [(hit.memory.id, round(hit.score, 6), hit.holds) for hit in hits],
        "why": [sorted(hit.why.signals) for hit in hits if hit.why is not None],
        "facts of hits": [[fact.text for fact in hit.facts] for hit in hits],
        "context": _FACT_ID.sub("fact", context.text),
        "ids": [_FACT_ID.sub("fact", each) for each in context.ids],
        "list": memory.list(user=user).ids,
        "session": memory.list(user=user, session="dinner").ids,
        "facts": memory.facts(user=user).texts,
        "in May": memory.facts(user=user, as_of="2026-05-20").texts,
        "no longer": memory.facts(user=user, superseded=True).texts,
        "got": getattr(memory.get("tip", user=user), "text", None),
        "nothing": memory.get("nobody said this", user=user),
        "history": [(each.text, each.version) for each in memory.history("tip", user=user)],
        "why not": memory.why_not("Where do I live?", "tip", user=user, limit=1).reason,
    }


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    with Memory("memory:", config=WORDS) as memory:
        told(memory, "anna")
        return answers(memory, "anna")


def test_the_answers_are_right(expected: dict[str, Any]) -> None:
    assert expected["hits"][0][0] == "oslo"
    assert ("rome", False) in [(hit[0], hit[2]) for hit in expected["hits"]]
    assert any("Oslo" in fact for fact in expected["facts"])
    assert not any("Rome" in fact for fact in expected["facts"])
    assert any("Rome" in fact for fact in expected["in May"])
    assert expected["list"] == ("tip", "oslo", "rome")
    assert expected["session"] == ("tip",)
    assert "I moved to Oslo last week!" in expected["context"]
    assert expected["got"] == "Try the fish soup at the harbour."
    assert expected["nothing"] is None


@pytest.mark.parametrize("place", PLACES)
def test_every_address_gives_the_same_answers(place: str, expected: dict[str, Any]) -> None:
    user = somebody()
    with opener(place) as open_memory, open_memory() as memory:
        told(memory, user)
        assert answers(memory, user) == expected


@pytest.mark.parametrize("place", LASTING)
def test_another_opening_gives_the_same_answers(place: str, expected: dict[str, Any]) -> None:
    user = somebody()
    with opener(place) as open_memory:
        with open_memory() as memory:
            told(memory, user)
        with open_memory() as memory:
            assert answers(memory, user) == expected


@pytest.mark.parametrize("place", PLACES)
def test_a_change_asks_for_the_version_it_was_made_from(place: str) -> None:
    user = somebody()
    with opener(place) as open_memory, open_memory() as memory:
        [added] = memory.add("The gate code is in the drawer.", user=user)
        changed = memory.update(added, "The gate code is on the fridge.", user=user, version=1)
        assert changed.version == 2
        with pytest.raises(VersionConflict):
            memory.update(added, "It is nowhere.", user=user, version=1)
        texts = memory.history(added, user=user).texts
        assert texts == ("The gate code is in the drawer.", "The gate code is on the fridge.")
        with pytest.raises(UnknownMemory):
            memory.update("no such id", "Anything.", user=user)


@pytest.mark.parametrize("place", PLACES)
def test_an_erased_user_leaves_nothing_and_others_keep_everything(place: str) -> None:
    gone, kept = somebody(), somebody()
    with opener(place) as open_memory, open_memory() as memory:
        for user in (gone, kept):
            told(memory, user)
            memory.search("Where do I live?", user=user)
            session = memory.session("chat", user=user)
            session.add(["hello " * 900, *(f"line {n} " + "word " * 90 for n in range(20))])
            assert session.messages(max_tokens=600)
            assert session.report() is not None
        erased = memory.delete_user(gone)
        assert set(erased.deleted.raw) == {"rome", "oslo", "tip"}
        assert erased.left.is_complete
        assert bool(erased)
        assert memory.list(user=gone) == []
        assert memory.session("chat", user=gone).all_messages() == []
        assert memory.stats(user=gone).usage.records == 0  # type: ignore[union-attr]
        assert memory.recalls(user=gone).count == 0
        assert memory.list(user=kept).ids == ("tip", "oslo", "rome")
        assert len(memory.session("chat", user=kept).all_messages()) == 21
        assert memory.recalls(user=kept).count == 1


@pytest.mark.parametrize("place", PLACES)
def test_one_user_never_sees_anothers(place: str) -> None:
    mine, other = somebody(), somebody()
    with opener(place) as open_memory, open_memory() as memory:
        told(memory, mine)
        assert memory.search("Where do I live?", user=other) == []
        assert not memory.context("Where do I live?", user=other)
        assert memory.get("oslo", user=other) is None
        assert not memory.delete("oslo", user=other)
        assert memory.get("oslo", user=mine) is not None


def test_a_session_is_deleted_with_its_working_memory() -> None:
    with opener("sqlite") as open_memory, open_memory() as memory:
        told(memory, "ann")
        memory.session("dinner", user="ann").add("Is the harbour far?")
        assert memory.delete_session("dinner", user="ann").raw == ("tip",)
        assert memory.session("dinner", user="ann").all_messages() == []
        assert memory.list(user="ann").ids == ("oslo", "rome")


def test_a_call_names_its_user_or_the_memory_does() -> None:
    with Memory("memory:") as memory, pytest.raises(InvalidInput, match="whose memory"):
        memory.add("hello")
    with Memory("memory:", user="ann") as memory:
        memory.add("hello")
        assert memory.list(user="ann").texts == ("hello",)


def test_a_closed_memory_says_so() -> None:
    memory = Memory("memory:", user="ann")
    memory.add("hello")
    memory.close()
    memory.close()
    with pytest.raises(NotStarted, match="closed"):
        memory.add("hello again")


def test_pages_go_on_where_the_one_before_ended() -> None:
    with Memory("memory:", user="ann") as memory:
        memory.add([f"note {n}" for n in range(7)])
        first = memory.list(limit=4)
        second = memory.list(limit=4, cursor=first.cursor)
        assert [*first.texts, *second.texts] == [f"note {n}" for n in reversed(range(7))]
        assert second.cursor is None


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_says_what_to_do(question: str) -> None:
    with Memory("memory:", user="ann") as memory, pytest.raises(InvalidInput, match="list"):
        memory.search(question)


def test_a_password_is_never_shown() -> None:
    memory = Memory("postgresql://bob:hunter2@localhost:1/db")
    assert "hunter2" not in repr(memory)
    assert memory.address == "postgresql://bob:•••@localhost:1/db"
