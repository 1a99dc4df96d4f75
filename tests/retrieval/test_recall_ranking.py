"""What makes one entry stand before another: each signal in a scene that needs it, and why so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memoryspace.embedding import CallableEmbedder
from memoryspace.errors import InvalidInput
from memoryspace.retrieval import Entry, Hit, Only, Ranking, Recall, Why, default_ranking

DAY = 86400.0
NOW = datetime(2023, 5, 20, 12, tzinfo=UTC).timestamp()


def on(year: int, month: int, day: int, hour: int = 12) -> float:
    return datetime(year, month, day, hour, tzinfo=UTC).timestamp()


def recall_of(*entries: Entry) -> Recall:
    recall = Recall(embedder=None, clock=lambda: NOW)
    recall.add(entries)
    return recall


def ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def first(recall: Recall, question: str, *without: str) -> str:
    return recall.search(question, 1, ranking=default_ranking().without(*without))[0].id


def why(recall: Recall, question: str, entry_id: str) -> Why:
    said = next(
        hit.why for hit in recall.search(question, 1000, explain=True) if hit.id == entry_id
    )
    assert said is not None
    return said


# -- signals: each scene comes out otherwise without the one it is about ---------------------------


def test_a_speaker_named_in_the_question_is_preferred() -> None:
    recall = recall_of(
        Entry("Ann", "I bought a bicycle in June", speaker="Ann"),
        Entry("Bob", "I bought a bicycle in July", speaker="Bob"),
    )
    assert first(recall, "What did Ann buy, a bicycle?") == "Ann"
    assert first(recall, "What did Bob buy, a bicycle?") == "Bob"
    assert first(recall, "What did Ann buy, a bicycle?", "speaker") == "Bob"  # the newest
    assert "speaker" not in why(recall, "Did Ann and Bob buy a bicycle?", "Ann").signals


def test_what_a_speaker_said_is_found_if_nothing_else_is_asked() -> None:
    recall = recall_of(
        Entry("a", "Lunch was fine", speaker="Ann"), Entry("b", "No time today", speaker="Bob")
    )
    assert ids(recall.search("What did Ann say?")) == ["a"]


def test_what_a_speaker_said_is_found_among_very_many() -> None:
    crowd = [Entry(str(n), f"plain words {n}", speaker="Bob") for n in range(1100)]
    recall = recall_of(Entry("a", "Lunch was fine", speaker="Ann"), *crowd)
    assert ids(recall.search("What did Ann say?")) == ["a"]


def test_a_speaker_with_a_chinese_name_is_preferred() -> None:
    recall = recall_of(
        Entry("a", "我买了一辆自行车", speaker="小明"),
        Entry("b", "我买了一辆自行车", speaker="小红"),
    )
    assert first(recall, "小明买了什么自行车？") == "a"
    assert first(recall, "小明买了什么自行车？", "speaker") == "b"


def test_what_users_say_of_themselves_is_preferred_when_they_ask_of_themselves() -> None:
    recall = recall_of(
        Entry("said", "the car is parked on Elm Street", role="user"),
        Entry("told", "the car is parked on Oak Street", role="assistant"),
    )
    assert first(recall, "where is my car parked?") == "said"
    assert first(recall, "where is my car parked?", "user") == "told"
    assert "user" not in why(recall, "where is the car parked?", "said").signals
    assert "user" not in why(recall, "where did you say my car is parked?", "said").signals


def test_a_standing_instruction_is_heeded_whatever_is_asked() -> None:
    recall = recall_of(
        Entry("rule", "Always use metric units.", role="user"),
        Entry("talk", "the lake is deep", role="assistant"),
    )
    assert set(ids(recall.search("how deep is the lake?"))) == {"rule", "talk"}
    quiet = default_ranking().without("instruction")
    assert ids(recall.search("how deep is the lake?", ranking=quiet)) == ["talk"]
    assert ids(recall.search("summarize what is said of the lake")) == ["talk"]


def test_standing_instructions_can_stand_beside_the_hits() -> None:
    recall = recall_of(
        Entry("old rule", "Always use metric units.", role="user"),
        Entry("talk", "the lake is always deep", role="assistant"),
        Entry("rule", "From now on call me Jo.", role="user", session="two"),
    )
    assert [each.id for each in recall.instructions()] == ["rule", "old rule"]
    assert [each.id for each in recall.instructions(only=Only(session="two"))] == ["rule"]
    recall.remove(["rule"])
    assert [each.id for each in recall.instructions()] == ["old rule"]


def test_a_standing_instruction_is_a_candidate_among_very_many() -> None:
    rule = Entry("rule", "从现在起用公制单位。", role="user")
    recall = recall_of(rule, *(Entry(str(n), f"the lake {n} is deep") for n in range(1100)))
    assert "rule" in ids(recall.search("how deep is the lake?", 1101))


@pytest.mark.parametrize(
    ("likes", "question"),
    [
        ("I prefer quiet hotels with a garden", "can you recommend a hotel with a garden?"),
        ("我喜欢带花园的安静酒店", "推荐一个带花园的酒店"),
    ],
)
def test_a_preference_counts_when_advice_is_asked_for(likes: str, question: str) -> None:
    plain = likes.replace("prefer", "saw").replace("喜欢", "看到")
    recall = recall_of(Entry("likes", likes, role="user"), Entry("saw", plain, role="user"))
    assert first(recall, question) == "likes"
    assert first(recall, question, "preference") == "saw"


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("what was served for dinner on 7 May 2023?", on(2023, 5, 7)),
        ("what was served for dinner on 2023-05-07?", on(2023, 5, 7, 0)),
        ("what was served for dinner yesterday?", on(2023, 5, 19, 23)),
        ("what was served for dinner two weeks ago?", on(2023, 5, 3)),
        ("what was served for dinner last month?", on(2023, 4, 11)),
        ("what was served for dinner in 2021?", on(2021, 8, 1)),
        ("我们昨天吃了什么 dinner？", on(2023, 5, 19)),
        ("2023年5月7日的 dinner 说了什么？", on(2023, 5, 7)),
        ("上个月的 dinner 说了什么？", on(2023, 4, 30)),
    ],
)
def test_what_is_of_the_time_asked_for_is_preferred(question: str, day: float) -> None:
    recall = recall_of(
        Entry("then", "a long dinner", time=day),
        Entry("later", "a long dinner", time=on(2023, 5, 20)),
        Entry("never", "a long dinner"),
    )
    assert first(recall, question) == "then"
    assert first(recall, question, "date") != "then"


def test_relative_times_count_from_when_it_is_asked() -> None:
    recall = recall_of(*(Entry(str(day), "a walk", time=on(2023, 5, day)) for day in (3, 8, 12)))
    for day in (3, 8, 12):
        hits = recall.search("what did we do yesterday, a walk?", now=on(2023, 5, day + 1))
        assert hits[0].id == str(day)


def test_days_begin_and_end_as_in_the_zone() -> None:
    late = Entry("late", "a walk", time=on(2023, 5, 7, 20))
    early = Entry("early", "a walk", time=on(2023, 5, 7, 2))
    for hours, expected in ((9, "early"), (-9, "late")):
        recall = Recall(embedder=None, zone=timezone(timedelta(hours=hours)), clock=lambda: NOW)
        recall.add([late, early])
        dated = why(recall, "the walk on 7 May 2023", expected)
        other = why(recall, "the walk on 7 May 2023", "late" if expected == "early" else "early")
        assert dated.signals["date"] > 0
        assert "date" not in other.signals


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (
            ("We climbed the hill yesterday", "We climbed the hill together"),
            "When was the hill climbed, on 7 May 2023?",
        ),
        (("昨天我们爬山了", "这次我们爬山了"), "2023年5月7日爬山了吗？"),
    ],
)
def test_a_record_that_speaks_of_the_day_counts(texts: tuple[str, str], question: str) -> None:
    then, other = texts
    recall = recall_of(
        Entry("then", then, time=on(2023, 5, 8)), Entry("other", other, time=on(2023, 5, 8))
    )
    assert first(recall, question) == "then"
    assert why(recall, question, "then").signals["date said"] > 0
    assert first(recall, question, "date said", "time word") == "other"


def test_a_record_is_found_by_the_day_it_speaks_of_alone() -> None:
    recall = recall_of(Entry("then", "We went hiking yesterday", time=on(2023, 5, 8)))
    assert ids(recall.search("What happened on 7 May 2023?")) == ["then"]


def test_what_is_of_the_day_is_a_candidate_among_very_many() -> None:
    recall = recall_of(
        Entry("then", "we ate pancakes", time=on(2021, 3, 4)),
        *(Entry(str(n), f"what happened on day {n}", time=on(2023, 1, 1)) for n in range(1100)),
    )
    assert "then" in ids(recall.search("what happened on 4 March 2021?", 1000))
    assert "then" not in ids(recall.search("what happened on 5 March 2021?", 1000))


def test_of_very_many_of_the_day_the_newest_are_candidates() -> None:
    recall = recall_of(*(Entry(str(n), f"plain words {n}", time=NOW - DAY) for n in range(6)))
    recall.remove(["0"])
    recall.add([Entry("new", "plain words again", time=NOW - DAY)])
    ranking = replace(default_ranking(), whole=4, candidates=2)
    assert ids(recall.search("what happened yesterday?", 2, ranking=ranking)) == ["new", "5"]


def test_each_of_several_days_has_its_candidates() -> None:
    recall = recall_of(
        *(
            Entry(f"{day}{n}", "plain words", time=NOW - day * DAY)
            for day in (1, 10)
            for n in range(4)
        )
    )
    ranking = replace(default_ranking(), whole=4, candidates=2)
    found = ids(recall.search("yesterday or ten days ago", 2, ranking=ranking))
    assert set(found) == {"13", "103"}


def test_a_phrase_in_quotes_is_taken_word_for_word() -> None:
    recall = recall_of(
        Entry("exact", "she said the moon is hollow and laughed"),
        Entry("mixed", "she said hollow is the moon and laughed"),
    )
    assert first(recall, 'who said "the moon is hollow"?') == "exact"
    assert first(recall, 'who said "the moon is hollow"?', "phrase") == "mixed"
    assert why(recall, 'who said "THE MOON is hollow"?', "exact").signals["phrase"] > 0
    assert "phrase" not in why(recall, "who said the moon is hollow?", "exact").signals


def test_a_reply_is_understood_with_the_question_before_it() -> None:
    recall = recall_of(
        Entry("asks", "Which instrument does your sister play?", session="s"),
        Entry("reply", "The cello, since childhood.", session="s"),
        Entry("later", "The cello, since childhood.", session="s"),
    )
    question = "which instrument does the sister play?"
    assert ids(recall.search(question)) == ["asks", "reply", "later"]
    quiet = default_ranking().without("words with the reply")
    assert ids(recall.search(question, ranking=quiet)) == ["asks", "later", "reply"]


def test_a_question_of_the_user_is_read_with_its_answer() -> None:
    recall = recall_of(
        Entry("ask", "And what about that?", session="s", role="user"),
        Entry("answer", "The umbrella is in the cellar.", session="s", role="assistant"),
        Entry("next", "And what about this?", session="s", role="assistant"),
    )
    ask = why(recall, "cellar umbrella", "ask").signals
    assert ask["words with the reply"] > 0
    assert "words" not in ask
    assert (
        why(recall, "cellar umbrella", "next").signals["words with the reply"] > 0
    )  # it follows the answer


def test_neighbours_are_those_of_the_session_alone() -> None:
    recall = recall_of(
        Entry("a", "umbrella umbrella", session="one"),
        Entry("b", "unrelated words", session="two"),
        Entry("c", "unrelated words"),
        Entry("d", "unrelated words"),
    )
    assert ids(recall.search("umbrella")) == ["a"]


def test_neighbours_close_up_when_one_between_them_is_removed() -> None:
    talk = [Entry(str(n), "filler words here", session="s") for n in range(5)]
    recall = recall_of(Entry("it", "umbrella", session="s"), *talk)
    assert set(ids(recall.search("umbrella"))) == {"it", "0", "1"}
    recall.remove(["0", "1"])
    assert set(ids(recall.search("umbrella"))) == {"it", "2", "3"}
    recall.remove(["it"])
    assert recall.search("umbrella") == []


def test_a_session_speaks_for_what_is_said_in_it() -> None:
    filler = [f"filler {n} of no use" for n in range(4)]
    recall = recall_of(
        Entry("in", "the garden was lovely", session="trip"),
        *(Entry(f"t{n}", text, session="trip") for n, text in enumerate(filler)),
        Entry("trip", "our holiday on Crete with the garden", session="trip"),
        Entry("out", "the garden was lovely", session="home"),
        *(Entry(f"h{n}", text, session="home") for n, text in enumerate(filler)),
    )
    question = "the garden on Crete, that holiday"
    order = ids(recall.search(question, 100))
    assert order.index("in") < order.index("out")
    quiet = default_ranking().without("words in the session")
    order = ids(recall.search(question, 100, ranking=quiet))
    assert order.index("out") < order.index("in")  # the newest of equals


def test_a_second_hop_goes_over_what_the_best_call_by_name() -> None:
    recall = recall_of(
        Entry("city", "A port with a long quay.", title="Kotka"),
        Entry("film", "The Silent Harbour is a film shot in Kotka.", title="The Silent Harbour"),
        *(
            Entry(f"x{n}", f"A port number {n} with a short pier.", title=f"Oulu {n}")
            for n in range(5)
        ),
    )
    question = "what is the place like where the film The Silent Harbour was shot?"
    assert ids(recall.search(question, 2)) == ["film", "city"]
    assert why(recall, question, "city").signals["bridge"] > 0
    quiet = default_ranking().without("bridge")
    assert "city" not in ids(recall.search(question, ranking=quiet))


def test_what_is_found_through_the_best_stands_behind_it() -> None:
    recall = recall_of(
        Entry("film", "It was shot in Kotka, by a harbour.", title="The Silent Sea"),
        Entry("city", "A port by a harbour, with a long quay.", title="Kotka"),
        *(Entry(f"x{n}", f"A port number {n}.", title=f"Oulu {n}") for n in range(5)),
    )
    question = "which film was shot by a harbour, a port?"
    quiet = default_ranking().without("bridge", "names the best")
    assert ids(recall.search(question, 2, ranking=quiet)) == ["film", "city"]
    assert ids(recall.search(question, 2)) == ["film", "city"]
    assert why(recall, question, "city").signals["bridge"] > 0


def test_a_second_hop_finds_its_way_among_very_many() -> None:
    recall = recall_of(
        Entry("city", "A port with a long quay.", title="Kotka"),
        Entry("film", "It was shot in Kotka.", title="The Silent Harbour"),
        *(
            Entry(f"x{n}", f"Film number {n} was shot elsewhere.", title=f"Film {n}")
            for n in range(800)
        ),
    )
    assert "city" in ids(recall.search("where was The Silent Harbour shot?", 5))


def ships(*more: Entry, title: bool = True) -> Recall:
    """Two that meet in a name which is neither's title, among others that have more words."""
    return recall_of(
        Entry("ship", "The Aurora was built by Rask Brothers.", title="Aurora" if title else None),
        Entry("owner", "Ida Lund owns Rask Brothers.", title="Lund family" if title else None),
        *(Entry(f"x{n}", f"Somebody owns yard number {n}.") for n in range(12)),
        *more,
    )


def sharing(recall: Recall, question: str) -> set[str]:
    """Who is found for a name that a better one has, too."""
    hits = recall.search(question, 1000, explain=True)
    return {hit.id for hit in hits if hit.why is not None and "shares a name" in hit.why.signals}


@pytest.mark.parametrize("title", [True, False])
def test_a_second_hop_goes_over_a_name_that_is_nobodys_title(title: bool) -> None:
    recall, question = ships(title=title), "who owns the yard that built the Aurora?"
    assert ids(recall.search(question, 2)) == ["ship", "owner"]
    assert why(recall, question, "owner").signals["shares a name"] > 0
    quiet = default_ranking().without("shares a name")
    assert "owner" not in ids(recall.search(question, 10, ranking=quiet))


def test_a_shared_name_counts_for_nothing_where_the_best_lacks_nothing() -> None:
    assert sharing(ships(), "who owns what the Aurora was built by?") == {"owner"}
    assert sharing(ships(), "what was the Aurora built by?") == set()


def test_a_shared_name_counts_for_nothing_without_what_the_best_lacks() -> None:
    recall = ships(Entry("other", "Rask Brothers, of Turku."))
    assert sharing(recall, "who owns the yard that built the Aurora?") == {"owner"}


def test_a_name_that_the_question_has_itself_is_no_hop() -> None:
    assert sharing(ships(), "who owns Rask Brothers, the yard that built the Aurora?") == set()


def test_a_name_that_very_many_share_is_no_hop() -> None:
    many = (Entry(f"m{n}", f"Rask Brothers, part {n}.") for n in range(30))
    assert sharing(ships(*many), "who owns the yard that built the Aurora?") == set()


def test_what_shares_a_name_with_the_best_stands_behind_it() -> None:
    heavy = replace(default_ranking(), always={"shares a name": 1000.0})
    found = ships().search("who owns the yard that built the Aurora?", 2, ranking=heavy)
    assert ids(found) == ["ship", "owner"]
    assert found[1].score < found[0].score


def test_a_shared_name_is_followed_among_very_many() -> None:
    filler = (Entry(f"f{n}", f"Somebody owns yard {n} and built it.") for n in range(1500))
    question = "who owns the yard that built the Aurora?"
    assert ids(ships(*filler).search(question, 2)) == ["ship", "owner"]


def test_a_shared_name_never_leads_out_of_the_filter() -> None:
    recall = ships(Entry("secret", "Rask Brothers owns a yard.", marks=frozenset({"secret"})))
    question, only = "who owns the yard that built the Aurora?", Only(without=frozenset({"secret"}))
    assert "secret" in ids(recall.search(question, 3))
    assert "secret" not in ids(recall.search(question, 50, only=only))


def test_a_shared_name_is_read_anew_when_a_text_changes() -> None:
    recall, question = ships(), "who owns the yard that built the Aurora?"
    assert ids(recall.search(question, 2)) == ["ship", "owner"]
    recall.add([Entry("ship", "The Aurora was built by Berg Works.", title="Aurora")])
    assert sharing(recall, question) == set()
    recall.add([Entry("ship", "The Aurora was built by Rask Brothers.", title="Aurora")])
    recall.remove(["owner"])
    assert sharing(recall, question) == set()


def test_an_overview_follows_no_names() -> None:
    assert sharing(ships(), "give an overview of who owns the yard that built the Aurora") == set()


def test_a_shared_name_in_east_asian_quotes_is_followed() -> None:
    recall = recall_of(
        Entry("show", "李雷主演过电视剧《青河往事》。"),
        Entry("place", "《青河往事》在苏州拍摄。"),
        *(Entry(f"x{n}", f"第{n}部作品在别处拍摄。") for n in range(12)),
    )
    question = "李雷主演的那部电视剧在哪里拍摄?"
    assert "place" in sharing(recall, question)


def test_names_without_end_take_no_time_without_end() -> None:
    hostile = ("A " * 50_000, "Aa Bb. " * 20_000, "A of the " * 30_000, "《" * 50_000)
    recall = recall_of(*(Entry(str(n), f"tea {text}") for n, text in enumerate(hostile)))
    assert len(recall.search("tea and cake", 10)) == len(hostile)


def test_whoever_calls_the_best_by_name_counts() -> None:
    recall = recall_of(
        Entry("actor", "Ida Rask is an actor, born in Turku.", title="Ida Rask"),
        Entry("names", "A drama with Ida Rask in it.", title="Winter Light"),
        Entry("other", "A drama with somebody else in it.", title="Summer Night"),
    )
    question = "a drama with an actor born in Turku"
    assert why(recall, question, "names").signals["names the best"] > 0
    assert "names the best" not in why(recall, question, "other").signals


def test_what_the_question_calls_by_name_is_found() -> None:
    recall = recall_of(
        Entry("it", "A port.", title="Kotka"), Entry("other", "The harbour of Kotka and its quay.")
    )
    assert why(recall, "Tell us of Kotka", "it").signals["named"] > 0
    assert "named" not in why(recall, "Tell us of Kotka", "other").signals


def test_a_second_hop_never_leads_out_of_the_filter() -> None:
    recall = recall_of(
        Entry("city", "A port with a long quay.", title="Kotka", marks=frozenset({"secret"})),
        Entry("film", "The film was shot in Kotka.", title="The Silent Harbour"),
    )
    only = Only(without=frozenset({"secret"}))
    assert ids(recall.search("The Silent Harbour film, Kotka", only=only)) == ["film"]


def test_importance_lifts_and_lowers() -> None:
    recall = recall_of(
        *(Entry(str(n), "the cat sleeps", importance=n) for n in (1.0, 0.0)),
        Entry("plain", "the cat sleeps"),
    )
    assert ids(recall.search("cat")) == ["1.0", "plain", "0.0"]
    quiet = default_ranking().without("importance")
    assert ids(recall.search("cat", ranking=quiet)) == ["plain", "0.0", "1.0"]
    assert "importance" not in why(recall, "cat", "plain").signals


def test_recency_breaks_ties_and_no_more() -> None:
    recall = recall_of(
        Entry("new", "the cat sleeps", time=NOW - DAY),
        Entry("old", "the cat sleeps", time=NOW - 300 * DAY),
        Entry("better", "the cat sleeps on the sofa", time=NOW - 3000 * DAY),
    )
    order = ids(recall.search("the cat sleeps"))
    assert order.index("new") < order.index("old")
    quiet = default_ranking().without("recency")
    order = ids(recall.search("the cat sleeps", ranking=quiet))
    assert order.index("old") < order.index("new")
    assert first(recall, "cat sofa") == "better"


def test_the_future_is_no_more_recent_than_now() -> None:
    recall = recall_of(Entry("now", "cat", time=NOW), Entry("then", "cat", time=NOW + 999 * DAY))
    one, other = recall.search("cat", explain=True)
    assert one.score == other.score


@pytest.mark.parametrize(
    ("question", "telling", "signal"),
    [
        ("when was the roof repaired?", "the roof was repaired on Friday", "time word"),
        ("屋顶是什么时候修好的？", "屋顶是上周修好的", "time word"),
        ("how many tiles has the roof?", "the roof has 412 tiles", "number"),
        ("屋顶有多少瓦片？", "屋顶有四百个瓦片", "number"),
    ],
)
def test_a_time_or_a_number_counts_when_it_is_asked_for(
    question: str, telling: str, signal: str
) -> None:
    recall = recall_of(Entry("tells", telling))
    assert why(recall, question, "tells").signals[signal] > 0
    assert signal not in why(recall, "the roof 屋顶", "tells").signals


def test_a_mere_question_answers_nothing() -> None:
    recall = recall_of(
        Entry("tells", "the roof has been repaired"), Entry("asks", "has the roof been repaired?")
    )
    assert first(recall, "roof repaired") == "tells"
    assert first(recall, "roof repaired", "states something", "length") == "asks"


# -- the signals of the text, beside their definition ----------------------------------------------

_WORDS = ("cat", "dog", "sofa", "tea", "Paris", "filler")
_SCENES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join),
        st.sampled_from([None, "s", "s", "t"]),
        st.sampled_from(["user", "assistant"]),
    ),
    min_size=1,
    max_size=14,
)
_ORDERS = st.randoms(use_true_random=False)
_COUNTS = CallableEmbedder(
    lambda texts: [[text.count(word) - 0.3 for word in _WORDS] for text in texts], "counts", 6
)


def scene_of(
    scene: list[tuple[str, str | None, str]], chance: Random, embedder: CallableEmbedder | None
) -> tuple[Recall, list[Entry]]:
    """Add a scene with others among it that are removed again, so that rows stand crosswise."""
    entries = [
        Entry(str(n), text, session=session, role=role)
        for n, (text, session, role) in enumerate(scene)
    ]
    recall = Recall(embedder=embedder, clock=lambda: NOW)
    gone = [Entry(f"gone{n}", "cat dog", session=chance.choice("st")) for n in range(4)]
    recall.add(gone)
    for number, entry in enumerate(entries):
        if number % 3 == 1 and gone:
            recall.remove([gone.pop(chance.randrange(len(gone))).id])
        recall.add([entry])
    recall.remove(each.id for each in gone)
    recall.check()
    return recall, entries


def beside(entries: list[Entry], entry: Entry, distance: int) -> Entry | None:
    """Find a neighbour the slow way."""
    talk = [each for each in entries if each.session == entry.session]
    at = talk.index(entry) + distance
    return talk[at] if entry.session is not None and 0 <= at < len(talk) else None


def shares(values: dict[str, float]) -> dict[str, float]:
    most = max(values.values())
    return {each: max(value, 0.0) / most if most > 0 else 0.0 for each, value in values.items()}


def check_signal(
    hits: list[Hit], name: str, weight: float, expected: dict[str, float], tolerance: float
) -> None:
    for hit in hits:
        assert hit.why is not None
        wanted = weight * expected[hit.id]
        assert hit.why.signals.get(name, 0.0) == pytest.approx(wanted, abs=tolerance), name


@given(_SCENES, _ORDERS)
def test_signals_of_words_are_what_they_say(
    scene: list[tuple[str, str | None, str]], chance: Random
) -> None:
    recall, entries = scene_of(scene, chance, None)
    hits = recall.search("cat dog sofa", 100, explain=True)
    own = {entry.id: dict[str, float]() for entry in entries}
    own |= {hit.id: hit.why.words for hit in hits if hit.why is not None}

    def read(entry: Entry, *distances: int) -> float:
        around = [beside(entries, entry, distance) for distance in distances]
        read = [own[each.id] for each in (entry, *around) if each is not None]
        return sum(max(each.get(word, 0.0) for each in read) for word in ("cat", "dog", "sofa"))

    expected = {
        "words": {each.id: read(each) for each in entries},
        "words with the reply": {
            each.id: read(each, 1 if each.role == "user" else -1) for each in entries
        },
        "words around it": {each.id: read(each, -2, -1, 1, 2) for each in entries},
    }
    expected["words in the session"] = {
        one.id: max(
            expected["words"][other.id]
            for other in entries
            if other is one or (one.session is not None and other.session == one.session)
        )
        for one in entries
    }
    for name, values in expected.items():
        check_signal(hits, name, default_ranking().words[name], shares(values), 1e-9)


@given(_SCENES, _ORDERS)
def test_signals_of_meaning_are_what_they_say(
    scene: list[tuple[str, str | None, str]], chance: Random
) -> None:
    recall, entries = scene_of(scene, chance, _COUNTS)
    question = "cat dog sofa"
    hits = recall.search(question, 100, explain=True)
    asked, *vectors = _COUNTS.embed([question, *(entry.text for entry in entries)]).astype(float)
    by_id = {entry.id: vector for entry, vector in zip(entries, vectors, strict=True)}

    def read(entry: Entry, *distances: int) -> float:
        blend = by_id[entry.id].copy()
        for there in (beside(entries, entry, distance) for distance in distances):
            blend += 0 if there is None else 0.5 * by_id[there.id]
        length = float(np.linalg.norm(blend))
        return float(asked @ blend) / length if length > 1e-6 else 0.0

    own = {each.id: read(each) for each in entries}
    expected = {
        "meaning": own,
        "meaning with the reply": {
            each.id: read(each, 1 if each.role == "user" else -1) for each in entries
        },
        "meaning around it": {
            each.id: read(each, -1, 1) if each.session else 0.0 for each in entries
        },
        "meaning in the session": {
            one.id: max(
                max(own[other.id], 0.0) for other in entries if other.session == one.session
            )
            if one.session
            else 0.0
            for one in entries
        },
    }
    for name, values in expected.items():
        check_signal(hits, name, default_ranking().words_and_vectors[name], shares(values), 1e-4)


# -- explanations ----------------------------------------------------------------------------------

_TALK = st.lists(
    st.builds(
        Entry,
        st.integers(0, 30).map(str),
        st.sampled_from(
            ["the cat sleeps", "I love tea", "Always use Paris", "met yesterday", "in Paris 7?"]
        ),
        session=st.sampled_from([None, "s"]),
        speaker=st.sampled_from([None, "Ann", "Bob"]),
        role=st.sampled_from([None, "user"]),
        title=st.sampled_from([None, "Paris", "Old Mill"]),
        time=st.sampled_from([None, NOW - DAY]),
    ),
    max_size=20,
)
_QUESTIONS = st.sampled_from(
    ["where is the cat?", 'Ann on "the cat" in Paris yesterday', "recommend me a tea", "Old Mill"]
)
_LETTERS = CallableEmbedder(
    lambda texts: [[1 + text.count(letter) for letter in "aeiot"] for text in texts], "letters", 5
)


@pytest.mark.parametrize("embedder", [None, _LETTERS], ids=["words", "words and vectors"])
@given(_TALK, _QUESTIONS, st.sampled_from([1, 300]), st.sampled_from([0.0, 0.4]))
def test_signals_add_up_to_the_score(
    embedder: CallableEmbedder | None,
    entries: list[Entry],
    question: str,
    candidates: int,
    diversity: float,
) -> None:
    ranking = replace(
        default_ranking(), whole=2 * candidates, candidates=candidates, diversity=diversity
    )
    recall = Recall(embedder=embedder, ranking=ranking, clock=lambda: NOW)
    recall.add(entries)
    for hit in recall.search(question, 100, explain=True):
        assert hit.why is not None
        assert sum(hit.why.signals.values()) == pytest.approx(hit.score)
        assert all(rank >= 1 for rank in hit.why.ranks.values())
        assert all(gain > 0 for gain in hit.why.words.values())


def test_an_explanation_changes_nothing() -> None:
    recall = recall_of(*(Entry(str(n), f"cat {n}") for n in range(5)))
    plain, told = recall.search("cat 3"), recall.search("cat 3", explain=True)
    assert [(hit.id, hit.score) for hit in plain] == [(hit.id, hit.score) for hit in told]


def test_ranks_are_those_of_each_arm_alone() -> None:
    vectors = {
        "which cat?": [1.0, 0.0],
        "a cat": [0.6, 0.8],
        "a dog, a mouse and a cat": [0.0, 1.0],
        "birds": [0.8, 0.6],
        "fish": [-1.0, 0.0],
    }
    embedder = CallableEmbedder(lambda texts: [vectors[text] for text in texts], "toy", 2)
    recall = Recall(embedder=embedder, clock=lambda: NOW)
    recall.add([Entry(text, text) for text in list(vectors)[1:]])
    ranks = {hit.id: hit.why.ranks for hit in recall.search("which cat?", explain=True) if hit.why}
    assert ranks == {
        "a cat": {"words": 1, "vectors": 2},
        "a dog, a mouse and a cat": {"words": 2},
        "birds": {"vectors": 1},
    }


def test_words_are_those_that_occur_the_most_telling_first() -> None:
    recall = recall_of(
        Entry("a", "cats sleeping on an umbrella"), Entry("b", "cat one"), Entry("c", "cat two")
    )
    said = why(recall, "do my cats sleep under the umbrella?", "a").words
    assert set(said) == {"cats", "sleep", "umbrella"}
    assert list(said.values()) == sorted(said.values(), reverse=True)
    assert list(said)[-1] == "cats"  # the commonest


# -- why not ---------------------------------------------------------------------------------------


def many(count: int = 1100) -> list[Entry]:
    return [
        Entry(str(n), f"the cat number{n} sleeps on a sofa", speaker="Bob") for n in range(count)
    ]


@pytest.mark.parametrize("count", [20, 1100], ids=["everyone is looked at", "some are"])
def test_it_is_said_where_an_entry_fell_out(count: int) -> None:
    recall = recall_of(
        Entry("far", "nothing of the kind", speaker="Ann"),
        Entry("weak", "somewhere there was also a cat, among much else that nobody asks about"),
        *many(count),
    )
    assert recall.why_not("cat sofa", "nobody").reason == "unknown"
    assert "nobody" in recall.why_not("cat sofa", "nobody").detail
    filtered = recall.why_not("cat sofa", "far", only=Only(speaker="Bob"))
    assert filtered.reason == "filtered"
    assert "'Ann'" in filtered.detail
    assert recall.why_not("cat sofa", "far").reason == "not matched"
    weak = recall.why_not("cat sofa", "weak", 3)
    assert weak.reason == ("outranked" if count == 20 else "not a candidate")
    last = ids(recall.search("cat sofa", 19))[-1]
    outranked = recall.why_not("cat sofa", last, 3)
    assert outranked.reason == "outranked"
    assert outranked.rank == 19
    assert outranked.by == tuple(ids(recall.search("cat sofa", 5)))
    assert outranked.why is not None
    assert "cat" in outranked.why.words


@pytest.mark.parametrize("count", [20, 1100], ids=["everyone is looked at", "some are"])
def test_why_not_agrees_with_the_search(count: int) -> None:
    recall = recall_of(*many(count))
    for only in (Only(), Only(speaker="Bob"), Only(ids=frozenset(map(str, range(0, count, 3))))):
        hits = recall.search("number3 cat number6", 10, only=only, explain=True)
        for place, hit in enumerate(hits):
            told = recall.why_not("number3 cat number6", hit.id, 10, only=only)
            assert (told.reason, told.rank, told.why) == ("found", place + 1, hit.why)


def test_it_is_named_who_took_the_places_even_if_few() -> None:
    recall = recall_of(Entry("a", "cat cat"), Entry("b", "cat and many other words beside it"))
    behind = ({"a", "b"} - {recall.search("cat", 1)[0].id}).pop()
    told = recall.why_not("cat", behind, 1)
    assert (told.reason, told.rank) == ("outranked", 2)
    assert told.by == tuple(ids(recall.search("cat", 1)))


def test_who_is_no_candidate_is_not_said_to_be_found() -> None:
    ranking = replace(default_ranking(), whole=2, candidates=1)
    lifted = Entry("lifted", "a cat " + "and many other words " * 9, importance=1.0, role="user")
    recall = recall_of(lifted, *(Entry(str(n), "cat") for n in range(5)))
    hits = ids(recall.search("where is my cat?", ranking=ranking))
    told = recall.why_not("where is my cat?", "lifted", ranking=ranking)
    assert (told.reason == "found") == ("lifted" in hits)


# -- rankings --------------------------------------------------------------------------------------


def test_a_ranking_goes_by_the_signals_it_has() -> None:
    recall = recall_of(Entry("a", "cat", importance=1.0), Entry("b", "cat cat cat"))
    hits = recall.search("cat", explain=True, ranking=default_ranking().only("importance"))
    assert ids(hits) == ["a", "b"]
    assert hits[0].why is not None
    assert hits[0].why.signals.keys() == {"importance"}


def test_a_ranking_of_the_recall_holds_unless_a_search_brings_its_own() -> None:
    recall = Recall(embedder=None, ranking=default_ranking().only("importance"), clock=lambda: NOW)
    recall.add([Entry("a", "cat", importance=1.0), Entry("b", "cat cat sofa bed")])
    assert ids(recall.search("cat sofa bed")) == ["a", "b"]
    assert ids(recall.search("cat sofa bed", ranking=default_ranking())) == ["b", "a"]


def test_a_ranking_that_makes_no_sense_is_refused() -> None:
    plain = default_ranking()
    wrongs: list[Callable[[], Ranking]] = [
        lambda: plain.without("luck"),
        lambda: plain.only("luck"),
        lambda: replace(plain, candidates=0),
        lambda: replace(plain, seeds=0),
        lambda: replace(plain, scan=-1),
        lambda: replace(plain, half_life=0.0),
        lambda: replace(plain, half_life=float("nan")),
        lambda: replace(plain, diversity=1.5),
        lambda: Ranking(words={"words": float("nan")}, words_and_vectors={}, always={}),
    ]
    for wrong in wrongs:
        with pytest.raises(InvalidInput):
            wrong()


def test_a_ranking_without_any_weight_still_finds() -> None:
    recall = recall_of(Entry("a", "cat"), Entry("b", "cat"), Entry("c", "dog"))
    nothing = Ranking(words={}, words_and_vectors={}, always={})
    assert ids(recall.search("cat", ranking=nothing)) == ["b", "a"]


# -- after the sum ---------------------------------------------------------------------------------


def test_a_reranker_puts_the_best_in_its_order_and_the_explanation_adds_up() -> None:
    recall = Recall(
        embedder=None, clock=lambda: NOW, reranker=lambda question, texts: [*map(len, texts)]
    )
    recall.add([Entry(str(n), "cat " + "x" * n) for n in range(6)])
    hits = recall.search("cat", explain=True)
    assert ids(hits) == list("543210")
    some = replace(default_ranking(), reranked=2)
    assert set(ids(recall.search("cat", ranking=some))) == set("543210")
    for hit in hits:
        assert hit.why is not None
        assert sum(hit.why.signals.values()) == pytest.approx(hit.score)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("answer", [[], [1.0], [float("nan")] * 3, None, ["a", "b", "c"]])
def test_a_reranker_that_fails_changes_nothing(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    entries = [Entry(str(n), f"cat number {n}") for n in range(3)]
    recall = Recall(
        embedder=None,
        clock=lambda: NOW,
        reranker=lambda question, texts: answer,  # type: ignore[arg-type, return-value]
    )
    recall.add(entries)
    assert recall.search("cat") == recall_of(*entries).search("cat")
    assert "reranker failed" in caplog.text


def test_variety_lets_another_thing_come_before_the_same_again() -> None:
    recall = recall_of(
        Entry("same", "the cat sleeps on the sofa"),
        Entry("again", "the cat sleeps on the sofa"),
        Entry("other", "a cat was seen near Turku harbour"),
    )
    question = "where does the cat sleep, on the sofa?"
    assert ids(recall.search(question)) == ["again", "same", "other"]
    various = replace(default_ranking(), diversity=0.7)
    assert ids(recall.search(question, ranking=various)) == ["again", "other", "same"]
