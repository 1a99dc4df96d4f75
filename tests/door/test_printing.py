"""What a memory returns can be read at a prompt."""

from __future__ import annotations

from pathlib import Path

from memoryspace import Memory

from doors import WORDS


def test_a_table_shows_whole_ids() -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory:
        memory.add("I live in Oslo.")
        facts = memory.facts()
        assert facts.ids[0].startswith("fact-")
        assert facts.ids[0] in repr(facts)


def test_figures_print_as_a_table() -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory:
        assert "memories     0" in repr(memory.stats()).splitlines()


def test_a_view_of_the_past_says_of_what_and_when(tmp_path: Path) -> None:
    with Memory(tmp_path / "memories", user="ann", config=WORDS) as memory:
        memory.add("I live in Oslo.")
        moment = memory.snapshot()
        with memory.at(moment) as past:
            assert f"memories as it was at change {moment.lsn}'" in repr(past)


def test_a_review_has_a_name() -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory:
        assert repr(memory.review) == "Review()"
