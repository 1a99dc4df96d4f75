"""A recall over its life: what is added is found, what was replaced or removed is not."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from memoryspace.errors import InvalidInput
from memoryspace.retrieval import Entry, Hit, Only, Ranking, Recall, default_ranking

NOW = 1_700_000_000.0
DAY = 86400.0


def recall_of(*entries: Entry, ranking: Ranking | None = None) -> Recall:
    recall = Recall(embedder=None, ranking=ranking, clock=lambda: NOW)
    recall.add(entries)
    return recall


def ids(hits: Iterable[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def found(recall: Recall, question: str, **only: Any) -> list[str]:
    return ids(recall.search(question, 1000, only=Only(**only)))


# -- adding, replacing, removing -------------------------------------------------------------------


def test_what_is_added_is_found_by_the_next_search() -> None:
    recall = recall_of(Entry("a", "the cat sleeps"))
    assert found(recall, "cat") == ["a"]
    assert recall.add([Entry("b", "another cat")]) == 1
    assert set(found(recall, "cat")) == {"a", "b"}
    assert len(recall) == 2
    assert "b" in recall


def test_a_hit_holds_the_entry_that_was_added() -> None:
    entry = Entry("a", "the cat", speaker="Ann", metadata={"page": 3})
    recall = recall_of(entry)
    (hit,) = recall.search("cat")
    assert hit.entry == recall.get("a") == entry
    assert hit.why is None
    assert recall.get("b") is None


def test_a_replaced_entry_is_found_by_its_new_text_alone() -> None:
    recall = recall_of(Entry("a", "a red house"), Entry("b", "something else"))
    assert recall.add([Entry("a", "a green garden")]) == 0
    assert found(recall, "house") == []
    assert found(recall, "garden") == ["a"]
    assert len(recall) == 2
    recall.check()


def test_a_replaced_entry_has_nothing_left_of_what_it_was() -> None:
    then = Entry(
        "a",
        "Always answer in French. We met yesterday.",
        session="s",
        speaker="Ann",
        role="user",
        title="Old Name",
        time=NOW - DAY,
        importance=1.0,
        marks=frozenset({"pin"}),
        metadata={"k": 1},
    )
    recall = recall_of(then, Entry("b", "Old Name is mentioned here"))
    recall.add([Entry("a", "plain words")])
    fresh = recall_of(Entry("b", "Old Name is mentioned here"), Entry("a", "plain words"))
    for question in ("plain words", "Old Name", "what happened yesterday?", "Ann"):
        assert hits_of(recall, question) == hits_of(fresh, question)
    for only in (
        Only(session="s"),
        Only(speaker="Ann"),
        Only(role="user"),
        Only(marks=frozenset({"pin"})),
        Only(metadata={"k": 1}),
        Only(since=0.0),
    ):
        assert recall.search("plain words", only=only) == []


def test_an_entry_given_twice_at_once_counts_once_and_the_last_wins() -> None:
    recall = recall_of()
    assert recall.add([Entry("a", "first"), Entry("a", "second")]) == 1
    assert found(recall, "first") == []
    assert found(recall, "second") == ["a"]


def test_a_removed_entry_is_never_found_again() -> None:
    recall = recall_of(Entry("a", "the cat"), Entry("b", "a cat"))
    assert recall.remove(["a", "nobody", "a"]) == 1
    assert found(recall, "cat") == ["b"]
    assert "a" not in recall
    assert recall.get("a") is None
    assert recall.remove(["a"]) == 0
    recall.check()


def test_the_place_of_a_removed_entry_keeps_nothing_for_the_next() -> None:
    first = [
        Entry(f"old{n}", "Never do this yesterday 7", role="user", title="Name", time=NOW)
        for n in range(5)
    ]
    recall = recall_of(*first)
    recall.remove(entry.id for entry in first)
    assert not recall.profiles.instructions
    later = [Entry(f"new{n}", f"quiet text {n}") for n in range(5)]
    recall.add(later)
    fresh = recall_of(*later)
    for question in ("quiet text", "Name", "what was yesterday?", "how many?"):
        assert hits_of(recall, question) == hits_of(fresh, question)


def test_a_recall_grows_past_every_first_size() -> None:
    entries = [
        Entry(str(n), f"note number{n}", session=f"s{n % 7}", time=NOW - n, importance=n % 3 / 2)
        for n in range(1500)
    ]
    recall = recall_of(*entries)
    recall.check()
    for n in (0, 255, 256, 257, 511, 512, 1023, 1024, 1499):
        assert found(recall, f"number{n}")[0] == str(n)
        row = recall.catalogue.find(str(n))
        assert recall.catalogue.times[row] == NOW - n
        assert recall.catalogue.importances[row] == n % 3 / 2


def test_a_replaced_entry_keeps_its_place_in_its_session() -> None:
    talk = [
        Entry("asks", "Which instrument does your sister play?", session="s"),
        Entry("reply", "The cello, since childhood.", session="s"),
        *(Entry(f"x{n}", f"filler {n} words", session="s") for n in range(6)),
    ]
    recall = recall_of(*talk)
    before = hits_of(recall, "which instrument does the sister play?")
    recall.add([replace(talk[0], marks=frozenset({"pin"})), replace(talk[4], kind="note")])
    assert hits_of(recall, "which instrument does the sister play?") == before
    recall.check()


def test_a_replaced_entry_that_changes_its_session_comes_last_there() -> None:
    recall = recall_of(
        Entry("a", "umbrella", session="s"),
        *(Entry(f"s{n}", "filler", session="s") for n in range(3)),
        *(Entry(f"t{n}", "filler", session="t") for n in range(3)),
    )
    recall.add([Entry("a", "umbrella", session="t")])
    assert set(found(recall, "umbrella")) == {"a", "t1", "t2"}
    recall.check()


# -- all or none -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        Entry("", "no id"),
        Entry("line\nbreak", "text"),
        Entry(5, "text"),  # type: ignore[arg-type]
        Entry("b", None),  # type: ignore[arg-type]
        Entry("b", "text", session=5),  # type: ignore[arg-type]
        Entry("b", "text", time=float("nan")),
        Entry("b", "text", time=float("inf")),
        Entry("b", "text", importance=float("nan")),
        Entry("b", "text", importance=True),
        Entry("b", "text", metadata={"k": {1}}),
        "no entry",
        None,
    ],
    ids=repr,
)
def test_one_bad_entry_and_nothing_is_added(wrong: Any) -> None:
    recall = recall_of(Entry("a", "what was"))
    with pytest.raises((TypeError, InvalidInput)):
        recall.add([Entry("c", "new"), Entry("a", "replaced"), wrong, Entry("d", "newer")])
    assert len(recall) == 1
    assert found(recall, "what was") == ["a"]
    recall.check()


@pytest.mark.parametrize(
    "wrong",
    [
        Entry("b", "text", kind=[]),  # type: ignore[arg-type]
        Entry("b", "text", kind=5),  # type: ignore[arg-type]
        Entry("b", "text", marks=[["x"]]),  # type: ignore[arg-type]
        Entry("b", "text", marks="pin"),  # type: ignore[arg-type]
        Entry("b", "text", metadata=5),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_one_entry_of_wrong_kind_marks_or_metadata_and_nothing_is_added(wrong: Any) -> None:
    recall = recall_of(Entry("a", "what was"))
    with pytest.raises((TypeError, InvalidInput)):
        recall.add([Entry("a", "replaced"), wrong])
    assert found(recall, "what was") == ["a"]
    recall.check()


def test_entries_that_fail_to_come_add_nothing() -> None:
    def broken() -> Iterable[Entry]:
        yield Entry("a", "cat")
        raise OSError("the source is gone")

    recall = recall_of()
    with pytest.raises(OSError, match="gone"):
        recall.add(broken())
    assert len(recall) == 0


def test_metadata_that_is_changed_later_does_no_harm() -> None:
    metadata = {"page": 1}
    recall = recall_of(Entry("a", "cat", metadata=metadata))
    metadata["page"] = 2
    assert recall.remove(["a"]) == 1
    recall.check()


def test_one_id_is_not_taken_for_several() -> None:
    recall = recall_of(Entry("a", "one"), Entry("b", "two"), Entry("ab", "three"))
    with pytest.raises(TypeError):
        recall.remove("ab")


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("top_k", [0, -1, -(10**30)])
def test_top_k_must_be_positive(top_k: int) -> None:
    recall = recall_of(Entry("a", "cat", session="s"))
    for ask in (recall.search, recall.sessions):
        with pytest.raises(InvalidInput, match="top_k"):
            ask("cat", top_k)
    with pytest.raises(InvalidInput, match="top_k"):
        recall.why_not("cat", "a", top_k)


@pytest.mark.parametrize("top_k", [1.5, "3", None])
def test_top_k_must_be_a_whole_number(top_k: Any) -> None:
    with pytest.raises(TypeError):
        recall_of(Entry("a", "cat")).search("cat", top_k)


def test_top_k_is_checked_even_if_there_is_nothing_to_find() -> None:
    recall = recall_of()
    for call in (lambda: recall.sessions("cat", 0), lambda: recall.why_not("cat", "a", 0)):
        with pytest.raises(InvalidInput, match="top_k"):
            call()


@pytest.mark.parametrize("question", [None, 5, b"cat", ["cat"]])
def test_a_question_must_be_a_str(question: Any) -> None:
    recall = recall_of(Entry("a", "cat", session="s"))
    for ask in (recall.search, recall.sessions):
        with pytest.raises(TypeError, match="question"):
            ask(question)
    with pytest.raises(TypeError, match="question"):
        recall.why_not(question, "a")


@pytest.mark.parametrize("now", [float("nan"), float("inf"), 1e18, -1e15])
def test_a_moment_outside_the_calendar_is_refused_clearly(now: float) -> None:
    with pytest.raises(InvalidInput, match="now"):
        recall_of(Entry("a", "cat")).search("cat", now=now)


def test_as_many_as_asked_for_come_and_no_more() -> None:
    recall = recall_of(*(Entry(str(n), f"cat {n}") for n in range(20)))
    assert len(recall.search("cat")) == 10
    assert len(recall.search("cat", 3)) == 3
    assert len(recall.search("cat", 10**12)) == 20


# -- order -----------------------------------------------------------------------------------------


def test_equals_come_newest_first() -> None:
    recall = recall_of(*(Entry(str(n), "the very same words") for n in range(9)))
    assert found(recall, "same words") == list("876543210")
    recall.remove(["4", "6"])
    recall.add([Entry("4", "the very same words")])
    assert found(recall, "same words") == list("48753210")


def test_the_same_question_gets_the_same_answer() -> None:
    words = ["cat", "dog", "tea", "rain", "Paris"]
    chance = random.Random(5)
    entries = [
        Entry(str(n), " ".join(chance.choices(words, k=4)), session=str(n % 9)) for n in range(1100)
    ]
    one, other = recall_of(*entries), recall_of(*entries)
    for question in ("cat and dog", "tea in the rain", "Paris Paris cat"):
        assert one.search(question, 1100) == one.search(question, 1100)
        assert one.search(question, 1100) == other.search(question, 1100)
        assert one.search(question, 5) == one.search(question, 1100)[:5]


def test_scores_never_rise_down_the_list() -> None:
    recall = recall_of(*(Entry(str(n), "cat " * (n % 5 + 1) + f"w{n}") for n in range(50)))
    scores = [hit.score for hit in recall.search("cat w7", 50)]
    assert scores == sorted(scores, reverse=True)


# -- a recall equals a new one ---------------------------------------------------------------------

_TEXTS = (
    "the cat sleeps",
    "Paris in the rain",
    "is it tea?",
    "Always use tea, never coffee",
    "we met in Paris yesterday",
    "I love the cat",
    "三只猫在喝茶",
    "",
    "cat cat cat cat tea tea Paris",
)
_QUESTIONS = (
    "where is the cat?",
    "what did Ann say about Paris?",
    "how many cats do I have?",
    "what did we do yesterday?",
    "推荐一种茶",
    'who said "the cat sleeps"?',
    "Old Mill",
    "",
)
_FEW = replace(default_ranking(), whole=4, candidates=2)  # so that only some are looked at


def hits_of(
    recall: Recall, question: str, ranking: Ranking | None = None
) -> list[tuple[str, float]]:
    hits = recall.search(question, 1000, now=NOW, ranking=ranking)
    return [(hit.id, hit.score) for hit in hits]


_NUMBERS = st.integers(0, 19).map(str)
_ENTRIES = st.builds(
    Entry,
    _NUMBERS,
    st.sampled_from(_TEXTS),
    session=st.sampled_from([None, "s", "t"]),
    speaker=st.sampled_from([None, "Ann", "Bob"]),
    role=st.sampled_from([None, "user", "assistant"]),
    title=st.sampled_from([None, "Old Mill", "Paris"]),
    time=st.sampled_from([None, NOW - DAY, NOW - 40 * DAY, 1e300]),
    importance=st.sampled_from([0.0, 0.5, 1.0, 7.0]),
    marks=st.sampled_from([frozenset(), frozenset({"pin"})]),
    metadata=st.sampled_from([None, {"k": 1}, {"k": True}]),
)


class RecallBesideANewOne(RuleBasedStateMachine):
    """Whatever has happened to a recall, it answers like one that knows the survivors alone."""

    def __init__(self) -> None:
        super().__init__()
        self.recall = recall_of()
        self.survivors: dict[str, Entry] = {}
        self.has_replaced = False

    @initialize(entries=st.lists(_ENTRIES, max_size=12))
    def begin(self, entries: list[Entry]) -> None:
        self.add(entries)

    @rule(entries=st.lists(_ENTRIES, max_size=4))
    def add(self, entries: list[Entry]) -> None:
        batch = {entry.id: entry for entry in entries}
        new = self.recall.add(entries)
        assert new == len(batch.keys() - self.survivors.keys())
        for entry in batch.values():
            old = self.survivors.get(entry.id)
            self.has_replaced |= old is not None
            if old is not None and old.session != entry.session:
                del self.survivors[entry.id]  # who goes elsewhere comes last there
            self.survivors[entry.id] = entry

    @rule(entry_ids=st.lists(_NUMBERS, max_size=3))
    def remove(self, entry_ids: list[str]) -> None:
        gone = self.survivors.keys() & set(entry_ids)
        assert self.recall.remove(entry_ids) == len(gone)
        for entry_id in gone:
            del self.survivors[entry_id]

    @rule(question=st.sampled_from(_QUESTIONS))
    def search(self, question: str) -> None:
        fresh = recall_of(*self.survivors.values())
        assert hits_of(self.recall, question) == hits_of(fresh, question)

    @precondition(lambda self: not self.has_replaced)  # it is the newest among equals at the cut
    @rule(question=st.sampled_from(_QUESTIONS))
    def search_few_candidates(self, question: str) -> None:
        fresh = recall_of(*self.survivors.values())
        assert hits_of(self.recall, question, _FEW) == hits_of(fresh, question, _FEW)

    @invariant()
    def is_sound(self) -> None:
        self.recall.check()
        assert len(self.recall) == len(self.survivors)
        assert all(self.recall.get(each) == entry for each, entry in self.survivors.items())


TestRecallBesideANewOne = RecallBesideANewOne.TestCase
TestRecallBesideANewOne.settings = settings(max_examples=100, stateful_step_count=15)


# -- filters ---------------------------------------------------------------------------------------

_NARROWINGS = st.builds(
    Only,
    ids=st.none() | st.frozensets(_NUMBERS, max_size=6),
    session=st.sampled_from([None, None, "s", "t", "nobody's"]),
    speaker=st.sampled_from([None, None, "Ann"]),
    role=st.sampled_from([None, None, "user"]),
    kind=st.sampled_from([None, "message", "fact"]),
    marks=st.sampled_from([frozenset(), frozenset({"pin", "other"})]),
    without=st.sampled_from([frozenset(), frozenset({"pin"})]),
    since=st.sampled_from([None, None, NOW - 2 * DAY]),
    until=st.sampled_from([None, None, NOW]),
    metadata=st.sampled_from([None, None, {"k": 1}, {"k": True}, {"missing": None}]),
)


@given(
    st.lists(_ENTRIES, max_size=30),
    _NARROWINGS,
    st.sampled_from(_QUESTIONS),
    st.sampled_from([None, _FEW]),
)
def test_a_search_returns_nothing_that_is_refused(
    entries: list[Entry], only: Only, question: str, ranking: Ranking | None
) -> None:
    recall = recall_of(*entries)
    for hit in recall.search(question, 100, only=only, ranking=ranking):
        assert only.refusal(hit.entry) is None
    for session in recall.sessions(question, 100, only=only, ranking=ranking):
        assert all(only.refusal(hit.entry) is None for hit in session.best)


@given(st.lists(_ENTRIES, max_size=30), _NARROWINGS, st.sampled_from(_QUESTIONS))
def test_whoever_is_allowed_and_found_without_a_filter_is_found_with_it(
    entries: list[Entry], only: Only, question: str
) -> None:
    recall = recall_of(*(replace(entry, title=None) for entry in entries))
    free = {hit.id for hit in recall.search(question, 100) if only.refusal(hit.entry) is None}
    assert {hit.id for hit in recall.search(question, 100, only=only)} == free


def crowd() -> list[Entry]:
    """More than are all looked at, all of them better than the few that are asked for."""
    return [
        Entry(str(n), "cat cat cat tea", session=f"s{n % 50}", speaker="Bob", time=NOW - n)
        for n in range(1300)
    ]


_FEW_ASKED = {
    "ids": Only(ids=frozenset({"best", "good", "nobody"})),
    "session": Only(session="mine"),
    "speaker": Only(speaker="Ann"),
    "role": Only(role="user"),
    "kind": Only(kind="fact"),
    "marks": Only(marks=frozenset({"pin", "unheard of"})),
    "since": Only(since=NOW + 1),
    "metadata": Only(metadata={"page": 3, "is_new": True}),
}


@pytest.mark.parametrize("only", _FEW_ASKED.values(), ids=_FEW_ASKED)
def test_few_allowed_among_many_are_found(only: Only) -> None:
    common = {
        "session": "mine",
        "speaker": "Ann",
        "role": "user",
        "kind": "fact",
        "marks": frozenset({"pin"}),
        "time": NOW + 2,
        "metadata": {"page": 3, "is_new": True, "more": "x"},
    }
    best = Entry("best", "a cat drinks tea", **common)  # type: ignore[arg-type]
    good = Entry("good", "a cat far from anything else that anybody asked for", **common)  # type: ignore[arg-type]
    recall = recall_of(best, good, *crowd())
    assert ids(recall.search("cat tea", 5, only=only)) == ["best", "good"]


def test_a_filter_to_a_part_that_is_still_large_finds_the_best_of_it() -> None:
    weak = "a cat among so many other words that it says next to nothing"
    part = [Entry(f"weak{n}", weak, marks=frozenset({"part"})) for n in range(1100)]
    best = Entry("best", f"{weak} but tea", marks=frozenset({"part"}))
    recall = recall_of(best, *part, *crowd())
    hits = recall.search("cat tea", 1000, only=Only(marks=frozenset({"part"})))
    assert hits[0].id == "best"
    assert len(hits) >= 300
    assert all("part" in hit.entry.marks for hit in hits)
    rest = recall.search("cat tea", 1000, only=Only(without=frozenset({"part"})))
    assert rest
    assert not any("part" in hit.entry.marks for hit in rest)


def test_since_is_included_and_until_is_not() -> None:
    recall = recall_of(*(Entry(str(n), "cat", time=float(n)) for n in range(5)), Entry("-", "cat"))
    assert set(found(recall, "cat", since=1.0, until=3.0)) == {"1", "2"}
    assert set(found(recall, "cat", until=1.0)) == {"0"}


def test_true_is_not_one_in_metadata() -> None:
    recall = recall_of(
        Entry("one", "cat", metadata={"k": 1}),
        Entry("true", "cat", metadata={"k": True}),
        Entry("none", "cat", metadata={"k": None}),
        Entry("nothing", "cat"),
    )
    assert found(recall, "cat", metadata={"k": 1}) == ["one"]
    assert found(recall, "cat", metadata={"k": True}) == ["true"]
    assert found(recall, "cat", metadata={"k": None}) == ["none"]


def test_a_filter_that_nobody_passes_finds_nobody() -> None:
    recall = recall_of(*crowd())
    assert found(recall, "cat", session="nobody's") == []
    assert found(recall, "cat", ids=frozenset()) == []
    assert recall.sessions("cat", only=Only(speaker="nobody")) == []


def test_a_time_that_is_none_cannot_be_asked_for() -> None:
    with pytest.raises(InvalidInput, match="since"):
        Only(since=float("nan"))
    with pytest.raises(InvalidInput, match="until"):
        Only(until=float("nan"))
    with pytest.raises(TypeError, match="since"):
        Only(since="yesterday")  # type: ignore[arg-type]


# -- languages and oddities ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("我昨天在北京吃了烤鸭", "在哪里吃烤鸭？"),
        ("明日は東京で会議があります", "東京の会議はいつ？"),
        ("우리는 서울에서 만났습니다", "서울에서 누구를 만났나요?"),
        ("التقينا في القاهرة أمس", "أين القاهرة"),
        ("встреча в Москве", "где встреча?"),
        ("let's celebrate 🎉🎂", "🎂"),
        ("def parse_config(path: str) -> dict: ...", "parse_config"),
        ("the getUserName() call fails with E1234", "where is E1234"),
        ("x", "x"),
        ("猫", "猫"),
    ],
)
def test_every_language_is_found(text: str, question: str) -> None:
    others = ["nothing of the kind", "完全无关的内容", "まったく別の話", "لا شيء", "совсем другое"]
    recall = recall_of(Entry("it", text), *(Entry(str(n), each) for n, each in enumerate(others)))
    assert recall.search(question)[0].id == "it"


_ODD = (
    "",
    " ",
    "\t\n\u3000",
    "the of and",
    "的了是",
    "?",
    "？！。",
    '"',
    '""',
    "“”",
    "[" * 50,
    "(" * 50,
    "\ud800",
    "a \udfff b",
    "\x00\x01\x7f",
    "\u202e\u200b\ufeff",
    "e\u0301\u0301\u0301",
    "🏳️‍🌈👩‍👩‍👧",
    "İstanbul ﬁ ß ſ",
    "99999999999999999999999999",
    "1/1/1 0/0/0 31.2.9999 9999-12-31 0001-01-01",
    "in 99999999999999 days",
    "%s {} \\ (?P<x>",
    "I",
    "a" * 300,
)


@pytest.mark.parametrize("odd", _ODD, ids=ascii)
def test_odd_texts_and_questions_do_no_harm(odd: str) -> None:
    plain = Entry("plain", "the cat sleeps", session="s", speaker="Ann", role="user", time=NOW)
    strange = Entry("odd", odd, session="s", speaker=odd, role="user", title=odd, time=NOW)
    recall = recall_of(plain, strange)
    recall.check()
    for question in (odd, f"cat {odd}", f"{odd} cat"):
        recall.search(question, explain=True)
        recall.sessions(question)
        recall.why_not(question, "odd")
    assert "plain" in found(recall, f"cat {odd}")
    assert recall.remove(["odd"]) == 1
    assert found(recall, "cat") == ["plain"]


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_text_and_no_question_raises(text: str, question: str) -> None:
    recall = recall_of(
        Entry("a", text, session="s", speaker=text, title=text, role="user", time=NOW),
        Entry("b", f"{text} {question}", session="s", time=0.0),
    )
    for hit in recall.search(question, explain=True):
        assert hit.why is not None
        assert sum(hit.why.signals.values()) == pytest.approx(hit.score)


@pytest.mark.parametrize("question", ["", " ", "\n\t", "?!", "…"])
def test_a_question_without_words_finds_nothing(question: str) -> None:
    recall = recall_of(Entry("a", "the cat"), Entry("b", ""), Entry("c", " ?"))
    assert recall.search(question) == []
    assert recall.sessions(question) == []


def test_one_emoji_is_not_taken_for_another() -> None:
    recall = recall_of(Entry("heart", "so nice \u2764\ufe0f"))
    assert recall.search("\u2b50\ufe0f") == []


def test_stop_words_alone_are_words_as_well() -> None:
    recall = recall_of(Entry("a", "to be or not to be"), Entry("b", "cat tea"))
    assert found(recall, "to be or not to be") == ["a"]


@pytest.mark.parametrize("unit", ["word ", "长", "(", "x", '"', "7 ", "me "])
def test_long_texts_and_questions_are_read(unit: str) -> None:
    long = (unit * 100_000)[:100_000]
    recall = recall_of(Entry("long", f"umbrella {long}", role="user", time=NOW), Entry("b", "tea"))
    assert found(recall, "umbrella") == ["long"]
    assert "b" in found(recall, f"tea {long}")


@pytest.mark.parametrize("time", [0.0, -1e11, -1e300, 1e300, 10**308, 253402300799.9])
def test_any_finite_time_can_be_kept(time: float) -> None:
    recall = recall_of(Entry("a", "we met yesterday, next year again", time=time))
    assert found(recall, "who met?") == ["a"]
    assert found(recall, "what was last week?") in ([], ["a"])
    assert "from" in str(recall.why_not("met", "a", only=Only(since=time, until=time)).detail)


# -- sessions --------------------------------------------------------------------------------------


def test_sessions_come_in_the_order_of_their_best() -> None:
    recall = recall_of(
        Entry("t1", "we talked about tea", session="tea"),
        Entry("n", "a cat, but in no session"),
        Entry("c1", "my cat sleeps on the sofa", session="cats"),
        Entry("c2", "the cat and the sofa", session="cats"),
        Entry("x", "nothing", session="other"),
        Entry("t2", "and a cat came in", session="tea"),
    )
    sessions = recall.sessions("where does the cat sleep? on the sofa?")
    assert [each.session for each in sessions] == ["cats", "tea"]
    for each in sessions:
        assert each.score == each.best[0].score
        assert {hit.entry.session for hit in each.best} == {each.session}
        scores = [hit.score for hit in each.best]
        assert scores == sorted(scores, reverse=True)


def test_sessions_are_bounded_and_so_is_what_they_show() -> None:
    recall = recall_of(
        *(Entry(f"{s}{n}", "cat tea", session=f"s{s}") for s in range(9) for n in range(6))
    )
    assert len(recall.sessions("cat")) == 5
    assert len(recall.sessions("cat", 2)) == 2
    assert len(recall.sessions("cat", 100)) == 9
    assert all(len(each.best) == 3 for each in recall.sessions("cat", 100))


def test_a_session_goes_with_its_last_entry() -> None:
    recall = recall_of(Entry("a", "cat", session="s"), Entry("b", "cat", session="t"))
    recall.remove(["a"])
    assert [each.session for each in recall.sessions("cat")] == ["t"]
    recall.add([Entry("a", "a cat again", session="s")])
    assert {each.session for each in recall.sessions("cat")} == {"s", "t"}
    recall.check()


def test_sessions_explain_themselves_if_asked() -> None:
    recall = recall_of(Entry("a", "cat", session="s"))
    assert recall.sessions("cat")[0].best[0].why is None
    why = recall.sessions("cat", explain=True)[0].best[0].why
    assert why is not None
    assert why.ranks == {"words": 1}
