"""Exports, imports and migrations, backups, the doctor and the review, as commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryspace import Memory

from commands import on_terminal, run


@pytest.fixture
def two() -> None:
    run("add", "I live in Rome.", "I like tea.")
    run("add", "I like coffee.", "-u", "bob")


@pytest.mark.usefixtures("two")
def test_a_user_or_everybody_is_exported_and_imported_elsewhere(tmp_path: Path) -> None:
    own, everything = str(tmp_path / "own.jsonl"), str(tmp_path / "all.jsonl.gz")
    exported = run("export", own)
    assert dict(exported.rows)["users"] == "1"
    assert "only 'ann' was exported" in exported.err
    assert dict(run("export", everything, "--all").rows)["users"] == "2"
    elsewhere = ["--address", f"sqlite:///{tmp_path}/memories.db"]
    report = run("import", everything, *elsewhere, "--rename", "bob=rob", "--json").data
    assert (report["users"], report["known"]) == (2, 0)
    assert [row[0] for row in run("list", *elsewhere, "-u", "rob").rows] == ["I like coffee."]
    again = run("import", own, *elsewhere, "--json").data
    assert (again["added"], again["known"]) == (0, again["records"])
    assert run("import", own, *elsewhere, "--rename", "bob").code == 2


@pytest.mark.usefixtures("two")
def test_an_export_goes_through_a_pipe(tmp_path: Path) -> None:
    exported = run("export", "-")
    assert exported.err == "only 'ann' was exported; --all exports the others too\n"
    place = str(tmp_path / "copy")
    assert run("import", "-", "-a", place, stdin=exported.out).code == 0
    assert len(run("list", "-a", place).rows) == 2


@pytest.mark.usefixtures("two")
def test_a_damaged_file_is_refused_and_nothing_of_it_imported(tmp_path: Path) -> None:
    file, place = tmp_path / "own.jsonl", str(tmp_path / "copy")
    run("export", str(file))
    file.write_bytes(file.read_bytes().replace(b"Rome", b"Oslo"))
    done = run("import", str(file), "-a", place)
    assert (done.code, done.out) == (3, "")
    assert "own.jsonl, line" in done.err
    assert run("list", "-a", place).rows == []
    assert run("import", str(tmp_path / "none.jsonl"), "-a", place).code == 4


def test_what_another_program_wrote_is_imported(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "garden.md").write_text("I grow beans.\n")
    done = run("import", "--from", "text", str(notes))
    assert (done.code, dict(done.rows)["users"]) == (0, "1")
    assert "beans" in run("list").rows[0][0]
    assert "text" in {row[0] for row in run("import", "--formats").rows}
    assert run("import", "--from", "texts", str(notes)).err.endswith("did you mean 'text'?\n")
    assert run("import").code == 2


@pytest.mark.usefixtures("two")
def test_everything_is_migrated_to_another_address(tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/memories.db"
    assert dict(run("migrate", target).rows)["users"] == "2"
    assert run("migrate", target, "--json").data["added"] == 0
    assert len(run("list", "-a", target).rows) == 2


@pytest.mark.usefixtures("two")
def test_a_backup_is_restored_without_what_was_erased_since(tmp_path: Path) -> None:
    backups, copy = str(tmp_path / "backups"), str(tmp_path / "copy")
    assert run("backup", backups, "--json").data["kind"] == "full"
    run("delete", "--everything", "--yes", "-u", "bob")
    run("add", "I like milk.")
    assert run("backup", backups, "--json").data["kind"] == "incremental"
    first = run("backup", backups, "--full", "--keep", "1", "--json").data
    assert first["kind"] == "full"
    restored = run("restore", backups, copy)
    assert dict(restored.rows)["path"] == copy
    assert len(run("list", "-a", copy).rows) == 3
    assert run("list", "-a", copy, "-u", "bob").rows == []
    assert run("restore", backups, copy).code == 2
    assert run("restore", backups, str(tmp_path / "then"), "--at", "2000-01-01").code == 2
    assert run("restore", str(tmp_path), str(tmp_path / "other")).code in (2, 4)


def test_the_doctor_finds_nothing_wrong_or_says_what(home: Path) -> None:
    run("add", "tea")
    done = run("doctor")
    assert done.code == 0
    assert {row[0] for row in done.rows} <= {"ok", "warning"}
    assert run("doctor", "--json").data["findings"]
    assert "check" in on_terminal("doctor").out
    [journal, *_] = sorted((home / "journal").iterdir())
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    journal.write_bytes(data)
    ill = run("doctor")
    assert ill.code == 1
    assert "problem" in {row[0] for row in ill.rows}
    assert run("doctor", "--repair").code == 3
    assert run("doctor", "--repair", "--yes").code == 0
    assert run("doctor").code == 0


def test_facts_that_wait_are_reviewed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYSPACE_REVIEW", "facts")
    run("add", "I live in Rome.")
    [[fact, said, _instead, memory_id]] = run("review", "list").rows
    assert (fact, said) == ("The user lives in Rome.", "I live in Rome.")
    assert run("facts").rows == []
    assert run("review", "approve", memory_id).rows == [["ids", memory_id]]
    assert len(run("facts").rows) == 1
    assert run("review", "approve", memory_id).code == 1
    assert run("review", "undo", memory_id).code == 0
    assert run("review", "reject", memory_id).code == 0
    assert run("review", "list").rows == []
    assert run("review", "approve", "none").code == 1
    with Memory(home) as memory:
        assert memory.facts(user="ann") == []
