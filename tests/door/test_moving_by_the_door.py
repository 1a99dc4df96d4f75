"""Export, import and backup by the door."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_door import answers, told

from memoryspace import Memory
from memoryspace.errors import ImportRefused, NotOffered

from doors import PLACES, WORDS, opener, somebody


@pytest.mark.parametrize("place", PLACES[:-1])
def test_an_export_is_the_same_memory_elsewhere(place: str, tmp_path: Path) -> None:
    user = somebody()
    with opener(place) as open_memory, open_memory() as memory:
        told(memory, user)
        expected = answers(memory, user)
        report = memory.export(tmp_path / "all.jsonl.gz", users=user)
        assert report.users == 1
    with Memory("memory:", config=WORDS) as other:
        assert other.import_(tmp_path / "all.jsonl.gz").users == 1
        assert other.import_(tmp_path / "all.jsonl.gz").added == 0
        assert answers(other, user) == expected


def test_an_import_for_one_user_refuses_others(tmp_path: Path) -> None:
    with Memory("memory:", config=WORDS) as memory:
        told(memory, "ann")
        memory.export(tmp_path / "all.jsonl")
        with pytest.raises(ImportRefused):
            memory.import_(tmp_path / "all.jsonl", user="bob")


def test_a_folder_of_notes_is_imported_and_believed(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "me.md").write_text("I live in Oslo.\n", "utf-8")
    with Memory("memory:", user="ann", config=WORDS) as memory:
        report = memory.import_(tmp_path / "notes", kind="text", user="ann")
        assert report.added == 1
        assert memory.search("Where do I live?").texts == ("I live in Oslo.",)


def test_a_server_says_where_to_export() -> None:
    refused = pytest.raises(NotOffered, match="where the server runs")
    with opener("server") as open_memory, open_memory() as memory, refused:
        memory.export("anything.jsonl")
