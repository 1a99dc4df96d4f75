"""Questions for an overview: how they are told, what is chosen for them, and in which order."""

from __future__ import annotations

import random
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memoryspace.retrieval import Entry, Only, Recall, default_ranking
from memoryspace.retrieval.ranking.overview import (
    asks_own_words,
    topic_of,
    wants_newest_first,
    wants_overview,
)

DAY = 86400.0
STAGES = {
    "jan": [
        "We are thinking of moving to Porto this year.",
        "What do I need for the move to Porto?",
        "Is moving to Porto in winter a bad idea?",
        "How much does moving a piano to Porto cost?",
        "Which moving company goes to Porto?",
        "Can you compare moving companies for Porto?",
    ],
    "gym": ["I started going to the gym again.", "My knee hurts after squats."],
    "mar": ["The move took two days, a mirror broke.", "Ann brought us soup."],
    "cake": ["I baked a carrot cake for Ann's birthday."],
    "apr": ["We have settled in Porto, the kids like school.", "I miss our old garden."],
}
MOVE = "Summarise what I told you about our move to Porto"


def moving(*, timed: bool = True, answers: bool = True) -> list[Entry]:
    """A move in three stages, with other matters in between."""
    entries = []
    for day, (session, texts) in enumerate(STAGES.items()):
        for number, text in enumerate(texts):
            time = (20.0 * day * DAY + 60 * number) if timed else None
            name = f"{session}{number}"
            entries.append(Entry(name, text, session=session, role="user", time=time))
            if answers:
                said = f"Understood, I keep {name} in mind."
                entries.append(
                    Entry(f"{name}a", said, session=session, role="assistant", time=time)
                )
    return entries


def recall_of(entries: list[Entry]) -> Recall:
    recall = Recall(embedder=None, clock=lambda: 300 * DAY)
    recall.add(entries)
    return recall


def ids(recall: Recall, question: str, top_k: int = 10) -> list[str]:
    return [hit.id for hit in recall.search(question, top_k)]


# -- which questions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Summarise what I told you about my move.",
        "Can you give me a short summary of my job search?",
        "A quick recap of our trip, please",
        "In which order did I visit the museums?",
        "What was the order in which I tried the diets?",
        "List the films in chronological order.",
        "List all the books I mentioned.",
        "Everything I've told you about my sister",
        "Walk me through how my thesis came about.",
        "How has my training changed over time?",
        "Show me the timeline of the project",
        "按时间顺序说说我的搬家",
        "总结一下我说过的关于猫的事",
        "列出我提到的所有书",
        "梳理一下我找工作的来龙去脉",
        "我都跟你说过哪些旅行计划?",
        "我们聊过的所有电影",
    ],
)
def test_a_question_for_an_overview_is_told(text: str) -> None:
    assert wants_overview(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Where did I put the summary?",
        "Who wrote the overview that Ann sent?",
        "What do I need in order to get a visa?",
        "In order for it to work, what did I change?",
        "Did I order the red shoes?",
        "When did my pizza order arrive?",
        "Walk me through how to bake bread.",
        "What is on my shopping list?",
        "What books has Tim read?",
        "How did the weather change yesterday?",
        "What did Evan say about his progress at the gym?",
        "这个规则是什么时候总结出来的?",
        "他先后写了几本书?",
        "这条铁路经过哪些地方?",
        "我喜欢哪些菜?",
    ],
)
def test_an_ordinary_question_is_not_taken_for_one(text: str) -> None:
    assert not wants_overview(text)


@pytest.mark.parametrize(
    ("text", "kept", "left_out"),
    [
        (
            "Can you give me a full summary of how my thesis has evolved over time?",
            "thesis",
            ("summary", "evolved", "time", "give"),
        ),
        (
            "List the order in which I brought up different aspects of my garden",
            "garden",
            ("order", "brought", "aspects"),
        ),
        ("请按时间顺序总结一下我说过的关于搬家的事情", "搬家", ("顺序", "总结", "说过", "事情")),
    ],
)
def test_the_frame_of_the_question_is_not_its_topic(
    text: str, kept: str, left_out: tuple[str, ...]
) -> None:
    topic = topic_of(text)
    assert kept in topic
    assert not [word for word in left_out if word in topic]


def test_a_question_that_is_all_frame_stays_as_it_is() -> None:
    assert topic_of("Summarise everything.") == "Summarise everything."
    assert topic_of("总结一下") == "总结一下"


def test_whose_words_are_asked_for() -> None:
    assert asks_own_words("Summarise what I told you about it")
    assert asks_own_words("总结我跟你说过的事")
    assert not asks_own_words("Summarise how my plans developed")
    assert not asks_own_words("Summarise what you told me")


# -- what is chosen --------------------------------------------------------------------------------


def test_each_stage_of_a_matter_has_a_place_in_order_of_time() -> None:
    found = ids(recall_of(moving()), MOVE, 6)
    assert found[0] == "jan0"
    assert [each for each in found if not each.startswith("jan")] == ["mar0", "apr0"]
    assert found == sorted(found, key=[entry.id for entry in moving()].index)


def test_the_entries_most_like_the_question_come_from_one_stage() -> None:
    plain = replace(default_ranking(), overview=False)
    hits = recall_of(moving()).search(MOVE, 6, ranking=plain)
    assert {hit.entry.session for hit in hits} == {"jan"}


def test_what_i_said_leaves_the_answers_out() -> None:
    recall = recall_of(moving())
    assert not [each for each in ids(recall, MOVE, 6) if each.endswith("a")]
    both = ids(recall, "Summarise how our move to Porto went", 6)
    assert both == ["jan0", "jan0a", *both[2:]]
    assert [f"{each}a" for each in both[::2]] == both[1::2]


def test_what_is_not_about_the_matter_comes_behind() -> None:
    found = ids(recall_of(moving()), MOVE, 12)
    on_it = [each for each in found if not each.startswith(("gym", "cake"))]
    assert found[:8] == [*(f"jan{number}" for number in range(6)), "mar0", "apr0"]
    assert len(on_it) >= 8


def test_more_are_chosen_where_more_are_asked_for() -> None:
    entries = [
        Entry(f"{day}.{turn}", f"The garden: bed {day} got plant {turn}", session=f"s{day}",
              role="user", time=day * DAY + turn)
        for day in range(10)
        for turn in range(10)
    ]  # fmt: skip
    recall = recall_of(entries)
    few, many = (recall.search("List all I said about the garden", most) for most in (10, 30))
    assert (len(few), len(many)) == (10, 30)
    assert len({hit.entry.session for hit in many}) == 10
    times = [hit.entry.time or 0.0 for hit in many]
    assert times == sorted(times)


def test_the_newest_comes_first_where_that_is_asked_for() -> None:
    recall = recall_of(moving())
    assert wants_newest_first("倒序列出所有的书")
    assert ids(recall, f"{MOVE}, the newest first", 6) == ids(recall, MOVE, 6)[::-1]


def test_without_times_the_order_is_that_of_adding() -> None:
    timed, untimed = recall_of(moving()), recall_of(moving(timed=False))
    assert ids(untimed, MOVE, 6) == ids(timed, MOVE, 6)


def test_time_goes_before_the_order_of_adding() -> None:
    entries = moving(answers=False)
    turned = [entry for name in reversed(STAGES) for entry in entries if entry.session == name]
    found = ids(recall_of(turned), MOVE, 6)
    assert found == sorted(found, key=[entry.id for entry in entries].index)


def test_days_part_a_session_that_goes_on() -> None:
    one = [replace(entry, session="all") for entry in moving(answers=False)]
    assert {"mar0", "apr0"} <= set(ids(recall_of(one), MOVE, 6))


def test_a_repetition_gives_way() -> None:
    again = [
        Entry(f"again{number}", STAGES["jan"][0].upper(), session="jan", role="user", time=10.0)
        for number in range(5)
    ]
    found = ids(recall_of([*moving(answers=False), *again]), MOVE, 6)
    assert len({"jan0", *(entry.id for entry in again)} & set(found)) == 1


def test_chinese_is_gathered_in_order() -> None:
    said = ["我打算搬家去杭州", "搬家公司要收两千块", "昨天搬家摔坏了镜子", "搬家以后住得很舒服"]
    other = ["我在学钢琴", "周末去爬山", "猫生病了", "晚饭吃了面条"]
    entries = [
        Entry(text, text, session=f"s{number}", role="user", time=number * DAY)
        for number, text in enumerate(chain(*zip(said, other, strict=True)))
    ]
    random.Random(1).shuffle(entries)
    recall = recall_of(entries)
    assert ids(recall, "按时间顺序总结一下我说过的关于搬家的事", 4) == said


# -- scores, explanations, conditions --------------------------------------------------------------


def test_scores_fall_and_the_signals_add_up() -> None:
    hits = recall_of(moving()).search(MOVE, 10, explain=True)
    scores = [hit.score for hit in hits]
    assert all(one > other for one, other in pairwise(scores))
    assert len({f"{score:.9g}" for score in scores}) == len(scores)
    for hit in hits:
        assert hit.why is not None
        assert "overview" in hit.why.signals
        assert sum(hit.why.signals.values()) == pytest.approx(hit.score)
    first, *_ = hits
    assert first.why is not None
    assert first.why.signals["first mention"] > 0


def test_why_not_tells_the_place_in_the_overview() -> None:
    recall = recall_of(moving())
    found = ids(recall, MOVE, 6)
    assert recall.why_not(MOVE, found[2], 6).rank == 3
    assert recall.why_not(MOVE, "gym1", 6).reason != "found"


def test_an_ordinary_question_is_answered_as_before() -> None:
    plain = replace(default_ranking(), overview=False)
    recall = recall_of(moving())
    for question in ("Which moving company goes to Porto?", "my knee", "猫"):
        assert recall.search(question, explain=True) == recall.search(
            question, explain=True, ranking=plain
        )


def test_a_ranking_by_named_signals_has_no_overview() -> None:
    own = default_ranking().only("words")
    hits = recall_of(moving()).search(MOVE, explain=True, ranking=own)
    assert all(hit.why is not None and hit.why.signals.keys() <= {"words"} for hit in hits)


def test_sessions_are_ranked_as_ever() -> None:
    plain = replace(default_ranking(), overview=False)
    recall = recall_of(moving())
    assert recall.sessions(MOVE) == recall.sessions(MOVE, ranking=plain)


def test_conditions_and_matching_hold_in_an_overview() -> None:
    recall = recall_of(moving())
    only = recall.search(MOVE, only=Only(session="apr"))
    assert {hit.entry.session for hit in only} == {"apr"}
    matching = recall.search(MOVE, 30, matching=True)
    assert {"jan0", "mar0", "apr0"} <= {hit.id for hit in matching}
    assert "cake0" not in {hit.id for hit in matching}


def test_many_entries_beside_the_matter_do_not_hide_it() -> None:
    noise = [
        Entry(f"n{number}", f"note {number} on taxes", session=f"n{number // 20}", role="user",
              time=number * 3600.0)
        for number in range(1500)
    ]  # fmt: skip
    found = ids(recall_of([*noise, *moving()]), MOVE, 6)
    assert not [each for each in found if each.startswith("n")]
    assert {"jan0", "mar0", "apr0"} <= set(found)


# -- whatever is asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "summarize " * 3000,
        "how " + "a " * 20000 + "developed",
        "give me " * 5000 + "summary",
        "总结" * 5000,
        "summarise " + "the which what " * 30000,
        "list all " + "key main different " * 30000,
        "总结我" + "曾之前都跟你" * 30000,
        "summarise " + "x" * 200_000,
        "in order\x00 summarise \ud83d\ude00 \u202e all",
        "summarise",
        "list all",
        "give me a summary of " + "(" * 5000,
    ],
)
def test_a_strange_question_is_answered_soon(question: str) -> None:
    assert len(recall_of(moving()).search(question, 5)) <= 5


def test_an_empty_memory_has_no_overview() -> None:
    assert recall_of([]).search(MOVE) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["the move", "Porto", "cake", "the move to Porto", "搬家"]),
            st.sampled_from([None, "a", "b"]),
            st.sampled_from([None, "user", "assistant"]),
            st.sampled_from([None, 0.0, 5.0, 3 * DAY, -DAY]),
        ),
        max_size=12,
    ),
    st.integers(1, 15),
    st.sampled_from([MOVE, "List all about the move", "按顺序总结搬家", "summarise how it went"]),
)
def test_an_overview_finds_whom_a_search_finds_and_is_always_the_same(
    told: list[tuple[str, str | None, str | None, float | None]], top_k: int, question: str
) -> None:
    entries = [
        Entry(str(number), text, session=session, role=role, time=time)
        for number, (text, session, role, time) in enumerate(told)
    ]
    recall = recall_of(entries)
    plain = replace(default_ranking(), overview=False)
    every = {hit.id for hit in recall.search(question, 15, ranking=plain)}
    hits = recall.search(question, top_k)
    assert hits == recall_of(entries).search(question, top_k)
    assert {hit.id for hit in hits} <= every
    assert len(hits) == min(top_k, len(every))
    assert len({hit.id for hit in hits}) == len(hits)
