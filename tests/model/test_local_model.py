"""Memories with a real model on this machine, end to end: the parts fit, whatever it says.

No claim about quality is made: see ``local_model``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from memoryspace.model import Spending
from memoryspace.service import PersonalMemoryService, ServiceSettings, TaskMemoryService

from local_model import NAME, LocalModel, local_server, narrowed

local = pytest.mark.local_model
SETTINGS = ServiceSettings(embedder=None)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with local_server() as address:
        yield address


def said(text: str) -> dict[str, str]:
    return {"id": "m1", "role": "user", "content": text}


@local
async def test_what_a_model_notes_down_becomes_facts_of_the_message(url: str) -> None:
    model, spending = LocalModel(url, {"source": ["m1"]}), Spending()
    async with PersonalMemoryService(model=model, spending=spending, settings=SETTINGS) as service:
        await service.add_memory("ann", [said("I live in Lisbon and my dog is called Rex.")])
        status = await service.settled("ann")
        facts = (await service.page("ann", filters={"kind": "fact"})).memories
    noted = {" ".join(note["text"].split()) for note in json.loads(model.answers[0])["facts"]}
    assert (status.pending, status.failed) == (0, 0)
    assert facts
    assert {fact.text for fact in facts} <= noted
    for fact in facts:
        assert fact.origin is not None
        assert (fact.origin.author, fact.origin.derived_from) == (f"personal/{NAME}", ("m1",))
    total = spending.total
    assert total.calls == len(model.answers)
    assert total.input_tokens > 100
    assert total.output_tokens > 10


@local
async def test_where_its_answer_names_no_message_the_memory_is_there_nevertheless(url: str) -> None:
    model = LocalModel(url, {"source": ["another message"]})
    async with PersonalMemoryService(model=model, settings=SETTINGS) as service:
        await service.add_memory("ann", [said("I live in Lisbon.")])
        status = await service.settled("ann")
        facts = await service.page("ann", filters={"kind": "fact"})
        hits = await service.search("ann", "Lisbon")
    assert model.answers
    assert (status.pending, status.failed, facts.memories) == (0, 0, ())
    assert "Lisbon" in hits[0].memory.text


@local
async def test_where_its_answers_are_cut_off_the_rules_read_instead(url: str) -> None:
    model = LocalModel(url, most_tokens=8)
    async with PersonalMemoryService(model=model, settings=SETTINGS) as service:
        await service.add_memory("ann", [said("I live in Lisbon.")])
        await service.settled("ann")
        facts = await service.page("ann", filters={"kind": "fact"})
    assert len(model.answers) == 3
    assert [fact.text for fact in facts.memories] == ["The user lives in Lisbon."]


@local
async def test_of_the_lessons_a_model_words_those_are_kept_that_the_run_bears_out(url: str) -> None:
    worded = {"lesson": ["Look up the free tables."], "id": ["lesson-1"]}
    model = LocalModel(url, worded)
    call = {"id": "c", "type": "function", "function": {"name": "free_tables", "arguments": "{}"}}
    run = [
        {"role": "user", "content": "Look up the free tables at the harbour"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "20:00"},
    ]
    async with TaskMemoryService(model=model, settings=SETTINGS) as service:
        await service.add_trajectory("ann", run, score=1.0)
        status = await service.settled("ann")
        lessons = (await service.page("ann")).memories
    assert (status.pending, status.failed) == (0, 0)
    assert json.loads(model.answers[0])["lessons"]
    assert len(model.answers) == 2  # the second is its verdicts
    assert {each.details["lesson"] for each in lessons} <= set(worded["lesson"])


def test_a_schema_is_narrowed_throughout() -> None:
    notes = {"type": "array", "items": {"properties": {"id": {"type": "string"}}}}
    assert narrowed(notes, {"id": ["m1"]}) == {
        "type": "array",
        "items": {"properties": {"id": {"enum": ["m1"]}}},
        "minItems": 1,
        "maxItems": 2,
    }
