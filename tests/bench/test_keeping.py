"""What a step needed is found in its arguments; each way to keep a context is judged by it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from memoryspace import Msg
from memoryspace.errors import CorruptData
from memoryspace.evaluation.keeping import Clearing, Compacting, Everything, Sliding, judge
from memoryspace.evaluation.needs import Need, facts_in, steps_of, text_of
from memoryspace.evaluation.trajectories import Trajectory, joined, load_trajectories


def call(number: int, **arguments: Any) -> dict[str, Any]:
    function = {"name": "look", "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "name": "look", "content": text}


def written(folder: Path, *messages: dict[str, Any]) -> Path:
    path = folder / "runs.jsonl.gz"
    lines = [{"id": "run", "messages": messages}, {"id": "empty", "messages": []}]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def long_run(folder: Path) -> Trajectory:
    """The order's id is said once, at the start, and needed at the end."""
    messages = [
        {"role": "system", "content": "You serve shop_77."},
        {"role": "user", "content": "My order is ORDER-4711."},
    ]
    for number in range(30):
        messages += [call(number, page=number), result(number, f"page {number}: " + "words " * 60)]
    messages += [call(99, order_id="ORDER-4711", shop="shop_77")]
    (run,) = load_trajectories(written(folder, *messages))
    return run


def test_a_recorded_run_becomes_messages_and_instructions(tmp_path: Path) -> None:
    run = long_run(tmp_path)
    assert run.instructions == "You serve shop_77."
    assert [msg.role for msg in run.messages[:3]] == ["user", "assistant", "system"]
    assert run.messages[1].get_content_blocks("tool_use")[0]["input"] == {"page": 0}
    assert run.messages[2].get_content_blocks("tool_result")[0]["id"] == "c0"


def test_arguments_that_are_no_json_are_kept_as_they_were(tmp_path: Path) -> None:
    broken = call(1)
    broken["tool_calls"][0]["function"]["arguments"] = '{"page": '
    (run,) = load_trajectories(written(tmp_path, {"role": "user", "content": "go"}, broken))
    (block,) = run.messages[1].get_content_blocks("tool_use")
    assert (block["input"], block["raw_input"]) == ({}, '{"page": ')


def test_short_runs_are_joined_into_long_ones_taken_from_all() -> None:
    runs = [
        Trajectory(str(number), "rules", [Msg("a", str(number), "user")]) for number in range(9)
    ]
    long_ones = joined(runs, by=2, most=2)
    assert [run.id for run in long_ones] == ["0+1", "4+5"]
    assert [msg.content for msg in long_ones[1].messages] == ["4", "5"]
    assert long_ones[0].instructions == "rules"


def test_a_malformed_line_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write('{"id": "x"}\n')
    with pytest.raises(CorruptData, match="line 1"):
        load_trajectories(path)


def test_facts_are_short_arguments_and_specific_words() -> None:
    found = facts_in({"id": "ORDER-4711", "n": 12345, "yes": True, "items": ["a b", "src/x_y.py"]})
    assert found == ["ORDER-4711", "12345", "src/x_y.py"]
    long_text = "please change the function readConfig in src/conf.py " * 3
    assert facts_in({"text": long_text}) == ["readConfig", "src/conf.py"]


def test_a_step_needs_what_was_said_before_but_not_what_it_was_told_to_be(tmp_path: Path) -> None:
    run = long_run(tmp_path)
    last = steps_of(run.messages, run.instructions)[-1]
    assert last.at == len(run.messages) - 1
    assert last.needs == (Need("ORDER-4711", last.at),)


async def test_a_window_that_slides_loses_what_was_said_first(tmp_path: Path) -> None:
    run = long_run(tmp_path)
    facts = await judge(run, Sliding(500))
    old = [fact for fact in facts if fact.age > 50]
    assert [fact.is_resident for fact in old] == [False]
    assert all(fact.tokens <= 500 for fact in facts)


async def test_clearing_results_keeps_what_was_said_beside_them(tmp_path: Path) -> None:
    run = long_run(tmp_path)
    view = await Clearing(1000).view(run.messages)
    assert "ORDER-4711" in view.resident
    assert view.resident.count("words words") <= 3 * 60
    assert view.tokens < (await Everything(1000).view(run.messages)).tokens


async def test_compacting_keeps_old_facts_within_reach_and_its_budget(tmp_path: Path) -> None:
    run = long_run(tmp_path)
    facts = await judge(run, Compacting(500))
    old = [fact for fact in facts if fact.age > 50]
    assert old
    assert all(fact.is_stored for fact in old)
    assert all(fact.tokens <= 550 for fact in facts)  # measured by another way of counting


def test_the_text_of_a_message_holds_calls_and_results(tmp_path: Path) -> None:
    run = long_run(tmp_path)
    assert text_of(run.messages[1]) == 'look {"page": 0}'
    assert text_of(run.messages[2]).startswith("page 0: words")
