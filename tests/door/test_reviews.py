"""Facts that wait for approval, by the door."""

from __future__ import annotations

import pytest

from memoryspace import Config
from memoryspace.errors import UnknownMemory

from doors import PLACES, opener, somebody

REVIEWED = Config(embedder="none", review="facts")


@pytest.mark.parametrize("place", PLACES)
def test_a_fact_is_believed_when_it_is_approved(place: str) -> None:
    user = somebody()
    with opener(place, REVIEWED) as open_memory, open_memory() as memory:
        memory.add(["I live in Rome.", "I love hiking."], user=user)
        assert memory.facts(user=user) == []
        assert memory.search("Where do I live?", user=user).texts[0] == "I live in Rome."
        home, taste = memory.review.waiting(user=user).proposals
        assert "Rome" in home.memory.text
        assert home.sources[0].text == "I live in Rome."
        assert memory.review.approve(home.memory.id, user=user).ids == (home.memory.id,)
        assert memory.review.reject(taste.memory.id, user=user)
        assert memory.facts(user=user).ids == (home.memory.id,)
        assert memory.review.waiting(user=user).proposals == ()
        assert memory.review.undo(home.memory.id, user=user)
        assert memory.facts(user=user) == []
        with pytest.raises(UnknownMemory):
            memory.review.approve("nothing", user=user)
        assert memory.delete_user(user)
