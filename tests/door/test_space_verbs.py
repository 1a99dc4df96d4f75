"""The past of a memory in a folder: read, compared, restored, forked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryspace import Memory
from memoryspace.care import restore_backup
from memoryspace.errors import InvalidInput, NotOffered

from doors import WORDS


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "space", user="ann", config=WORDS)


def test_a_snapshot_can_be_read_later(memory: Memory) -> None:
    with memory:
        memory.add("I live in Rome.")
        then = memory.snapshot()
        memory.add("I moved to Oslo!")
        with memory.at(then) as past:
            assert past.list().texts == ("I live in Rome.",)
            assert past.search("Where do I live?").texts == ("I live in Rome.",)
            assert "Rome" in past.facts().texts[0]
            assert past.recalls().count == 0
        assert memory.search("Where do I live?").texts[0] == "I moved to Oslo!"


def test_the_past_cannot_be_changed(memory: Memory) -> None:
    with memory:
        memory.add("I live in Rome.")
        with memory.at(memory.snapshot()) as past:
            with pytest.raises(InvalidInput, match="past cannot be changed"):
                past.add("I live in Oslo.")
            with pytest.raises(NotOffered, match="view of the past"):
                past.restore(1)


def test_a_moment_can_be_named_by_its_time(memory: Memory) -> None:
    with memory:
        memory.add("I live in Rome.")
        then = datetime.fromtimestamp(memory.snapshot().time, UTC)
        memory.add("I moved to Oslo!")
        for name in (then, then.isoformat(), then.timestamp()):
            with memory.at(name) as past:
                assert past.list().texts == ("I live in Rome.",)


def test_a_diff_shows_what_was_said_and_what_is_believed_since(memory: Memory) -> None:
    with memory:
        memory.add({"id": "rome", "content": "I live in Rome."})
        memory.add({"id": "gone", "content": "The kettle is red."})
        then = memory.snapshot()
        memory.add({"id": "oslo", "content": "I moved to Oslo!"})
        memory.delete("gone")
        changes = {(each.kind, each.what, each.id) for each in memory.diff(then)}
        assert ("memory", "added", "oslo") in changes
        assert ("memory", "removed", "gone") in changes
        assert any(kind == "fact" and what == "ended" for kind, what, _ in changes)
        assert not any(kind not in ("memory", "fact") for kind, _, _ in changes)
        assert memory.diff(then, then) == []
        assert "I moved to Oslo!" in repr(memory.diff(then))


def test_a_restore_can_be_undone(memory: Memory) -> None:
    with memory:
        memory.add("I live in Rome.")
        then = memory.snapshot()
        memory.add("I moved to Oslo!")
        now = memory.restore(then)
        assert memory.list().texts == ("I live in Rome.",)
        assert memory.search("Where do I live?").texts == ("I live in Rome.",)
        memory.restore(now)
        assert memory.search("Where do I live?").texts[0] == "I moved to Oslo!"


def test_a_restore_does_not_bring_an_erased_user_back(memory: Memory) -> None:
    with memory:
        memory.add("I live in Rome.", user="bob")
        [kettle] = memory.add("The kettle is red.")
        then = memory.snapshot()
        assert memory.delete_user("bob")
        memory.delete(kettle)
        memory.restore(then)
        assert memory.list(user="bob") == []
        assert memory.list().texts == ("The kettle is red.",)
        assert memory.users().users == ("ann",)


def test_a_backup_is_a_memory_again(memory: Memory, tmp_path: Path) -> None:
    with memory:
        memory.add("I live in Rome.")
        memory.backup(tmp_path / "backup")
        assert memory.doctor().is_healthy
    restore_backup(tmp_path / "backup", tmp_path / "again")
    with Memory(tmp_path / "again", user="ann", config=WORDS) as again:
        assert again.list().texts == ("I live in Rome.",)


def test_a_fork_is_a_memory_of_its_own(memory: Memory, tmp_path: Path) -> None:
    with memory:
        memory.add("I live in Rome.")
        then = memory.snapshot()
        memory.add("I moved to Oslo!")
        folder = memory.fork(tmp_path / "fork", then)
        with Memory(folder, user="ann", config=WORDS) as other:
            assert other.list().texts == ("I live in Rome.",)
            other.add("I moved to Lima!")
        assert memory.list().texts == ("I moved to Oslo!", "I live in Rome.")
        with pytest.raises(InvalidInput, match="empty"):
            memory.fork(folder)


def test_garbage_is_explained_before_it_is_collected(memory: Memory) -> None:
    with memory:
        memory.add("I live in Rome.")
        assert memory.gc(explain=True).garbage == ()
        assert memory.gc().freed == 0


@pytest.mark.parametrize("verb", ["snapshot", "gc"])
def test_elsewhere_it_says_where_it_can_be_done(verb: str) -> None:
    with Memory("memory:", user="ann", config=WORDS) as memory, pytest.raises(NotOffered) as raised:
        getattr(memory, verb)()
    assert "folder" in str(raised.value)


@pytest.mark.parametrize("moment", [True, None, [1]])
def test_a_moment_of_another_type_is_refused(memory: Memory, moment: object) -> None:
    with memory, pytest.raises(TypeError, match="moment"):
        memory.restore(moment)  # type: ignore[arg-type]
