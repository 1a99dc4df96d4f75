"""Compaction: what stays, what leaves, in which order, and where it goes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexts import WORDS, Session, as_text, conversation, said, step
from memoryspace.context import (
    DEFAULT_STEPS,
    Compactor,
    Draft,
    FileArchive,
    Kept,
    Kind,
    Leave,
    Limits,
    Meter,
    Pages,
    Parcel,
    RAMArchive,
)
from memoryspace.context.archive import digest_of
from memoryspace.context.summaries.summary import MOST_HANDLES, SummaryMessage, clipped
from memoryspace.errors import InvalidInput, UnknownHandle
from memoryspace.formatter import OpenAIChatFormatter
from memoryspace.message import Msg, freeze
from memoryspace.token import CharTokenCounter, EstimatedTokenCounter

PICTURE: Any = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 9000},
}


def log(lines: int) -> str:
    return "\n".join(f"line {number} of the log" for number in range(lines))


def output_of(msg: Msg) -> Any:
    return msg.get_content_blocks("tool_result")[0]["output"]  # type: ignore[typeddict-item]


# -- what stays ------------------------------------------------------------------------------------


async def test_what_fits_is_left_as_it_is() -> None:
    history = conversation(3)
    done = await Compactor(Limits(budget=10_000)).compact(history)
    assert all(new is old for new, old in zip(done.messages, history, strict=True))
    assert done.pages == Pages()
    assert done.report.losses == ()
    assert done.report.tokens_before == done.report.tokens_after <= 10_000
    assert done.report.excess == ""


async def test_an_empty_history_stays_empty() -> None:
    done = await Compactor(Limits(budget=1)).compact([])
    assert done.messages == []
    assert done.report.is_within_budget


async def test_pinned_messages_and_the_newest_user_message_stay_whatever_the_budget() -> None:
    history = conversation(20)
    pinned = [history[3].id, history[8].id]
    done = await Compactor(Limits(budget=1)).compact(history, pinned=pinned)
    summary, *rest = done.messages
    assert rest == [history[3], history[8], history[38]]
    assert summary.id.startswith("summary-")
    assert "the newest user message: " in done.report.excess
    assert "pinned messages and their tool calls or results: " in done.report.excess


async def test_instructions_stay_in_front_of_the_summary() -> None:
    history = [said("Be brief. " * 30, "system"), *conversation(20)]
    done = await Compactor(Limits(budget=500, keep_recent=2)).compact(history)
    assert done.messages[0] is history[0]
    assert done.messages[1].id.startswith("summary-")
    assert done.report.is_within_budget


async def test_a_call_and_its_results_leave_together_or_stay_together() -> None:
    history = [said("go"), *[msg for n in range(30) for msg in step(n, WORDS * 5)]]
    for budget in range(1, 3000, 150):
        for keep_recent in (0, 1, 2, 5):
            limits = Limits(budget=budget, keep_recent=keep_recent)
            done = await Compactor(limits).compact(history)
            calls = [b["id"] for m in done.messages for b in m.get_content_blocks("tool_use")]
            results = [b["id"] for m in done.messages for b in m.get_content_blocks("tool_result")]
            assert calls == results


async def test_one_pinned_result_keeps_its_call() -> None:
    history = [said("go"), *step(1, "small"), *conversation(20)]
    done = await Compactor(Limits(budget=60)).compact(history, pinned=[history[2].id])
    assert history[1] in done.messages
    assert history[2] in done.messages


async def test_recent_messages_are_left_alone_while_there_is_another_way() -> None:
    history = conversation(20)
    limits = Limits(budget=1000, keep_recent=6, low_water=0)
    done = await Compactor(limits).compact(history)
    assert done.messages[-6:] == history[-6:]
    assert done.pages.summarised == {msg.id for msg in history[:-6]}


async def test_the_newest_user_message_is_not_a_mere_tool_result_of_the_user_role() -> None:
    result: Any = {"type": "tool_result", "id": "call-1", "name": "look", "output": "seen"}
    call = step(1)[0]
    history = [said("the question"), call, Msg("user", [result], "user"), *conversation(0)]
    done = await Compactor(Limits(budget=1)).compact(history)
    assert history[0] in done.messages


# -- what leaves, in which order -------------------------------------------------------------------


async def test_a_big_old_result_leaves_first_and_can_be_had_back() -> None:
    output = log(2000)
    history = [said("read the log"), *step(1, output), *conversation(3)]
    compactor = Compactor(Limits(budget=5000, keep_recent=4))
    done = await compactor.compact(history)
    (loss,) = done.report.losses
    assert (loss.what, loss.step) == ("tool_result", "off-load big results")
    assert loss.message_ids == (history[2].id,)
    assert done.report.tokens_before - loss.tokens == done.report.tokens_after <= 3500
    assert await compactor.expand(loss.handle) == output
    stub = output_of(done.messages[2])
    assert stub.startswith("line 0 of the log\n")
    assert "line 1999 of the log" in stub
    assert f"2,000 lines, {len(output):,} characters" in stub
    assert f'read_memory("{loss.handle}", first_line, last_line)' in stub
    assert done.pages == Pages(offloaded=frozenset({history[2].id}))


async def test_only_as_much_leaves_as_has_to() -> None:
    results = [msg for number in range(6) for msg in step(number, log(420), path=str(number))]
    history = [said("go"), *results, *conversation(2)]
    limits = Limits(budget=12_000, low_water=0.8, keep_recent=4, tool_result=500)
    done = await Compactor(limits).compact(history)
    assert [loss.message_ids for loss in done.report.losses] == [
        (msg.id,) for msg in (results[1], results[3], results[5])
    ]
    assert 7000 < done.report.tokens_after <= 9600


async def test_the_result_of_a_call_that_was_made_again_leaves_before_other_big_ones() -> None:
    history = [
        *step(1, log(400), path="b.py"),
        *step(2, log(400), path="a.py"),
        *step(3, log(400), path="a.py"),
        said("and now?"),
    ]
    limits = Limits(budget=7000, low_water=0.9, keep_recent=1, tool_result=100)
    done = await Compactor(limits).compact(history)
    (loss,) = done.report.losses
    assert loss.step == "clear repeated results"
    assert loss.message_ids == (history[3].id,)


async def test_a_hint_leaves_first_once_a_step_has_used_it() -> None:
    hint, fresh = said("hint: " + WORDS * 50, id="h1"), said("hint: " + WORDS, id="h2")
    history = [said("go"), hint, said("gone", "assistant"), *conversation(3), fresh]
    compactor = Compactor(Limits(budget=800, low_water=0.9))
    done = await compactor.compact(history, hints=["h1", "h2"])
    (loss,) = done.report.losses
    assert (loss.what, loss.step, loss.message_ids) == ("hint", "drop hints", ("h1",))
    assert done.pages.dropped == {"h1"}
    assert fresh in done.messages
    assert [as_text(msg) for msg in await compactor.expand(loss.handle)] == [as_text(hint)]


async def test_old_pictures_become_a_line_and_come_back_whole() -> None:
    words: Any = {"type": "text", "text": "look at this"}
    history = [Msg("ann", [words, PICTURE], "user"), *conversation(4)]
    compactor = Compactor(Limits(budget=700, low_water=0.9, keep_recent=4))
    done = await compactor.compact(history)
    (loss,) = done.report.losses
    assert (loss.what, loss.step) == ("media", "stub media")
    assert 600 < loss.tokens < 765
    kept, stub = done.messages[0].get_content_blocks("text")
    assert kept["text"] == "look at this"
    assert stub["text"].startswith("[image/png, 99,000 characters of data, left the context")
    assert await compactor.expand(loss.handle) == [PICTURE]


async def test_a_picture_in_a_result_leaves_with_it() -> None:
    output: Any = [{"type": "text", "text": "a chart"}, PICTURE]
    history = [said("draw"), *step(1, output), *conversation(4)]
    compactor = Compactor(Limits(budget=700, low_water=0.9, keep_recent=4))
    done = await compactor.compact(history)
    (loss,) = done.report.losses
    assert await compactor.expand(loss.handle) == output
    assert done.messages[2].get_content_blocks("tool_result")[0]["output"][0]["type"] == "text"


async def test_thoughts_of_old_steps_leave_without_a_trace_in_the_prompt() -> None:
    thought: Any = {"type": "thinking", "thinking": WORDS * 30}
    answer: Any = {"type": "text", "text": "forty-two"}
    history = [said("?"), Msg("bob", [thought, answer], "assistant"), *conversation(4)]
    compactor = Compactor(Limits(budget=700, low_water=0.9, keep_recent=4))
    done = await compactor.compact(history)
    (loss,) = done.report.losses
    assert (loss.what, loss.step) == ("thinking", "drop thoughts")
    assert done.messages[1].content == [answer]
    assert await compactor.expand(loss.handle) == [thought]


async def test_thoughts_of_the_last_step_stay() -> None:
    thought: Any = {"type": "thinking", "thinking": WORDS * 30}
    call, result = step(1)
    call.content = [thought, *call.content]  # type: ignore[list-item]
    history = [said("why?"), call, result]
    done = await Compactor(Limits(budget=330, keep_recent=0)).compact(history)
    assert done.report.losses == ()
    assert done.messages == history


async def test_a_step_of_many_calls_is_measured_once_not_once_for_each() -> None:
    class Counting(EstimatedTokenCounter):
        seen = 0

        async def count(self, messages: Any, tools: Any = None) -> int:
            self.seen += len(messages)
            return await super().count(messages, tools)

    steps = [step(number, log(40), path=str(number)) for number in range(300)]
    calls = Msg("agent", [block for call, _ in steps for block in call.content], "assistant")  # type: ignore[misc]
    history = [said("go"), calls, *(result for _, result in steps), *conversation(3)]
    counter = Counting()
    meter = Meter(counter, OpenAIChatFormatter())
    limits = Limits(budget=70_000, low_water=0.8, keep_recent=4)
    session = Session(Compactor(limits, meter=meter))
    done = await session.compact(history)
    assert 50 < len(done.report.losses) < 300
    assert counter.seen < 700
    await session.check(history)
    whole = await counter.count(await OpenAIChatFormatter().format(done.messages))
    assert abs(whole - done.report.tokens_after) < 0.02 * whole


async def test_small_old_results_leave_before_anything_is_summarised() -> None:
    results = [msg for number in range(10) for msg in step(number, log(40), path=str(number))]
    limits = Limits(budget=2500, low_water=0.8, keep_recent=2)
    done = await Compactor(limits).compact([said("go"), *results])
    assert {loss.step for loss in done.report.losses} == {"clear old results"}
    assert [loss.message_ids[0] for loss in done.report.losses] == [
        msg.id for msg in results[1 : 2 * len(done.report.losses) : 2]
    ]


async def test_recent_results_leave_last_and_the_biggest_first() -> None:
    history = [said("go"), *step(1, log(50)), *step(2, log(2000)), *step(3, log(60))]
    done = await Compactor(Limits(budget=3000, keep_recent=10)).compact(history)
    (loss,) = done.report.losses
    assert loss.step == "off-load recent results"
    assert loss.message_ids == (history[4].id,)


async def test_with_force_it_is_compacted_though_it_fits() -> None:
    history = conversation(10)
    compactor = Compactor(Limits(budget=10_000, low_water=0, keep_recent=2))
    assert (await compactor.compact(history)).report.losses == ()
    done = await compactor.compact(history, force=True)
    assert len(done.messages) == 3
    assert done.messages[1:] == history[-2:]


async def test_what_is_reserved_is_not_there_for_messages() -> None:
    history = conversation(10)
    compactor = Compactor(Limits(budget=2000, keep_recent=2))
    assert (await compactor.compact(history, reserved=500)).report.losses == ()
    done = await compactor.compact(history, reserved=1500)
    assert done.report.budget == 500
    assert done.report.tokens_after <= 350
    over = await compactor.compact(history, reserved=5000)
    assert "of 0 (2000 less the reserved tokens)" in over.report.excess


# -- the page table --------------------------------------------------------------------------------


async def test_what_was_decided_stays_decided_while_it_fits() -> None:
    history = [said("go"), *step(1, log(2000)), *conversation(10)]
    compactor = Compactor(Limits(budget=1500, keep_recent=4))
    first = await compactor.compact(history)
    assert first.report.losses
    grown = [*history, *conversation(2)]
    second = await compactor.compact(grown, pages=first.pages)
    assert second.report.losses == ()
    assert list(map(as_text, second.messages))[: len(first.messages)] == list(
        map(as_text, first.messages)
    )
    assert second.messages[len(first.messages) :] == grown[-4:]
    assert second.pages == first.pages


async def test_another_compactor_shows_the_same_from_the_same_pages() -> None:
    history = [said("go"), *step(1, log(2000)), *conversation(10)]
    limits = Limits(budget=3000, keep_recent=4)
    first = await Compactor(limits).compact(history)
    other = Compactor(limits)  # with an archive that is empty
    second = await other.compact(history, pages=first.pages)
    assert list(map(as_text, second.messages)) == list(map(as_text, first.messages))
    (loss,) = first.report.losses
    assert await other.expand(loss.handle) == log(2000)


async def test_what_is_pinned_afterwards_comes_back() -> None:
    history = [said("go"), *step(1, log(2000)), *conversation(10)]
    compactor = Compactor(Limits(budget=12_000, keep_recent=2, low_water=0.01))
    first = await compactor.compact(history, force=True)
    assert history[2].id in first.pages.summarised
    second = await compactor.compact(history, pages=first.pages, pinned=[history[2].id])
    assert history[1] in second.messages
    assert history[2] in second.messages
    assert history[2].id not in second.pages.summarised


async def test_a_result_that_comes_after_its_call_has_left_brings_it_back() -> None:
    call, result = step(1, "late")
    history = [said("go"), call, *conversation(10)]
    session = Session(Compactor(Limits(budget=400, keep_recent=2)))
    first = await session.compact(history)
    assert call.id in first.pages.summarised
    history.append(result)
    second = await session.compact(history)
    assert result in second.messages
    assert call in second.messages
    await session.check(history)


async def test_ids_of_messages_that_are_gone_leave_the_page_table() -> None:
    history = conversation(20)
    compactor = Compactor(Limits(budget=600, keep_recent=2))
    first = await compactor.compact(history)
    second = await compactor.compact(history[30:], pages=first.pages)
    assert second.pages.summarised <= {msg.id for msg in history[30:]}
    assert second.pages.summary == first.pages.summary


async def test_two_messages_with_one_id_are_both_kept() -> None:
    history = conversation(20)
    history[4].id = history[0].id
    session = Session(Compactor(Limits(budget=600, keep_recent=2)))
    await session.compact(history)
    await session.check(history)
    again = await session.compact(history)
    assert again.report.losses == ()


async def test_nothing_that_was_given_is_changed() -> None:
    history = [freeze(msg) for msg in [said("go"), *step(1, log(2000)), *conversation(9)]]
    before = list(map(as_text, history))
    done = await Compactor(Limits(budget=900)).compact(history)
    done.messages[0].metadata["mine"] = True
    for msg in done.messages:
        if not isinstance(msg.content, str) and type(msg) is Msg:
            msg.content.append({"type": "text", "text": "mine"})
    assert list(map(as_text, history)) == before
    again = await Compactor(Limits(budget=900)).compact(history)
    assert "mine" not in str(list(map(as_text, again.messages)))


# -- the stand-in ----------------------------------------------------------------------------------


async def test_the_summary_stands_for_all_that_left_so_far_and_names_where_it_is() -> None:
    session = Session(Compactor(Limits(budget=800, keep_recent=2)))
    history: list[Msg] = []
    for _ in range(6):
        history += conversation(4)
        await session.compact(history)
    assert session.done is not None
    summary = SummaryMessage.read(session.done.pages.summary)
    assert summary.messages == len(session.done.pages.summarised)
    named = [await session.compactor.expand(handle) for handle in summary.handles]
    assert [msg.id for some in named for msg in some] == [  # type: ignore[union-attr]
        msg.id for msg in history if msg.id in session.done.pages.summarised
    ]
    await session.check(history)


async def test_a_long_life_does_not_make_the_summary_long() -> None:
    session = Session(Compactor(Limits(budget=800, keep_recent=2, low_water=0.4)))
    history: list[Msg] = []
    sizes = []
    for _ in range(40):
        history += conversation(3)
        done = await session.compact(history)
        sizes.append(len(done.pages.summary))
    assert max(sizes[20:]) <= 1.5 * max(sizes[:10])
    summary = SummaryMessage.read(done.pages.summary)
    assert len(summary.handles) <= MOST_HANDLES
    index = await session.compactor.expand(summary.handles[0])
    assert isinstance(index, str)
    assert index.startswith("Summarised messages, oldest first")
    for handle in index.split("\n")[1:]:
        assert await session.compactor.expand(handle)
    await session.check(history)


async def test_a_summary_of_the_users_own_is_merged_and_kept() -> None:
    compactor = Compactor(Limits(budget=800, keep_recent=2))
    pages = Pages(summary="The user must never be called Annie. Her order is A-1023.")
    done = await compactor.compact(conversation(20), pages=pages)
    (loss,) = [loss for loss in done.report.losses if loss.what == "summary"]
    assert await compactor.expand(loss.handle) == pages.summary
    assert "A-1023" in done.pages.summary


async def test_a_summary_that_is_too_long_by_itself_is_cut_and_kept() -> None:
    compactor = Compactor(Limits(budget=100))
    pages = Pages(summary="It was said. " * 200)
    done = await compactor.compact([said("and?")], pages=pages)
    assert done.report.is_within_budget
    assert done.messages[0].get_text_content().startswith("It was said. ")  # type: ignore[union-attr]
    (loss,) = done.report.losses
    assert await compactor.expand(loss.handle) == pages.summary


@given(
    st.text(max_size=200), st.integers(1, 10**6), st.lists(st.integers(0, 2**64 - 1), max_size=5)
)
def test_a_summary_message_reads_itself_back(body: str, messages: int, numbers: list[int]) -> None:
    handles = tuple(f"{number:016x}" for number in numbers)
    summary = SummaryMessage(body, messages if handles else 0, handles)
    if handles or SummaryMessage.read(body) == SummaryMessage(body):
        assert SummaryMessage.read(summary.text) == summary


@given(st.text(max_size=100), st.integers(0, 120))
def test_a_text_is_never_cut_too_long(text: str, length: int) -> None:
    assert len(clipped(text, length)) <= length or clipped(text, length) == ""


# -- troubles --------------------------------------------------------------------------------------


class FullDisk(RAMArchive):
    """An archive that cannot keep anything."""

    def put(self, parcels: Sequence[Parcel]) -> list[Kept]:
        raise OSError(28, "No space left on device")


async def test_what_cannot_be_kept_does_not_leave() -> None:
    history = conversation(20)
    done = await Compactor(Limits(budget=300), archive=FullDisk()).compact(history)
    assert done.messages == history
    assert done.pages == Pages()
    assert done.report.losses == ()
    assert done.report.troubles == ("the archive failed (OSError), so nothing left the context",)
    assert done.report.excess


async def test_a_message_that_cannot_be_written_down_stays() -> None:
    odd = Msg("ann", "with an odd value", "user", metadata={"value": {1, 2}})
    history = [odd, *conversation(10)]
    done = await Compactor(Limits(budget=20)).compact(history)
    assert odd in done.messages
    assert "messages that cannot be serialised: " in done.report.excess


class Clashing(RAMArchive):
    """An archive whose digests all begin alike."""

    def digest(self, kind: Kind, data: str) -> str:
        return "0" * 20 + digest_of(kind, data)[:44]


async def test_handles_that_clash_are_named_as_they_really_are() -> None:
    results = [msg for number in range(5) for msg in step(number, log(300 + number))]
    history = [said("go"), *results, *conversation(10)]
    session = Session(Compactor(Limits(budget=3000, keep_recent=4), archive=Clashing()))
    done = await session.compact(history)
    assert len(done.report.handles) > 3
    assert all(handle.startswith("0" * 16) for handle in done.report.handles)
    await session.check(history)
    for loss in done.report.losses:
        if loss.what == "tool_result" and loss.message_ids[0] in done.pages.offloaded:
            shown = next(msg for msg in done.messages if msg.id == loss.message_ids[0])
            assert f'"{loss.handle}"' in output_of(shown)


async def test_an_unknown_handle_is_said_to_be_one() -> None:
    compactor = Compactor(Limits(budget=10))
    for handle in ("0" * 16, "../x", ""):
        with pytest.raises(UnknownHandle):
            await compactor.expand(handle)


@pytest.mark.parametrize(
    "options", [{"budget": -1}, {"budget": 1.5}, {"low_water": 2}, {"keep_recent": True}]
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Limits(**{"budget": 9, **options})


class Waiting:
    """A summariser that waits for something that never comes."""

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        await asyncio.Event().wait()
        return ""


@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("is_on_disk", [False, True])
async def test_whenever_it_is_cancelled_the_archive_is_whole_and_it_can_go_on(
    turns: int, is_on_disk: bool, tmp_path: Path
) -> None:
    history = [said("go"), *step(1, log(2000)), *conversation(20)]
    archive = FileArchive(tmp_path, "ann", "s1") if is_on_disk else RAMArchive()
    limits = Limits(budget=800, keep_recent=2)
    task = asyncio.create_task(
        Compactor(limits, archive=archive, summariser=Waiting()).compact(history)
    )
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    archive.check()
    session = Session(Compactor(limits, archive=archive))
    await session.compact(history)
    await session.check(history)


# -- steps of one's own, and other measures --------------------------------------------------------


class DropQuestions:
    """A step of a user's own: questions leave, the longest first."""

    name, is_last_resort = "drop questions", False

    def choose(self, draft: Draft) -> Iterator[Leave]:
        for group in sorted(draft.resident(), key=lambda group: -group.cost):
            if "?" in (group.originals[0].get_text_content() or ""):
                yield Leave("drop", group, "it was only a question")


async def test_a_pipeline_may_be_put_together_anew() -> None:
    history = [said("why? " * 10), said("so.", "assistant"), said("how? " * 90), said("last")]
    compactor = Compactor(Limits(budget=100), steps=[DropQuestions(), *DEFAULT_STEPS])
    done = await compactor.compact(history)
    (loss,) = done.report.losses
    assert (loss.step, loss.message_ids) == ("drop questions", (history[2].id,))
    assert [as_text(msg) for msg in await compactor.expand(loss.handle)] == [as_text(history[2])]


async def test_a_step_cannot_take_what_must_stay() -> None:
    history = [said("why? " * 90, id="pin"), said("how? " * 90)]
    compactor = Compactor(Limits(budget=10), steps=[DropQuestions()])
    done = await compactor.compact(history, pinned=["pin"])
    assert done.messages == history
    assert done.report.excess


async def test_a_budget_may_be_in_characters() -> None:
    meter = Meter(CharTokenCounter())
    session = Session(Compactor(Limits(budget=3000, keep_recent=2), meter=meter))
    history = conversation(20)
    done = await session.compact(history)
    await session.check(history)
    assert 500 < done.report.tokens_after <= 2100
