"""Personal memory answers with what was said: the user's own, the newest that holds, or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.message import Msg
from memoryspace.retrieval import Entry, Recall
from memoryspace.retrieval.personal.clauses import read
from memoryspace.retrieval.personal.facts import Facts
from memoryspace.retrieval.personal.matters import matters_in, names_of
from memoryspace.retrieval.personal.people import relations_asked, relations_in
from memoryspace.service import PersonalMemoryService, ServiceSettings
from memoryspace.service.long_term import ServiceLongTermMemory
from memoryspace.service.schema import Message, TextContent
from memoryspace.store import SQLStore

Talk = list[tuple[str, list[tuple[str, str]]]]  # sessions: a day, and who said what

MOVED: Talk = [
    (
        "2025-01-10",
        [("user", "I live in Rome, in a small flat near the river, and I love gardening.")],
    ),
    ("2025-02-01", [("user", "My brother Tom lives in Bergen and hates gardening.")]),
    ("2025-05-20", [("user", "I moved to Oslo last week!"), ("assistant", "Congratulations!")]),
]
搬家: Talk = [
    ("2025-01-10", [("user", "我住在苏州，在一家书店上班。")]),
    ("2025-02-01", [("user", "我弟弟住在西安，开出租车。")]),
    ("2025-05-20", [("user", "上周我搬到杭州了！"), ("assistant", "恭喜！")]),
]


def told(talk: Talk) -> list[list[dict[str, Any]]]:
    return [
        [
            {
                "id": f"{day}/{at}",
                "role": role,
                "content": text,
                "timestamp": f"{day}T10:0{at}:00+00:00",
            }
            for at, (role, text) in enumerate(said)
        ]
        for day, said in talk
    ]


def asked_at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


def using(
    work: Callable[[PersonalMemoryService], Awaitable[Any]],
    talk: Talk = MOVED,
    *,
    embedder: Any = None,
    store: Callable[[], Any] = lambda: None,
) -> Any:
    async def run() -> Any:
        backend = store()
        service = PersonalMemoryService(backend, settings=ServiceSettings(embedder=embedder))
        async with service:
            for number, messages in enumerate(told(talk)):
                await service.add_memory("ann", messages, session_id=f"s{number}")
            found = await work(service)
        if backend is not None:
            await backend.close()
        return found

    return asyncio.run(run())


def hits_of(question: str, talk: Talk = MOVED, **options: Any) -> list[Any]:
    now = asked_at("2025-06-01")
    return using(lambda service: service.search("ann", question, now=now), talk, **options)


def first(question: str, talk: Talk = MOVED, **options: Any) -> str:
    return hits_of(question, talk, **options)[0].memory.text


@pytest.mark.parametrize("embedder", [None, "best"])
def test_what_holds_now_comes_first_and_says_what_it_supersedes(embedder: Any) -> None:
    new, *others = hits_of("Where do I live?", embedder=embedder)
    assert "Oslo" in new.memory.text
    assert new.holds
    old = next(each for each in others if "Rome" in each.memory.text)
    assert old.superseded_by == new.memory.id
    assert not old.holds


@pytest.mark.parametrize("embedder", [None, "best"])
def test_what_holds_now_comes_first_in_chinese(embedder: Any) -> None:
    assert "杭州" in first("我现在住在哪里？", 搬家, embedder=embedder)


def test_what_held_then_answers_a_question_about_then() -> None:
    assert "Rome" in first("Where did I live in January?")
    assert "苏州" in first("一月份我住在哪里？", 搬家)
    assert "Rome" in first("Where did I live before?")
    assert "苏州" in first("我以前住在哪里？", 搬家)


@pytest.mark.parametrize("embedder", [None, "best"])
def test_what_was_told_in_one_breath_is_told_in_order(embedder: Any) -> None:
    async def run() -> list[Any]:
        settings = ServiceSettings(embedder=embedder)
        async with PersonalMemoryService(settings=settings) as service:
            await service.add_memory("ann", ["I live in Rome.", "I moved to Oslo."])
            return await service.search("ann", "Where do I live?")

    new, old = asyncio.run(run())
    assert (new.memory.text, new.holds) == ("I moved to Oslo.", True)
    assert (old.memory.text, old.superseded_by) == ("I live in Rome.", new.memory.id)


def test_a_message_corrected_later_stays_superseded() -> None:
    async def work(service: PersonalMemoryService) -> list[Any]:
        await service.update("ann", "2025-01-10/0", "I live in Rome, near the river.")
        return await service.search("ann", "Where do I live?", now=asked_at("2025-06-01"))

    assert "Oslo" in using(work)[0].memory.text


@pytest.mark.parametrize(
    ("question", "others"),
    [
        ("What is my friend allergic to?", "My friend Sara is allergic to shellfish."),
        ("Who is Eva?", "I have a daughter called Eva."),
    ],
)
def test_what_never_ended_is_not_said_to_have(question: str, others: str) -> None:
    talk: Talk = [
        ("2025-01-10", [("user", "I'm allergic to peanuts.")]),
        ("2025-01-11", [("user", "I have a son called Max.")]),
        ("2025-02-10", [("user", others)]),
    ]
    assert all(hit.holds for hit in hits_of(question, talk))


def test_a_move_deleted_never_happened() -> None:
    async def work(service: PersonalMemoryService) -> list[Any]:
        await service.delete("ann", "2025-05-20/0")
        return await service.search("ann", "Where do I live?", now=asked_at("2025-06-01"))

    best, *_ = using(work)
    assert "Rome" in best.memory.text
    assert best.holds


def test_what_merely_stands_beside_retires_nothing() -> None:
    talk: Talk = [
        ("2025-01-10", [("user", "I live in Leiden and work at the harbour.")]),
        ("2025-03-10", [("user", "My cat sleeps in the sink, the kitchen here is tiny.")]),
    ]
    best = hits_of("Where do I live?", talk)[0]
    assert "Leiden" in best.memory.text
    assert best.holds


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Where do I live?", "Oslo"), ("Where does my brother live?", "Bergen")],
)
def test_nobody_answers_for_somebody_else(question: str, answer: str) -> None:
    assert answer in first(question)


def test_a_name_leads_to_what_was_said_of_a_relative() -> None:
    talk: Talk = [
        ("2025-01-10", [("user", "My sister Ines is a vet in Porto."), ("assistant", "Nice!")]),
        ("2025-02-10", [("user", "Ines won the chess cup on Sunday, she is unbearable now.")]),
        ("2025-03-10", [("user", "My boss Ada plays the tuba.")]),
    ]
    assert "unbearable" in first("Which chess cup did my sister win?", talk)


def test_who_asks_for_the_assistants_words_gets_them() -> None:
    talk: Talk = [
        (
            "2025-01-10",
            [
                ("user", "Which book about bees should I read?"),
                ("assistant", "Try The Honey Year by Orla Finch."),
                ("user", "Thanks. I read The Long Hive last year, it was dull."),
            ],
        ),
    ]
    assert "Honey Year" in first("Which book about bees did you recommend?", talk)


def test_what_no_rule_understands_is_found() -> None:
    talk: Talk = [("2025-01-10", [("user", "zorble frumious at dawn, as per the manxome foe")])]
    best = hits_of("frumious", talk)[0]
    assert "zorble" in best.memory.text
    assert best.facts == ()


def test_without_neighbours_only_what_matches_is_found() -> None:
    def found(question: str) -> list[str]:
        hits = using(lambda service: service.search("ann", question, neighbours=False))
        return [hit.memory.text for hit in hits]

    assert found("xylophone") == []
    assert ["Bergen" in text for text in found("Bergen")] == [True]


def test_a_hit_tells_what_is_known_from_it() -> None:
    best = hits_of("Where do I live?")[0]
    assert any("Oslo" in each.text for each in best.facts)
    assert all(best.memory.id in each.origin.derived_from for each in best.facts)


def test_as_many_hits_as_can_be_asked_for_tell_what_is_known() -> None:
    talk: Talk = [
        (f"2025-01-{day:02}", [("user", f"I live in Rome, {day}.{at}.") for at in range(9)])
        for day in range(1, 31)
    ]
    hits = using(lambda service: service.search("ann", "Where do I live?", top_k=1000), talk)
    assert len(hits) == 270
    assert any(hit.facts for hit in hits)


def test_kinds_narrow_a_search() -> None:
    def kinds(*names: str) -> set[str]:
        filters = {"kind": list(names)}
        found = using(lambda service: service.search("ann", "Where do I live?", filters=filters))
        assert found
        return {each.memory.kind for each in found}

    assert kinds("fact") == {"fact"}
    assert kinds("memory") == {"memory"}


def test_every_form_of_a_message_ranks_the_same() -> None:
    texts = ["I keep bees behind the garage.", "My neighbour keeps goats.", "Bees dislike smoke."]
    forms: list[Callable[[str], Any]] = [
        lambda text: text,
        lambda text: {"role": "user", "content": text},
        lambda text: Msg("ann", text, "user"),
        lambda text: Message(role="user", content=[TextContent(text=text)]),
    ]

    async def ranked(form: Callable[[str], Any]) -> list[tuple[str, float]]:
        async with PersonalMemoryService(settings=ServiceSettings(embedder=None)) as service:
            await service.add_memory("ann", [form(text) for text in texts])
            hits = await service.search("ann", "What animals do I keep?")
            return [(hit.memory.text, round(hit.score, 6)) for hit in hits]

    first_form, *others = [asyncio.run(ranked(form)) for form in forms]
    assert first_form[0][0] == texts[0]
    assert all(each == first_form for each in others)


@pytest.mark.parametrize("embedder", [None, "best"])
def test_scores_are_from_0_to_1_and_never_rise(embedder: Any) -> None:
    hits = hits_of("Where do I live?", embedder=embedder)
    assert all(0 <= each.score <= 1 for each in hits)
    holding = [each.score for each in hits if each.holds]
    assert holding == sorted(holding, reverse=True)


@pytest.mark.parametrize("embedder", [None, "best"])
def test_what_no_longer_holds_scores_clearly_lower(embedder: Any) -> None:
    first, second, *_ = hits_of("Where do I live?", embedder=embedder)
    assert "Oslo" in first.memory.text
    assert first.holds
    assert "Rome" in second.memory.text
    assert not second.holds
    assert second.score < 0.6 * first.score


def test_an_unrelated_prompt_gets_nothing() -> None:
    async def work(service: PersonalMemoryService) -> tuple[list[Any], list[Any]]:
        prompt = "Translate the minutes of the shareholders' meeting into Dutch."
        now = asked_at("2025-06-01")
        unrelated = await service.search("ann", prompt, min_relevance=0.3, now=now)
        related = await service.search("ann", "Where do I live?", min_relevance=0.3, now=now)
        return unrelated, related

    unrelated, related = using(work, embedder="best")
    assert unrelated == []
    assert "Oslo" in related[0].memory.text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is my brother's name?", "My sister Clara lives in Madrid."),
        ("Where do I go to the gym?", "We moved to York last weekend, boxes everywhere!"),
        ("Do I have a driving licence?", "For the record, my friend Stefan is into motorbikes."),
        ("what is my daughter's name?", "Elliot is getting married! To a girl called Priyanka."),
        ("what is my blood type?", "We are back in Leeds since last week."),
        ("我有几个兄弟姐妹", "我请了个阿姨，叫莲姐"),
        ("我家住几楼", "他的电话我老记不住"),
    ],
)
def test_what_was_never_said_is_not_answered_with_its_likes(question: str, said: str) -> None:
    (hit,) = hits_of(question, [("2025-01-10", [("user", said)])])
    assert hit.score < 0.3


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "high", True])
def test_a_relevance_out_of_range_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="min_relevance"):
        using(lambda service: service.search("ann", "hello", min_relevance=value))


def test_standing_instructions_stand_beside_the_hits() -> None:
    talk: Talk = [
        ("2025-01-10", [("user", "Always answer in French please.")]),
        *MOVED,
    ]

    async def work(service: PersonalMemoryService) -> tuple[list[Any], list[Any], str]:
        hits = await service.search("ann", "Where do I live?", now=asked_at("2025-06-01"))
        memory = ServiceLongTermMemory(service, "ann")
        context = await memory.retrieve(Msg("ann", "Where do I live?", "user"))
        return hits, await service.instructions("ann"), context

    hits, instructions, context = using(work, talk)
    assert "French" not in hits[0].memory.text
    assert ["French" in each.text for each in instructions] == [True]
    assert "Oslo" in context
    assert "French" in context


def test_an_instruction_holds_where_nothing_else_is_relevant() -> None:
    async def work(service: PersonalMemoryService) -> str:
        memory = ServiceLongTermMemory(service, "ann")
        return await memory.retrieve(Msg("ann", "How do I sort a list in Rust?", "user"))

    talk: Talk = [("2025-01-10", [("user", "Always answer in French please.")])]
    context = using(work, [*talk, *MOVED])
    assert "French" in context
    assert "Oslo" not in context
    assert using(work) == ""


def test_a_newer_instruction_takes_the_place_of_an_older_one() -> None:
    talk: Talk = [
        ("2025-01-10", [("user", "Always answer in French.")]),
        ("2025-02-10", [("user", "Please always keep your answers short.")]),
        ("2025-03-10", [("user", "Always answer in English.")]),
    ]
    newest, other = using(lambda service: service.instructions("ann"), talk)
    assert "English" in newest.text
    assert "short" in other.text


@pytest.mark.parametrize(
    "said",
    [
        ["Always answer in French please.", "Stop answering in French."],
        ["Always answer in French please.", "please don't reply in French any more"],
        ["Always answer in French please.", "You can answer in English again."],
        ["Use bullet points in every answer.", "stop with the bullet points"],
        ["以后用法语回答我", "别再用法语回答了"],
        ["以后用法语回答我", "不用法语回答了"],
        ["以后用法语回答我", "可以用中文回答了"],
    ],
)
def test_an_instruction_that_is_taken_back_stands_no_longer(said: list[str]) -> None:
    talk: Talk = [(f"2025-0{at + 1}-10", [("user", text)]) for at, text in enumerate(said)]
    assert len(using(lambda service: service.instructions("ann"), talk[:1])) == 1
    assert using(lambda service: service.instructions("ann"), talk) == []


def test_what_takes_back_an_unknown_instruction_is_one_itself_or_nothing() -> None:
    stop: Talk = [("2025-01-10", [("user", "Please stop using emojis in your answers.")])]
    again: Talk = [("2025-01-10", [("user", "You can answer in English again.")])]
    assert len(using(lambda service: service.instructions("ann"), stop)) == 1
    assert using(lambda service: service.instructions("ann"), again) == []


def test_other_instructions_stand_when_one_is_taken_back() -> None:
    talk: Talk = [
        ("2025-01-10", [("user", "Always answer in French.")]),
        ("2025-02-10", [("user", "Please keep your answers short.")]),
        ("2025-03-10", [("user", "Stop answering in French.")]),
    ]
    (kept,) = using(lambda service: service.instructions("ann"), talk)
    assert "short" in kept.text


@pytest.mark.parametrize("embedder", [None, "best"])
def test_a_car_that_was_sold_stands_behind_the_one_that_was_bought(embedder: Any) -> None:
    talk: Talk = [
        ("2025-01-10", [("user", "I drive a Fiat Panda")]),
        ("2025-02-10", [("user", "I sold the Fiat and bought a Tesla")]),
    ]
    new, old = hits_of("What car do I drive?", talk, embedder=embedder)
    assert "Tesla" in new.memory.text
    assert old.superseded_by == new.memory.id


@pytest.mark.parametrize("embedder", [None, "best"])
@pytest.mark.parametrize(
    ("question", "before", "after"),
    [
        (
            "Where do I live?",
            "I live in Leeds with my wife Anna and our dog Biscuit, a beagle.",
            "We moved to York last weekend, boxes everywhere!",
        ),
        (
            "What's my favourite colour?",
            "My favourite colour is red.",
            "My favourite colour is blue now.",
        ),
        (
            "What breed is my dog?",
            "I live in Leeds with my wife Anna and our dog Biscuit, a beagle.",
            "Actually Biscuit is a labrador, not a beagle.",
        ),
        ("Can I eat gluten?", "I can't eat gluten.", "Turns out I'm fine with gluten after all."),
        ("用什么语言回答我？", "以后请用中文回答我。", "不用用中文回答了，用英文吧。"),
    ],
)
def test_what_was_told_among_other_things_gives_way_too(
    question: str, before: str, after: str, embedder: Any
) -> None:
    talk = [("2025-01-10", [("user", before)]), ("2025-05-20", [("user", after)])]
    hits = hits_of(question, talk, embedder=embedder)
    assert [(hit.memory.text, hit.holds) for hit in hits] == [(after, True), (before, False)]


def test_what_still_holds_is_not_put_behind_what_else_changed() -> None:
    old = "My sister Clara works as a lawyer. She is allergic to shellfish."
    new = "Clara quit the law firm; she now runs a bakery in Seville."
    talk: Talk = [("2025-01-10", [("user", old)]), ("2025-05-20", [("user", new)])]
    assert first("What is Clara allergic to?", talk) == old
    assert first("What does my sister do for a living?", talk) == new


def test_others_words_are_not_the_users() -> None:
    reading = read("My friend Tom said 'I hate my job and I want to move to Peru.'")
    assert all("user" not in each.about for each in reading.clauses)


def test_only_what_is_told_of_the_user_is_the_users_own_matter() -> None:
    reading = read("My friend Stefan drives a van. I like tea.")
    assert names_of(reading.own_matters) == ["drink"]


def test_a_verb_with_a_capital_is_no_name() -> None:
    assert read("Sold the old car.").own == 1
    assert "tom" in read("Tom sold the car.").clauses[0].about


def test_what_was_said_several_times_is_one_hit() -> None:
    often = "I love hiking in the Alps"
    talk: Talk = [
        ("2025-01-10", [("user", often)]),
        ("2025-02-10", [("user", "i love hiking in the  Alps"), ("assistant", often)]),
        ("2025-03-10", [("user", "My brother hates hiking"), ("user", often)]),
    ]
    hits = hits_of("Where do I love hiking?", talk)
    mine = [each for each in hits if each.memory.role == "user" and "Alps" in each.memory.text]
    assert len(mine) == 1
    said = {each.created_at for each in (mine[0].memory, *mine[0].repeated)}
    assert len(said) == 3
    assert [len(each.repeated) for each in hits if each.memory.role == "assistant"] == [0]


def test_the_same_answers_come_from_a_database() -> None:
    for question in ("Where do I live?", "Where does my brother live?", "Who hates gardening?"):
        in_ram = [(hit.memory.id, hit.score) for hit in hits_of(question)]
        in_sql = hits_of(question, store=lambda: SQLStore("sqlite+aiosqlite:///:memory:"))
        assert [(hit.memory.id, hit.score) for hit in in_sql] == in_ram


def test_an_explanation_adds_up() -> None:
    recall = Recall(embedder=None, personal=True)
    recall.add(
        [
            Entry("old", "I work at the mill as a miller.", session="a", role="user", time=1e9),
            *(
                Entry(text, text, session=text, role="user", time=1.05e9)
                for text in ("It rained.", "I like plums.", "My knee hurts.", "Radio is dull.")
            ),
            Entry(
                "new", "I quit the mill, now I drive a tram.", session="b", role="user", time=1.1e9
            ),
        ]
    )
    best, *_ = recall.search("Do I still work at the mill?", explain=True, now=1.2e9)
    assert best.id == "new"
    assert best.why is not None
    assert sum(best.why.signals.values()) == pytest.approx(best.score)
    assert best.why.signals["newest"] > 0


# -- reading --------------------------------------------------------------------------------


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    reading = read(text)
    assert len(reading.clauses) <= 40
    assert all(clause.words <= reading.words for clause in reading.clauses)
    assert all(clause.about for clause in reading.clauses)


def test_clauses_know_whom_they_are_about() -> None:
    reading = read("my brother Callum is a baker, he gets up at three. i would rather sleep")
    about = [clause.about for clause in reading.clauses]
    assert {"brother", "callum"} <= about[0]
    assert about[1] == about[0]
    assert about[-1] == {"user"}


def test_a_question_for_a_partner_finds_a_husband_and_not_a_sister() -> None:
    assert relations_asked("what does my partner do?") & relations_in("my hubby is a baker")
    assert not relations_asked("what does my partner do?") & relations_in("my sister is a baker")
    assert relations_asked("我老公做什么") & relations_in("她爸在外地跑船")


@pytest.mark.parametrize(
    ("text", "matter"),
    [
        ("what do i do for a living", "work"),
        ("landlord put the rent up", "home"),
        ("我对花生过敏", "health"),
        ("以后用中文回答", "answers"),
    ],
)
def test_matters_of_life_are_told_by_their_words(text: str, matter: str) -> None:
    assert matter in names_of(matters_in(text, read(text).words))


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from("abc"), st.booleans()), max_size=30))
def test_facts_know_exactly_those_that_are_there(steps: list[tuple[int, str, bool]]) -> None:
    facts, there = Facts(), dict[int, Entry]()
    for row, source, is_added in steps:
        if row in there:
            facts.remove(row, there.pop(row))
        if is_added:
            there[row] = Entry(str(row), "", record=f"r{row}", sources=(source,))
            facts.add(row, there[row])
    for source in "abc":
        known = facts.from_message(Entry("m", "", record=source))
        assert sorted(known) == sorted(r for r, each in there.items() if source in each.sources)
