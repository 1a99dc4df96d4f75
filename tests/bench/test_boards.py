"""Recall measured on a data set: the boards, the report and the command."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from memoryspace.cli import main
from memoryspace.embedding import CallableEmbedder
from memoryspace.errors import InvalidInput
from memoryspace.evaluation.boards import BOARDS, METRICS, run
from memoryspace.evaluation.report import overview, save, summary, table

TALK = {
    "id": "talk",
    "sessions": [
        {
            "session": "1",
            "datetime": "1:00 pm on 8 May, 2023",
            "turns": [
                {"dia_id": "D1:1", "speaker": "Ann", "text": "Where do you live now?"},
                {"dia_id": "D1:2", "speaker": "Bob", "text": "I moved to Lisbon last week."},
                {"dia_id": "D1:3", "speaker": "Ann", "text": "I adopted a cat called Tom."},
            ],
        },
        {
            "session": "2",
            "datetime": "2:00 pm on 9 June, 2023",
            "turns": [{"dia_id": "D2:1", "speaker": "Bob", "text": "Work is dull."}],
        },
    ],
    "qa": [
        {"question": "Where does Bob live?", "category": 4, "category_name": "single-hop",
         "evidence": ["D1:2"]},
        {"question": "What is Ann's cat called?", "category": 1, "category_name": "multi-hop",
         "evidence": ["D1:3"]},
    ],
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "locomo_dev.jsonl.gz").write_bytes(gzip.compress(json.dumps(TALK).encode()))
    return tmp_path


def embedder() -> CallableEmbedder:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return CallableEmbedder(
        lambda texts: [[text.lower().count(each) + 0.01 for each in letters] for text in texts],
        "letters",
        len(letters),
    )


def test_a_board_puts_every_question_to_every_arm(data: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    (board,) = BOARDS["locomo"]
    result = run(board, data, embedder(), lambda *step: seen.append(step))
    assert result.arms() == ["words", "vectors", "fused"]
    assert result.categories() == ["multi-hop", "single-hop"]
    assert len(result.answers) == 6
    assert seen == [("locomo", 0, 1), ("locomo", 1, 1)]
    fused = result.means("fused")
    assert fused["n"] == 2
    assert fused["any@1"] == fused["MRR"] == 1.0
    assert result.means("fused", "single-hop")["n"] == 1


def test_the_report_shows_each_arm_and_each_category_and_keeps_raw_ranks(data: Path) -> None:
    (board,) = BOARDS["locomo"]
    result = run(board, data, None)
    shown = table(result)
    for word in (*METRICS, "words", "fused", "multi-hop", "single-hop", "no embedder"):
        assert word in shown
    figures, ranks = save(result, data / "out")
    assert json.loads(figures.read_text("utf-8")) == json.loads(json.dumps(summary(result)))
    lines = [json.loads(line) for line in gzip.decompress(ranks.read_bytes()).splitlines()]
    assert {line["arm"] for line in lines} == {"words", "fused"}
    first = next(line for line in lines if line["arm"] == "fused")
    assert first["gold"] == ["D1:2"]
    assert first["ranked"][0] == "D1:2"


def test_the_overview_has_a_line_for_each_run(data: Path) -> None:
    (board,) = BOARDS["locomo"]
    save(run(board, data, None), data / "out")
    save(run(board, data, embedder()), data / "out")
    shown = overview(data / "out").splitlines()
    assert len(shown) == 4
    assert "letters" in shown[2]
    assert "words alone" in shown[3]


def test_the_command_prints_the_table_and_says_where_the_files_are(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    main(["bench", "locomo", "--data-path", str(data), "--embedder", "none", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "LoCoMo" in printed
    assert "fraction@10" in printed
    assert str(out / "locomo" / "locomo.json") in printed
    assert (out / "locomo" / "ranks.jsonl.gz").exists()


def test_a_missing_folder_and_a_missing_file_are_said_clearly(tmp_path: Path) -> None:
    (board,) = BOARDS["beam"]
    with pytest.raises(InvalidInput, match="no folder"):
        run(board, tmp_path / "absent", None)
    with pytest.raises(InvalidInput, match="beam_100k_dev"):
        run(board, tmp_path, None)


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_has_a_name_that_the_command_knows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["bench", name, "--help"])
    assert f"bench {name}" in capsys.readouterr().out
