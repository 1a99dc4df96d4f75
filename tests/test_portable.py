"""What a caller gets can be sent as JSON and read back, whatever it holds."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.message import Msg
from memoryspace.portable import Portable, portable, restored
from memoryspace.record import Origin
from memoryspace.retrieval.hits import Why, WhyNot
from memoryspace.retrieval.vector_arm import EmbedderStatus
from memoryspace.service import (
    Decided,
    Deleted,
    Erasure,
    InMemoryMemoryService,
    MemoryHit,
    MemoryItem,
    Message,
    Page,
    PersonalMemoryService,
    Proposal,
    Proposals,
    Receipt,
    Status,
    TextContent,
)
from memoryspace.store import Remainder, Usage, UserPage

from services import WORDS

# Any text there is: halves of surrogate pairs, and what looks like our own signs.
texts = st.one_of(
    st.text(st.characters(), max_size=8),
    st.text(st.characters(categories=["Cs"]), max_size=3),
    st.sampled_from(["$text", "$number", "$dict", "", "\0", "\\ud800", '"']),
)
numbers = st.one_of(st.integers(), st.integers(2**63, 2**9000), st.floats(), st.booleans())
data = st.recursive(
    st.one_of(st.none(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=12,
)
dicts = st.dictionaries(texts, data, max_size=3)
finite = st.floats(allow_nan=False)
times = st.one_of(st.none(), st.floats())


def said(text: str, metadata: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(
        [
            text,
            {"role": "user", "content": text, "metadata": metadata, "more": metadata},
            Msg("ann", text, "user", metadata=metadata),
            Message(role="user", content=[TextContent(text=text)], metadata=metadata),
        ]
    )


@st.composite
def memories(draw: st.DrawFn) -> MemoryItem:
    return MemoryItem(
        id=draw(texts),
        user_id=draw(texts),
        session_id=draw(texts),
        value=draw(said(draw(texts), draw(dicts))),
        text=draw(texts),
        kind=draw(texts),
        role=draw(st.one_of(st.none(), texts)),
        metadata=draw(dicts),
        details=draw(dicts),
        marks=draw(st.frozensets(texts, max_size=3)),
        importance=draw(st.floats()),
        created_at=draw(st.floats()),
        updated_at=draw(st.floats()),
        expires_at=draw(times),
        valid_to=draw(times),
        origin=draw(st.one_of(st.none(), st.builds(Origin, texts, st.lists(texts).map(tuple)))),
        version=draw(st.integers(1, 2**40)),
        seq=draw(st.integers(0, 2**60)),
    )


counts = st.integers(0, 2**40)
ids = st.lists(texts, max_size=3).map(tuple)
reasons = st.builds(
    Why,
    st.dictionaries(texts, st.floats(), max_size=3),
    st.dictionaries(texts, counts, max_size=3),
    st.dictionaries(texts, st.floats(), max_size=3),
    times,
    st.booleans(),
)
some = st.lists(memories(), max_size=2).map(tuple)
hits = st.builds(
    MemoryHit, memories(), finite, st.one_of(st.none(), reasons), some, texts, st.booleans(), some
)
proposals = st.builds(Proposal, memories(), some, some, st.one_of(st.none(), texts))
values: st.SearchStrategy[Portable] = st.one_of(
    memories(),
    hits,
    reasons,
    st.builds(WhyNot, texts, texts, counts, ids, st.one_of(st.none(), reasons)),
    st.builds(Page, some, st.one_of(st.none(), texts)),
    st.builds(Deleted, ids, ids, counts),
    st.builds(Decided, ids, ids, ids),
    proposals,
    st.builds(Proposals, st.lists(proposals, max_size=2).map(tuple), st.one_of(st.none(), texts)),
    st.builds(
        Erasure,
        texts,
        st.dictionaries(texts, counts, max_size=3),
        counts,
        counts,
        st.lists(st.builds(Remainder, texts, texts), max_size=2).map(tuple),
    ),
    st.builds(
        Status,
        counts,
        counts,
        st.dictionaries(texts, texts, max_size=3),
        st.builds(EmbedderStatus, texts, counts, counts, texts),
        counts,
    ),
    st.builds(Usage, counts, counts, counts),
    st.builds(UserPage, ids, st.one_of(st.none(), texts)),
)


def sent(told: Any) -> list[Any]:
    """Return what arrives at the other end, by two encoders that refuse different things."""
    strict = json.dumps(told, allow_nan=False, ensure_ascii=False).encode()
    quick = msgspec.json.encode(told)
    return [json.loads(strict), msgspec.json.decode(quick)]


@given(data)
def test_any_data_comes_back_as_it_was(value: Any) -> None:
    for arrived in sent(portable(value)):
        assert same(restored(arrived), value)


def same(left: Any, right: Any) -> bool:
    """Tell whether two are equal, where NaN equals NaN."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


@given(values)
def test_every_value_comes_back_as_it_was(value: Portable) -> None:
    told = value.to_dict()
    for arrived in sent(told):
        back = type(value).from_dict(arrived)
        assert back.to_dict() == told
        if isinstance(value, MemoryItem):
            assert isinstance(back, MemoryItem)
            assert type(back.value) is type(value.value)


@given(ids, st.dictionaries(texts, texts, max_size=3), st.sampled_from([True, False, None]))
def test_a_receipt_comes_back_as_it_was(new: Any, held_back: Any, is_durable: Any) -> None:
    receipt = Receipt(
        new, ids=["other", *new], held_back=held_back, is_durable=is_durable, pending=("task",)
    )
    for arrived in sent(receipt.to_dict()):
        back = Receipt.from_dict(arrived)
        assert back == receipt == list(new)
        assert back.to_dict() == receipt.to_dict()


async def test_what_services_answer_can_be_sent() -> None:
    odd = {"role": "user", "content": "I live in Rome \ud83d", "metadata": {"n": float("nan")}}
    async with PersonalMemoryService(settings=WORDS) as service:
        await service.add_memory("ann", [odd, "I moved to Oslo", Msg("ann", "I like tea", "user")])
        hits = await service.search("ann", "Where do I live?", explain=True)
        assert hits
        told = [
            *hits,
            *(hit.why for hit in hits if hit.why is not None),
            await service.page("ann"),
            await service.status("ann"),
            await service.why_not("ann", "Rome", hits[0].memory.id),
            await service.usage("ann"),
            await service.users(),
            await service.delete_memory("ann"),
            await service.verify_erasure("ann"),
        ]
    for value in told:
        for arrived in sent(value.to_dict()):
            assert type(value).from_dict(arrived).to_dict() == value.to_dict()


async def test_a_memory_tells_of_which_form_it_is() -> None:
    async with InMemoryMemoryService(settings=WORDS) as service:
        [text, message] = await service.add_memory(
            "ann", ["hello", Message(role="user", content=[TextContent(text="hi")])]
        )
        found = [await service.get("ann", each) for each in (text, message)]
    told = [each.to_dict() for each in found if each is not None]
    assert [(each["form"], type(each["value"])) for each in told] == [
        ("text", str),
        ("message", dict),
    ]
    assert told[0]["value"] == "hello"


def test_what_is_told_beside_the_fields_need_not_be_sent_back() -> None:
    told = Erasure("ann", {"memory": 1}, 0).to_dict()
    assert told["is_complete"] is False
    del told["is_complete"]
    assert Erasure.from_dict({**told, "of a later release": 1}).records == {"memory": 1}


@pytest.mark.parametrize(
    ("kind", "wrong", "words"),
    [
        (MemoryItem, {}, "this is no MemoryItem: Object missing required field `id`"),
        (Page, {"memories": [{"id": "a"}], "cursor": None}, "this is no MemoryItem"),
        (Deleted, {"raw": "a"}, "not a valid Deleted: Expected `array`"),
        (Usage, {"records": {"$number": "many"}}, "'\\$number' was not written by to_dict"),
    ],
)
def test_what_is_no_such_value_is_refused(kind: Any, wrong: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        kind.from_dict(wrong)


@pytest.mark.parametrize("kind", [MemoryItem, Page, Usage])
def test_only_dicts_are_read(kind: Any) -> None:
    with pytest.raises(TypeError, match="is read from a dict, got list"):
        kind.from_dict([])


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="a bytes cannot be written as JSON"):
        portable({"a": [b"x"]})
