"""Lessons: contrast, contradiction, what is told of them, when they are handed over, their use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoryspace.errors import InvalidInput
from memoryspace.retrieval.entries import Entry, embedded_text
from memoryspace.retrieval.relevance import RELEVANT
from memoryspace.service import ServiceSettings, TaskMemoryService, ToolMemoryService
from memoryspace.service.deriving.task.trajectory import is_failure
from memoryspace.service.deriving.tool.causes import cause_of
from memoryspace.service.deriving.tool.statistics import KeptCall, drift, error_group, statistics
from memoryspace.service.learning.lessons import helpfulness
from memoryspace.service.values.memory import MemoryItem
from memoryspace.service.values.results import MemoryHit

ANN = "ann"


def attempt(task: str, *calls: tuple[str, dict[str, Any], str], end: str = "") -> list[Any]:
    """Return a run: what was asked, calls with their answers, and what was said at the end."""
    messages: list[Any] = [{"role": "user", "content": task}]
    for number, (tool, arguments, answer) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    if end:
        messages.append({"role": "assistant", "content": end})
    return messages


EXPORT = "Export every customer from the Larkdesk CRM into customers.csv"
PAGED = ("http_get", {"url": "/customers", "page": 2}, '{"items": [1, 2]}')
CURSOR = ("http_get", {"url": "/customers", "cursor": "n1"}, '{"items": [1, 2], "next": null}')
TOO_MANY = ("http_get", {"url": "/customers", "limit": 500}, '{"error": "limit must be <= 200"}')


def memory() -> TaskMemoryService:
    return TaskMemoryService(settings=ServiceSettings(embedder=None))


async def lessons(tasks: TaskMemoryService) -> list[MemoryItem]:
    return list((await tasks.page(ANN, limit=100)).memories)


async def test_one_lesson_says_what_to_do_and_what_to_avoid() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(ANN, attempt(EXPORT, TOO_MANY, PAGED, end="Done"), score=0.0)
        await tasks.add_trajectory(ANN, attempt(EXPORT, CURSOR, end="All 412 are there"), score=1.0)
        [lesson] = await lessons(tasks)
        do, _, avoid = lesson.details["lesson"].partition("Avoid")
        assert lesson.details["type"] == "comparison"
        assert "cursor" in do
        assert "All 412 are there" in do
        assert "page" not in do
        assert "limit must be <= 200" in avoid
        assert '"page": 2' in avoid
        assert "cursor" not in avoid


async def test_a_call_that_failed_in_two_ways_is_told_with_both() -> None:
    async with memory() as tasks:
        missing = ("load", {"file": "demo"}, "Error: relation shop does not exist")
        twice = ("load", {"file": "demo"}, "Error: duplicate key value in slug")
        await tasks.add_trajectory(ANN, attempt(EXPORT, missing), score=0.0)
        await tasks.add_trajectory(ANN, attempt(EXPORT, twice), score=0.0)
        [lesson] = await lessons(tasks)
        assert "does not exist" in lesson.text
        assert "duplicate key" in lesson.text


async def test_runs_of_another_task_begin_another_lesson() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(ANN, attempt(EXPORT, CURSOR), score=1.0)
        water = attempt("Water the plants in the greenhouse", ("water", {"litres": 3}, "ok"))
        await tasks.add_trajectory(ANN, water, score=1.0)
        assert len(await lessons(tasks)) == 2


async def test_repetitions_confirm_and_are_kept_as_evidence() -> None:
    async with memory() as tasks:
        for number in range(15):
            await tasks.add_trajectory(
                ANN, attempt(EXPORT, CURSOR), score=1.0, session_id=f"s{number}"
            )
        [lesson] = await lessons(tasks)
        assert lesson.details["confirmations"] == 14
        assert [run["session"] for run in lesson.details["runs"].values()] == [
            f"s{number}" for number in range(3, 15)
        ]


async def test_a_way_that_fails_now_is_retired_with_its_date() -> None:
    async with memory() as tasks:
        old = ("http_get", {"url": "/v1/export"}, "ok")
        gone = ("http_get", {"url": "/v1/export"}, "Error: 410 gone")
        new = ("http_get", {"url": "/v2/export"}, "ok")
        await tasks.add_trajectory(ANN, attempt(EXPORT, old), score=1.0)
        [first] = await lessons(tasks)
        await tasks.add_trajectory(ANN, attempt(EXPORT, gone, new), score=1.0)
        [lesson] = await lessons(tasks)
        do, _, avoid = lesson.details["lesson"].partition("Avoid")
        assert "/v2/export" in do
        assert "/v1/export" not in do
        assert "410 gone" in avoid
        retired = await tasks.get(ANN, first.id)
        assert retired is not None
        assert retired.details["superseded_by"] == lesson.id
        assert retired.valid_to is not None
        assert [hit.memory.id for hit in await tasks.search(ANN, EXPORT)] == [lesson.id]


async def test_another_argument_that_fails_retires_nothing() -> None:
    async with memory() as tasks:
        good = ("book_table", {"people": 2}, "ok")
        bad = ("book_table", {"people": 20}, "Error: too many")
        task = "Book a table at the harbour"
        await tasks.add_trajectory(ANN, attempt(task, good), score=1.0)
        await tasks.add_trajectory(ANN, attempt(task, bad), score=0.0)
        [lesson] = await lessons(tasks)
        assert lesson.details["type"] == "comparison"
        assert '"people": 2}' in lesson.details["lesson"].partition("Avoid")[0]


async def test_what_the_user_said_to_the_answer_is_evidence() -> None:
    async with memory() as tasks:
        run = attempt(EXPORT, PAGED, end="The file is complete.")
        complaint = "No, it has only 200 rows!"
        await tasks.add_trajectory(ANN, [*run, {"role": "user", "content": complaint}], score=0.0)
        [lesson] = await lessons(tasks)
        assert lesson.details["type"] == "failure"
        assert complaint in lesson.text


async def test_a_lesson_in_chinese_is_told_in_chinese() -> None:
    async with memory() as tasks:
        bad = ("查询", {"单号": "X1"}, "错误：缺少公司")
        await tasks.add_trajectory(ANN, attempt("帮我查一下这个包裹到哪里了", bad), score=0.0)
        [lesson] = await lessons(tasks)
        assert "避免" in lesson.text
        assert "缺少公司" in lesson.text


async def test_the_runs_themselves_can_be_searched() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(ANN, attempt(EXPORT, TOO_MANY), score=0.0)
        found = await tasks.search(ANN, "limit must be", filters={"kind": "memory"})
        assert any("limit must be <= 200" in hit.memory.text for hit in found)


async def test_a_task_never_seen_gets_nothing() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(ANN, attempt(EXPORT, CURSOR), score=1.0)
        assert await tasks.search(ANN, "Translate this poem about the sea into French") == []
        assert await tasks.search_memory(ANN, "Translate this poem about the sea into French") == []
        [hit] = await tasks.search(ANN, "Export every supplier from the Larkdesk CRM")
        assert RELEVANT <= hit.score <= 1


async def test_a_word_of_the_task_tells_more_than_one_of_what_was_done() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(ANN, attempt(EXPORT, CURSOR), score=1.0)
        cancel = attempt("Cancel the stay of Mr Berg", end="Free of charge until six tonight")
        await tasks.add_trajectory(ANN, cancel, score=1.0)
        [hit] = await tasks.search(ANN, "Give me a dump of our Larkdesk clients")
        assert "Larkdesk" in hit.memory.text
        assert await tasks.search(ANN, "Calibrate the telescope for tonight") == []


async def test_a_word_that_every_lesson_has_tells_little() -> None:
    async with memory() as tasks:
        done = ("pitch tent", "row boat", "light lamp", "splice rope", "mend sail", "carve oar")
        for tool, thing in (each.split() for each in done):
            run = attempt(f"Quartermaster: {tool} the {thing}", (tool, {}, "ok"))
            await tasks.add_trajectory(ANN, run, score=1.0)
        assert len(await lessons(tasks)) == len(done)
        common = await tasks.search(ANN, "Quartermaster", top_k=1, min_relevance=0.0)
        rare = await tasks.search(ANN, "Lamp", top_k=1, min_relevance=0.0)
        assert common[0].score < rare[0].score


async def test_an_agent_is_handed_what_a_search_finds_concerning() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(ANN, attempt(EXPORT, CURSOR), score=1.0)
        for asked in (EXPORT, "Export a poem", "Larkdesk", "The customer is king", "Rain"):
            by_default = await tasks.search(ANN, asked)
            assert by_default == await tasks.search(ANN, asked, min_relevance=RELEVANT)


def test_a_lesson_is_embedded_without_its_calls_and_a_message_as_it_is() -> None:
    text = 'For a task like: Export\nDo: http_get({"url": "/a", "f": {"b": 1}}). All are there'
    clipped = 'Avoid: patch({"args": "x…) ⇒ refused'
    lesson = Entry("l", f"{text}\n{clipped}", kind="experience", is_told_itself=True)
    assert embedded_text(lesson) == (
        "For a task like: Export\nDo: . All are there\nAvoid:  ⇒ refused"
    )
    assert embedded_text(Entry("m", text)) == text


async def test_uses_move_a_lesson_in_the_direction_they_say() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(ANN, attempt(EXPORT, CURSOR), score=1.0)
        [hit] = await tasks.search(ANN, EXPORT)
        await tasks.record_use(ANN, hit.memory.id, helped=True)
        [better] = await tasks.search(ANN, EXPORT)
        assert better.score > hit.score
        for _ in range(12):
            await tasks.record_use(ANN, hit.memory.id, helped=False)
        assert await tasks.search(ANN, EXPORT) == []
        [worse] = await tasks.search(ANN, EXPORT, min_relevance=0.0)
        assert worse.score < hit.score
        with pytest.raises(InvalidInput, match="helped="):
            await tasks.record_use(ANN, hit.memory.id)


def hit_with(score: float, uses: int, successes: int) -> MemoryHit:
    details = {"uses": uses, "successes": successes}
    memory = MemoryItem(
        id="m", user_id=ANN, session_id="s", value="", text="", kind="experience",
        details=details, created_at=1.0, updated_at=1.0,
    )  # fmt: skip
    return MemoryHit(memory, score)


def test_helpfulness_rises_with_help_and_falls_without() -> None:
    unused = helpfulness(hit_with(0.5, 0, 0))
    assert unused == pytest.approx(0.5)
    rising = [helpfulness(hit_with(0.5, uses, uses)) for uses in range(4)]
    falling = [helpfulness(hit_with(0.5, uses, 0)) for uses in range(4)]
    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)
    assert helpfulness(hit_with(0.0, 9, 9)) == 0
    assert helpfulness(hit_with(0.5, 1000, 1000)) < 0.8


async def test_a_lesson_is_made_anew_of_the_runs_that_are_left() -> None:
    async with memory() as tasks:
        await tasks.add_trajectory(
            ANN, attempt(EXPORT, TOO_MANY, end="a secret"), score=0.0, session_id="one"
        )
        await tasks.add_trajectory(ANN, attempt(EXPORT, CURSOR), score=1.0, session_id="two")
        deleted = await tasks.delete_memory(ANN, "one")
        [lesson] = await lessons(tasks)
        assert lesson.id not in deleted.ids
        assert lesson.session_id == "two"
        assert lesson.details["type"] == "success"
        assert "secret" not in str(await tasks.store.select(tasks._scope(ANN, None)))
        [hit] = await tasks.search(ANN, EXPORT)
        assert hit.memory.id == lesson.id
        await tasks.delete_memory(ANN, "two")
        assert await lessons(tasks) == []
        assert (await tasks.verify_erasure(ANN)).is_complete


@pytest.mark.parametrize(
    "output",
    ["sed: 1: invalid command code .", "git: 'psuh' unknown command", "ls: cannot access x"],
)
def test_complaints_of_programs_are_failures(output: str) -> None:
    assert is_failure(output)
    assert not is_failure("note: all is well")


# -- tools -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed", "worked", "expected"),
    [
        ([{"to": "a"}], [{"to": "a", "by": "1"}, {"to": "b", "by": "2"}], "by was lacking"),
        ([{"a": "1", "x": "9"}], [{"a": "1"}, {"a": "2"}], "x was given"),
        ([{"dpi": "72"}, {"dpi": "72"}], [{"dpi": "300"}, {"dpi": "400"}], "dpi=72"),
        ([{"f": "a.heic"}, {"f": "b.heic"}], [{"f": "c.png"}, {"f": "d.jpg"}], ".heic"),
        ([{"c": "Vienna"}, {"c": "Oslo"}], [{"c": "LIS"}, {"c": "VIE"}], "wrong form of c"),
        (
            [{"q": "select a from b"}, {"q": "select c from d"}],
            [{"q": "select a from b limit"}, {"q": "select e from f limit"}],
            "“limit” was lacking",
        ),
        ([{"a": "x"}], [{"a": "x"}], None),
        ([{"a": "1"}], [], None),
    ],
)
def test_the_cause_is_what_failures_alone_have(
    failed: list[dict[str, str]], worked: list[dict[str, str]], expected: str | None
) -> None:
    cause = cause_of(failed, worked)
    assert cause is None if expected is None else cause is not None and expected in cause


def test_errors_that_differ_in_an_argument_are_one() -> None:
    one = error_group("unknown airport code: Vienna", {"from": "Vienna"})
    assert one == error_group("unknown airport code: Oslo", {"from": "Oslo"})
    assert one == "unknown airport code: <from>"


def calls(pattern: str) -> list[KeptCall]:
    return [
        KeptCall(str(n), str(n), ok == "+", seconds=float(n + 1), at=f"day {n}")
        for n, ok in enumerate(pattern)
    ]


def test_a_tool_that_began_to_fail_is_noticed() -> None:
    change = drift(calls("++++++++++-----"))
    assert change is not None
    assert (change.since, change.before, change.after, change.calls) == ("day 10", 1.0, 0.0, 5)
    assert drift(calls("+-+-+-+-+-+-+-")) is None
    assert drift(calls("++")) is None


async def test_a_tool_that_began_to_fail_last_week_is_told_whenever_its_calls_come() -> None:
    results = [
        {
            "tool_name": "ocr_scan",
            "input": {"page": day},
            "output": "ok" if day < 15 else "out of service",
            "success": day < 15,
            "create_time": f"2024-05-{day:02}T08:00:00",
        }
        for day in range(1, 23)
    ]
    async with ToolMemoryService(settings=ServiceSettings(embedder=None)) as tools:
        await tools.add_tool_call_results(ANN, results[11:])
        await tools.add_tool_call_results(ANN, results[:11])
        [known] = await tools.guidelines(ANN, "ocr_scan")
        told = "It fails more often since 2024-05-15T08:00:00: 0 % succeeded, 100 % before."
        assert told in known.text
        assert known.details["drift"]["calls"] == 8


def test_durations_are_told_as_quantiles() -> None:
    figures = statistics(calls("+" * 101))
    assert (figures.p50_seconds, figures.p95_seconds) == (51.0, 96.0)


async def test_a_tool_is_found_by_its_name() -> None:
    async with ToolMemoryService(settings=ServiceSettings(embedder=None)) as tools:
        for name in ("ocr_scan", "pofixi"):
            call = {"tool_name": name, "input": {"page": 1}, "output": "ok", "success": True}
            await tools.add_tool_call_results(ANN, [call])
            [hit] = await tools.search(ANN, f"How to use {name}?")
            assert hit.memory.title == name


async def test_a_tool_is_found_without_its_name() -> None:
    async with ToolMemoryService(settings=ServiceSettings(embedder=None)) as tools:
        results = [
            {"tool_name": "ocr_scan", "input": {"dpi": dpi}, "output": out, "success": ok}
            for dpi, out, ok in [
                (300, "812 words", True),
                (400, "933 words", True),
                (72, "confidence below threshold", False),
            ]
        ]
        await tools.add_tool_call_results(ANN, results)
        [hit] = await tools.search(ANN, "Why is the confidence of recognised words low?")
        assert "dpi=72: avoid it" in hit.memory.text
