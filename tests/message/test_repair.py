"""Repair of broken histories: always whole, always the same, nothing said is lost."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from histories import histories, trajectories, whole_histories
from memoryspace.message import Msg, freeze, groups_of, repair
from memoryspace.message.repairing import NO_RESULT, _Repairer
from memoryspace.message.sharing import Loan, is_on_loan, lend
from memoryspace.message.tool_blocks import calls_in, has_tool_blocks, results_in, text_of_output
from memoryspace.message.wholeness import is_whole


def says(text: str) -> Msg:
    return Msg("Bob", text, "user")


def call(*ids: Any, **fields: Any) -> Msg:
    blocks: list[Any] = [
        {"type": "tool_use", "id": id, "name": "look", "input": {}, **fields} for id in ids
    ]
    return Msg("Ann", blocks, "assistant")


def result(*ids: Any, output: Any = "seen") -> Msg:
    blocks: list[Any] = [
        {"type": "tool_result", "id": id, "name": "look", "output": output} for id in ids
    ]
    return Msg("system", blocks, "system")


def troubles(history: list[Msg]) -> list[str]:
    return [each.trouble for each in repair(history).repairs]


def outline(history: list[Msg]) -> list[tuple[str, ...]]:
    """Each message as the ids it calls or answers, or as its text."""
    found = []
    for msg in repair(history).messages:
        calls = tuple(f"call {each['id']}" for each in calls_in(msg))
        results = tuple(f"{each['id']}: {each['output']}" for each in results_in(msg))
        found.append(calls or results or (msg.get_text_content() or "",))
    return found


def check_whole(messages: list[Msg]) -> None:
    """Every call is answered once, by the messages right behind it, and its id is its own."""
    seen: set[str] = set()
    waiting: list[str] = []
    for msg in messages:
        for block in results_in(msg):
            assert isinstance(block["output"], str | list)
            waiting.remove(block["id"])
        if results_in(msg):
            assert len(results_in(msg)) == len(msg.content)
            continue
        assert waiting == []
        waiting = [block["id"] for block in calls_in(msg)]
        assert all(isinstance(id, str) and id for id in waiting)
        assert all(isinstance(block["input"], dict) for block in calls_in(msg))
        assert len({*waiting} | seen) == len(waiting) + len(seen)
        seen |= {*waiting}
    assert waiting == []


@given(histories)
def test_any_history_becomes_whole(history: list[Msg]) -> None:
    check_whole(repair(history).messages)


@given(histories)
def test_one_repair_is_enough(history: list[Msg]) -> None:
    mended = repair(history).messages
    again = repair(mended)
    assert again.repairs == ()
    assert all(new is old for new, old in zip(again.messages, mended, strict=True))


@given(histories | whole_histories())
def test_the_quick_look_sees_what_a_repair_would_find(history: list[Msg]) -> None:
    mended = _Repairer(history).run()
    is_same = len(mended.messages) == len(history) and all(
        new is old for new, old in zip(mended.messages, history, strict=True)
    )
    assert is_whole(history) == (is_same and not mended.repairs)


@given(whole_histories())
def test_what_is_whole_is_left_alone(history: list[Msg]) -> None:
    mended = repair(history)
    assert mended.repairs == ()
    assert all(new is old for new, old in zip(mended.messages, history, strict=True))


def shape(messages: list[Msg]) -> list[Any]:
    return [(msg.id, msg.role, msg.name, repr(msg.content)) for msg in messages]


@given(histories)
def test_nothing_given_is_changed_and_the_same_comes_out_each_time(history: list[Msg]) -> None:
    before = shape(history)
    once, twice = repair(history), repair(history)
    assert shape(history) == before
    assert shape(once.messages) == shape(twice.messages)
    assert once.repairs == twice.repairs


def texts_in(value: Any) -> list[str]:
    """Every text that was said: texts, outputs of tools, arguments, and strings that are junk."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    if not isinstance(value, dict):
        return []
    said = ("text", "output", "thinking", "raw_input", "input")
    return [text for key in said if key in value for text in texts_in(value[key])]


@given(histories)
def test_every_text_is_kept(history: list[Msg]) -> None:
    kept = "\n".join(
        text for msg in repair(history).messages for text in texts_in(copy.copy(msg.content))
    )
    for msg in history:
        for text in texts_in(msg.content):
            assert text in kept or json.dumps(text, ensure_ascii=False)[1:-1] in kept


@given(histories, st.data())
def test_a_beginning_is_repaired_as_if_nothing_followed(history: list[Msg], data: Any) -> None:
    """Only where no later result belongs to an earlier call, of course."""
    cut = data.draw(st.integers(0, len(history)))
    first, second = repair(history[:cut]).messages, history[cut:]
    if not any(results_in(msg) for msg in second):
        assert shape(repair(history).messages)[: len(first)] == shape(first)


@given(histories)
def test_groups_are_the_history_and_part_no_call_from_its_results(history: list[Msg]) -> None:
    mended = repair(history).messages
    groups = groups_of(mended)
    assert [msg for group in groups for msg in group] == mended
    for group in groups:
        check_whole(group)
        assert len(group) == 1 or has_tool_blocks(group[0])


def test_groups_of_a_history_with_parallel_calls() -> None:
    history = [
        says("a"),
        call("1", "2"),
        result("1"),
        result("2"),
        says("b"),
        call("3"),
        result("3"),
    ]
    assert [len(group) for group in groups_of(history)] == [1, 3, 1, 2]


def test_an_unanswered_call_is_told_so() -> None:
    assert outline([call("1"), says("Well?")]) == [("call 1",), (f"1: {NO_RESULT}",), ("Well?",)]
    assert troubles([call("1"), says("Well?")]) == ["unanswered_call"]


def test_a_result_without_its_call_becomes_text_with_its_media() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org"}}
    orphan = result("1", output=[{"type": "text", "text": "seen"}, picture])
    mended, repairs = repair([orphan])
    assert [each.trouble for each in repairs] == ["orphan_result"]
    assert mended[0].role == "user"
    assert mended[0].id == orphan.id
    assert "look" in (mended[0].get_text_content() or "")
    assert mended[0].get_content_blocks("image") == [picture]


def test_a_call_inside_an_orphans_output_is_no_call() -> None:
    nested = {"type": "tool_use", "id": "2", "name": "rm", "input": {}}
    mended = repair([result("1", output=[nested])]).messages
    assert not has_tool_blocks(mended[0])
    assert '"rm"' in (mended[0].get_text_content() or "")


def test_a_late_result_is_moved_behind_its_call() -> None:
    history = [call("1"), says("Well?"), result("1")]
    assert outline(history) == [("call 1",), ("1: seen",), ("Well?",)]
    assert troubles(history) == ["moved_result"]


def test_a_result_in_the_message_of_its_call_stands_behind_it() -> None:
    both = Msg("Ann", [*call("1").content, *result("1").content], "assistant")  # type: ignore[list-item]
    assert outline([both]) == [("call 1",), ("1: seen",)]
    assert troubles([both]) == ["moved_result"]
    assert len({msg.id for msg in repair([both]).messages}) == 2


def test_parallel_calls_with_one_id_are_answered_in_their_order() -> None:
    history = [call("1", "1"), result("1", output="one"), result("1", output="two")]
    assert outline(history) == [("call 1", "call 1-2"), ("1: one",), ("1-2: two",)]


def test_of_calls_with_one_id_the_newest_is_answered_first() -> None:
    history = [call("1"), call("1"), result("1", output="new"), result("1", output="old")]
    assert outline(history) == [("call 1",), ("1: old",), ("call 1-2",), ("1-2: new",)]


def test_an_id_that_was_given_out_is_not_given_again() -> None:
    history = [call("1"), result("1"), call("1"), result("1"), call("1-2"), result("1-2")]
    assert [ids[0] for ids in outline(history)[::2]] == ["call 1", "call 1-2", "call 1-2-2"]


def test_an_id_that_is_a_number_still_pairs() -> None:
    assert outline([call(1), result(1)]) == [("call 1",), ("1: seen",)]
    assert troubles([call(1), result(1)]) == ["broken_call"]


def test_arguments_that_were_cut_off_are_kept_as_they_came() -> None:
    mended = repair([call("1", input='{"where": "he')]).messages
    assert calls_in(mended[0])[0]["input"] == {}
    assert calls_in(mended[0])[0]["raw_input"] == '{"where": "he'
    whole = repair([call("1", input='{"where": "here"}')]).messages
    assert calls_in(whole[0])[0]["input"] == {"where": "here"}


def test_arguments_nested_without_end_are_no_arguments() -> None:
    mended = repair([call("1", input="[" * 100_000)]).messages
    assert calls_in(mended[0])[0]["input"] == {}


def test_junk_in_a_message_becomes_text_that_says_all() -> None:
    msg = Msg("Bob", [{"text": "no type"}, "bare", 7], "user")  # type: ignore[list-item]
    assert troubles([msg]) == ["broken_block"] * 3
    assert repair([msg]).messages[0].get_text_content("|") == '{"text": "no type"}|bare|7'


def test_a_result_that_is_no_text_is_told_as_json() -> None:
    history = [call("1"), result("1", output={"rows": 3})]
    assert outline(history)[1] == ('1: {"rows": 3}',)
    assert troubles(history) == ["broken_result"]


def test_parts_of_a_message_have_ids_of_their_own() -> None:
    mixed = Msg("Ann", [*result("1").content, *result("2").content], "system")  # type: ignore[list-item]
    taken = says("in the way")
    taken.id = f"{mixed.id}.result-1"
    mended = repair([call("1"), says("x"), call("2"), mixed, result("3"), taken]).messages
    assert len({msg.id for msg in mended}) == len(mended)


def test_repaired_messages_share_nothing_with_stored_ones() -> None:
    stored = freeze(call("1", "1", input={"deep": {"list": [1]}}))
    mended = repair([stored]).messages[0]
    calls_in(mended)[0]["input"]["deep"]["list"].append(2)
    mended.metadata["new"] = 1
    assert calls_in(stored)[0]["input"] == {"deep": {"list": [1]}}
    assert stored.metadata == {}


def test_repair_does_not_end_a_loan() -> None:
    lent = lend(freeze(call("1")), Loan())
    assert len(repair([lent]).messages) == 2
    assert is_on_loan(lent)


# No clock: a repair that takes quadratic time would not come to an end here.
def test_forty_thousand_calls_with_one_id_come_to_an_end() -> None:
    history = [call(*["1"] * 20_000), *[call("1") for _ in range(20_000)], result(*["1"] * 40_000)]
    mended, repairs = repair(history)
    assert sum(each.trouble == "repeated_id" for each in repairs) == 39_999
    assert sum(len(results_in(msg)) for msg in mended) == 40_000
    assert sum(each.trouble == "unanswered_call" for each in repairs) == 0


def test_the_text_of_an_output_names_what_is_no_text() -> None:
    assert text_of_output("seen") == "seen"
    assert (
        text_of_output([{"type": "text", "text": "a"}, {"type": "image"}, "b"]) == "a\n[image]\nb"
    )
    assert text_of_output({"rows": 3}) == '{"rows": 3}'


def test_real_runs_become_whole_at_every_length() -> None:
    for history in trajectories():
        for end in range(0, len(history), 7):
            mended = repair(history[:end]).messages
            check_whole(mended)
            assert repair(mended).repairs == ()
