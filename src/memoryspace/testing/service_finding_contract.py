"""The part of the service contract about adding, searching and listing."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidInput
from ..message import Msg
from ..service.schema import Message, TextContent
from .service_tools import ServiceCheck, ServiceMaker, fresh_user, refuses, said, texts

# -- adding and finding ----------------------------------------------------------------------------


async def check_what_is_added_is_found_as_it_was(make: ServiceMaker) -> None:
    async with make() as service:
        user, messages = fresh_user(), [said("hello world"), said("hello again", "assistant")]
        assert await service.add_memory(user, messages) == [each.id for each in messages]
        assert (
            await service.search_memory(user, [said("hello world")], {"top_k": 1}) == messages[:1]
        )
        assert sorted(texts(await service.search_memory(user, [said("HELLO")]))) == [
            "hello again",
            "hello world",
        ]
        assert await service.list_memory(user) == messages


async def check_each_form_comes_back_as_it_was_given(make: ServiceMaker) -> None:
    given: list[Any] = [
        said("apples as a message", metadata={"n": 1, "deep": {"a": [1, None, True]}}),
        Msg("Ann", "apples as a msg", "user", metadata={"n": 2}),
        {"role": "user", "content": "apples as a dict", "metadata": {"n": 3}},
        "apples as text",
    ]
    async with make() as service:
        user = fresh_user()
        await service.add_memory(user, given)
        found = await service.list_memory(user)
        assert [type(each) for each in found] == [type(each) for each in given]
        assert found[0] == given[0]
        assert found[1].to_dict() == given[1].to_dict()
        assert found[2:] == given[2:]
        assert len(await service.search_memory(user, "apples")) == 4


async def check_nothing_done_to_a_message_reaches_the_store(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        message: Any = said("pears", metadata={"tags": ["a"]})
        await service.add_memory(user, [message])
        message.content[0].text = "changed"
        message.metadata["tags"].append("b")
        found = (await service.list_memory(user))[0]
        assert found.get_text_content() == "pears"
        assert found.metadata == {"tags": ["a"]}
        found.metadata["tags"].append("c")
        assert (await service.list_memory(user))[0].metadata == {"tags": ["a"]}


async def check_the_best_are_taken_and_of_equals_the_newest(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        messages = [said(f"message {number}") for number in range(5)]
        await service.add_memory(user, messages)
        assert await service.search_memory(user, [said("message")], {"top_k": 3}) == messages[-3:]
        await service.add_memory(user, [said("a message about the lighthouse")], "other")
        found = await service.search_memory(user, [said("lighthouse message")], {"top_k": 1})
        assert texts(found) == ["a message about the lighthouse"]


async def check_only_what_matches_is_found(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        await service.add_memory(user, ["the cat sat", "quantum theory", "I like tennis"])
        assert await service.search_memory(user, "the tennis") == ["I like tennis"]
        assert await service.search_memory(user, "zeppelin") == []
        assert await service.search_memory(user, "tennis,") == ["I like tennis"]
        for nothing in ("", "   ", [], [said("")], [Message(role="user", content=None)]):
            assert await service.search_memory(user, nothing) == []
        assert await service.search_memory(fresh_user(), "tennis") == []


async def check_the_last_message_asks(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        await service.add_memory(user, ["I like tennis", "I like chess"])
        assert await service.search_memory(user, ["tennis", "chess"]) == ["I like chess"]


async def check_chinese_is_found(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        await service.add_memory(user, ["我喜欢打网球", "今天天气很好"])
        assert await service.search_memory(user, "网球") == ["我喜欢打网球"]
        found = await service.search_memory(user, "我周末喜欢做什么", {"top_k": 1})
        assert found == ["我喜欢打网球"]


async def check_every_text_of_a_message_is_found(make: ServiceMaker) -> None:
    output = {"role": "tool", "content": [{"type": "data", "data": {"city": "Reykjavik"}}]}
    async with make() as service:
        user = fresh_user()
        both = Message(role="user", content=[TextContent(text="one"), TextContent(text="walnut")])
        await service.add_memory(user, [both, Message.model_validate(output)])
        assert len(await service.search_memory(user, "walnut")) == 1
        assert len(await service.search_memory(user, "reykjavik")) == 1


async def check_a_message_added_twice_is_there_once(make: ServiceMaker) -> None:
    async with make() as service:
        user, message = fresh_user(), said("once")
        assert await service.add_memory(user, [message]) == [message.id]
        assert await service.add_memory(user, [message]) == []
        assert await service.list_memory(user) == [message]
        assert await service.add_memory(user, []) == []


async def check_what_cannot_be_a_message_is_refused_whole(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        for wrong in ([said("fine"), None], [said("fine"), 7], None, 7):
            await refuses(service.add_memory(user, wrong), kind=TypeError)  # type: ignore[arg-type]
        assert await service.list_memory(user) == []


# -- filters ---------------------------------------------------------------------------------------


async def check_filters_that_mean_nothing_are_errors(make: ServiceMaker) -> None:
    wrong: list[dict[str, Any]] = [
        *({"top_k": value} for value in (0, -1, True, "2", 2.0, None)),
        *({"page_num": value} for value in (0, -1, "1", None, True)),
        *({"page_size": value} for value in (0, -5, 10**6)),
        {"no_such_filter": 1},
        {"session_id": ""},
        {"session_id": []},
        {"since": "yesterday-ish"},
        *({"min_score": value} for value in ("high", 2, -0.1, float("nan"), True)),
        *({"kind": value} for value in ("raw", "facts", "message", ["memory", "no such kind"], [])),
        {"OR": [{"kind": "raw"}]},
        {"NOT": {"AND": [{"kind": "raw"}]}},
        {"metadata": {}},
        {"metadata": {"a": {}}},
        {"metadata": {"a": {"like": 1}}},
        {"OR": []},
        {"AND": [{}]},
        {"NOT": [{"top_k": 1}]},
        {"NOT": {"no_such_filter": 1}},
        {"marks": 7},
    ]
    async with make() as service:
        user = fresh_user()
        await service.add_memory(user, ["hello"])
        for filters in wrong:
            for call in (
                service.search_memory(user, "hello", filters),
                service.list_memory(user, filters),
            ):
                try:
                    await call
                except (InvalidInput, TypeError):
                    continue
                raise AssertionError(f"{filters} was accepted")
        await refuses(service.search_memory(user, "hello", {"topk": 1}), "topk", "top_k")
        await refuses(service.search(user, "hello", filters={"kind": "raw"}), "'raw'", "'memory'")
        await refuses(service.search(user, "hello", min_relevance=1.5), "min_relevance", "1.5")


async def check_filters_narrow_searches_lists_and_counts(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        await service.add_memory(user, [_fruit("red apple", 3, "fruit")], "one")
        await service.add_memory(user, [_fruit("green apple", 5, "fruit", role="assistant")], "two")
        await service.add_memory(user, [_fruit("apple laptop", 4, "thing", name="Bob")], "two")
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["red apple", "green apple", "apple laptop"]),
            ({"session_id": "two"}, ["green apple", "apple laptop"]),
            ({"session_id": ["one", "two"]}, ["red apple", "green apple", "apple laptop"]),
            ({"role": "assistant"}, ["green apple"]),
            ({"name": "Bob"}, ["apple laptop"]),
            ({"metadata": {"sort": "fruit"}}, ["red apple", "green apple"]),
            ({"metadata": {"stars": {"gte": 4}}}, ["green apple", "apple laptop"]),
            ({"metadata": {"stars": {"gt": 3, "lt": 5}}}, ["apple laptop"]),
            ({"metadata": {"sort": {"in": ["thing", "x"]}}}, ["apple laptop"]),
            (
                {"OR": [{"role": "assistant"}, {"metadata": {"stars": 3}}]},
                ["red apple", "green apple"],
            ),
            ({"NOT": [{"metadata": {"sort": "fruit"}}]}, ["apple laptop"]),
            ({"AND": [{"session_id": "two"}, {"NOT": {"role": "assistant"}}]}, ["apple laptop"]),
            ({"until": 0}, []),
            ({"since": "2000-01-01"}, ["red apple", "green apple", "apple laptop"]),
            ({"kind": "fact"}, []),
            ({"marks": ["nobody"]}, []),
        ]
        for filters, expected in cases:
            found = await service.search_memory(user, "apple", filters)
            assert sorted(_contents(found)) == sorted(expected), filters
            assert _contents(await service.list_memory(user, filters)) == expected, filters
            assert await service.count(user, filters) == len(expected), filters


def _fruit(text: str, stars: int, sort: str, role: str = "user", name: str | None = None) -> Any:
    message = {"role": role, "content": text, "metadata": {"stars": stars, "sort": sort}}
    return message if name is None else {**message, "name": name}


def _contents(found: list[Any]) -> list[str]:
    return [each["content"] for each in found]


async def check_marks_are_given_asked_for_and_changed(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        [first] = await service.add_memory(user, ["red apple"], marks="fruit")
        await service.add_memory(user, ["green apple"], marks=["fruit", "unripe"])
        await service.add_memory(user, ["apple laptop"])
        assert await service.list_memory(user, {"marks": "fruit"}) == ["red apple", "green apple"]
        assert await service.search_memory(user, "apple", {"marks": ["unripe"]}) == ["green apple"]
        assert await service.count(user, {"without": ["fruit"]}) == 1
        changed = await service.update(user, first, marks=["eaten"])
        assert changed.marks == {"eaten"}
        assert await service.search_memory(user, "apple", {"marks": "eaten"}) == ["red apple"]
        assert await service.search_memory(user, "apple", {"marks": "fruit"}) == ["green apple"]
        assert (await service.update(user, first, marks=[])).marks == frozenset()
        for wrong in ("quarantined", "secret", "superseded", "memoryspace:x", ""):
            await refuses(service.add_memory(user, ["x"], marks=wrong))
            await refuses(service.update(user, first, marks=[wrong]))


async def check_a_least_score_is_kept(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        await service.add_memory(user, ["red apple pie", "apple"])
        hits = await service.search(user, "red apple pie", neighbours=False)
        assert [hit.memory.value for hit in hits] == ["red apple pie", "apple"]
        assert hits[0].score > hits[1].score
        least = (hits[0].score + hits[1].score) / 2
        assert await service.search_memory(user, "red apple pie", {"min_score": least}) == [
            "red apple pie"
        ]


async def check_a_hit_says_why_and_a_miss_why_not(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        ids = await service.add_memory(user, ["red apple", "the weather"])
        hit = (await service.search(user, "apple", explain=True))[0]
        assert hit.memory.id == ids[0]
        assert hit.why is not None
        assert hit.why.signals
        assert (await service.why_not(user, "apple", ids[0])).reason == "found"
        assert (await service.why_not(user, "apple", "nobody")).reason == "unknown"
        filtered = await service.why_not(user, "apple", ids[0], filters={"role": "assistant"})
        assert filtered.reason == "filtered"


# -- listing ---------------------------------------------------------------------------------------


async def check_lists_are_pages_in_the_order_of_time(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        for number in range(25):
            await service.add_memory(user, [f"note {number}"], f"session-{number % 3}")
        everything = [f"note {number}" for number in range(25)]
        pages = [
            await service.list_memory(user, {"page_num": page, "page_size": 10})
            for page in (1, 2, 3, 4)
        ]
        assert pages == [everything[:10], everything[10:20], everything[20:], []]
        assert await service.list_memory(user) == everything[:10]
        only = await service.list_memory(
            user, {"session_id": "session-1", "page_size": 3, "page_num": 2}
        )
        assert only == ["note 10", "note 13", "note 16"]


async def check_a_cursor_is_not_shifted_by_what_comes_and_goes(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        ids = await service.add_memory(user, [f"note {number}" for number in range(10)])
        for newest in (False, True):
            order = list(reversed(range(10))) if newest else list(range(10))
            first = await service.page(user, limit=4, newest=newest)
            assert [each.value for each in first.memories] == [f"note {n}" for n in order[:4]]
            assert first.cursor is not None
            second = await service.page(user, limit=6, newest=newest, cursor=first.cursor)
            assert [each.value for each in second.memories] == [f"note {n}" for n in order[4:]]
            assert second.cursor is None
        await service.delete(user, ids[0])
        rest = await service.page(user, cursor=(await service.page(user, limit=3)).cursor)
        assert [each.value for each in rest.memories] == [f"note {n}" for n in range(4, 10)]
        await refuses(service.page(user, cursor="x"), "cursor")


async def check_top_k_means_the_same_wherever_it_is_given(make: ServiceMaker) -> None:
    async with make() as service:
        user = fresh_user()
        added = await service.add_memory(user, [f"apple {n}" for n in range(5)])
        assert len(await service.search_memory(user, "apple", top_k=2)) == 2
        assert len(await service.search_memory(user, "apple", {"top_k": 2})) == 2
        assert len(await service.search(user, "apple", top_k=2)) == 2
        assert len(await service.search(user, "apple", filters={"top_k": 2})) == 2
        found = {hit.memory.id for hit in await service.search(user, "apple", top_k=2)}
        left_out = next(each for each in added if each not in found)
        for how in ({"top_k": 2}, {"filters": {"top_k": 2}}):
            assert (await service.why_not(user, "apple", left_out, **how)).reason == "outranked"
        assert (await service.why_not(user, "apple", left_out, top_k=5)).reason == "found"
        for wrong in (0, -1, 10_000, True, "2", 2.0):
            for call in (
                service.search_memory(user, "apple", top_k=wrong),  # type: ignore[arg-type]  # so it is
                service.search(user, "apple", top_k=wrong),  # type: ignore[arg-type]  # so it is
                service.search(user, "apple", filters={"top_k": wrong}),
                service.facts(user, top_k=wrong),  # type: ignore[arg-type]  # so it is
            ):
                await refuses(call, "top_k")
        twice = service.search(user, "apple", top_k=2, filters={"top_k": 3})
        await refuses(twice, "2 as an argument", "3 in the filters")


FINDING_CONTRACT: list[ServiceCheck] = [
    check for name, check in sorted(globals().items()) if name.startswith("check_")
]
