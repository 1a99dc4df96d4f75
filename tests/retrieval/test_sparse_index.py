"""The sparse index ranks like a from-scratch BM25, whatever came and went before."""

from __future__ import annotations

import gc
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memoryspace.errors import InvalidInput
from memoryspace.retrieval import SparseIndex, tokens
from memoryspace.retrieval.sparse.documents import Documents
from memoryspace.retrieval.sparse.query import _highest
from memoryspace.retrieval.sparse.runs import invert
from memoryspace.retrieval.text.analysis import Analysis
from memoryspace.retrieval.text.stopwords import query_words

K1, B = 1.2, 0.75


def query_tokens(query: str) -> list[str]:
    return [tokens(word)[0] for word in query_words(query)]


def bm25(documents: dict[int, str], query: str, k1: float = K1, b: float = B) -> dict[int, float]:
    """Score every document by the book."""
    words = {key: Counter(tokens(text)) for key, text in documents.items()}
    lengths = {key: sum(count.values()) for key, count in words.items()}
    average = sum(lengths.values()) / len(lengths) if any(lengths.values()) else 1.0
    scores: dict[int, float] = {}
    for word, repeats in Counter(query_tokens(query)).items():
        holding = [key for key, count in words.items() if word in count]
        rarity = math.log(1 + (len(words) - len(holding) + 0.5) / (len(holding) + 0.5))
        for key in holding:
            count = words[key][word]
            bound = count + k1 * (1 - b + b * lengths[key] / average)
            scores[key] = scores.get(key, 0.0) + repeats * rarity * count * (k1 + 1) / bound
    return scores


def assert_ranked(found: list[tuple[int, float]], expected: dict[int, float], ages: list[int]):
    """Same documents, same scores, best first, of equals the newer first."""
    assert dict(found) == pytest.approx(expected, rel=1e-9)
    assert len(found) == len(expected)
    place = {key: at for at, key in enumerate(ages)}
    assert found == sorted(found, key=lambda hit: (-hit[1], -place[hit[0]]))


def ticking() -> Callable[[], float]:
    """A clock that moves by one second each time it is read."""
    seconds: Iterator[float] = iter(range(10**9))
    return lambda: next(seconds)


def tiny(segment_size: int = 3) -> SparseIndex:
    """An index that seals, cuts and merges all the time."""
    return SparseIndex(seal_at=200, segment_size=segment_size, clock=ticking())


def add_until_merging(index: SparseIndex, *, documents: int, postings: int) -> None:
    """Add so many documents, and more until a merge is under way with so many postings to go."""
    for key, text in enumerate(zipf_texts(20_000)):
        index.add(key, text)
        if key >= documents and sum(merge.remaining for merge in index._postings.merges) > postings:
            return
    pytest.fail("no merge was under way for long enough to be seen")


def settle(index: SparseIndex) -> None:
    while index.step(1000):
        pass


class AnySequence(RuleBasedStateMachine):
    """Adds, removes, updates, upkeep and searches in any order."""

    WORDS = st.lists(
        st.sampled_from([*"abcdefgh", "猫", "猫狗", "的", "cats", "Cat's", "catName", "the"]),
        max_size=8,
    )

    def __init__(self) -> None:
        super().__init__()
        self.documents: dict[int, str] = {}  # oldest first

    @initialize(segment_size=st.sampled_from([1, 3, 16, 64]))
    def open(self, segment_size: int) -> None:
        self.index = tiny(segment_size)

    @rule(key=st.integers(0, 2**64 - 1) | st.integers(0, 9), words=WORDS)
    def add(self, key: int, words: list[str]) -> None:
        if key in self.documents:
            with pytest.raises(InvalidInput):
                self.index.add(key, "again")
            return
        self.index.add(key, " ".join(words))
        self.documents[key] = " ".join(words)

    @rule(words=st.lists(WORDS, min_size=5, max_size=30), first=st.integers(10, 10**6))
    def add_many(self, words: list[list[str]], first: int) -> None:
        for key, each in enumerate(words, first):
            self.update(key, each)

    @rule(key=st.integers(0, 9), words=WORDS)
    def update(self, key: int, words: list[str]) -> None:
        self.index.update(key, " ".join(words))
        self.documents.pop(key, None)
        self.documents[key] = " ".join(words)

    @precondition(lambda self: self.documents)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.documents)))
        assert self.index.remove(key)
        assert not self.index.remove(key)
        del self.documents[key]

    @rule(share=st.integers(1, 4))
    def remove_many(self, share: int) -> None:
        for key in list(self.documents)[::share]:
            assert self.index.remove(key)
            del self.documents[key]

    @rule(seconds=st.integers(0, 5))
    def upkeep(self, seconds: int) -> None:
        self.index.step(seconds)

    @rule(words=WORDS, exact=st.booleans())
    def search(self, words: list[str], exact: bool) -> None:
        query = " ".join(words)
        found = self.index.search(query, 10_000, exact=exact)
        assert_ranked(found, bm25(self.documents, query), list(self.documents))

    @rule(words=WORDS, top_k=st.integers(1, 5), odd=st.booleans())
    def search_filtered(self, words: list[str], top_k: int, odd: bool) -> None:
        query = " ".join(words)
        found = self.index.search(query, top_k, allow=lambda key: key % 2 == odd)
        everything = self.index.search(query, 10_000)
        assert found == [hit for hit in everything if hit[0] % 2 == odd][:top_k]

    @rule(words=WORDS, top_k=st.integers(1, 5), allowed=st.lists(st.booleans(), max_size=12))
    def search_masked(self, words: list[str], top_k: int, allowed: list[bool]) -> None:
        query = " ".join(words)
        found = self.index.search(query, top_k, allow=np.array(allowed, np.bool_))
        everything = self.index.search(query, 10_000)
        wanted = {key for key, is_allowed in enumerate(allowed) if is_allowed}
        assert found == [hit for hit in everything if hit[0] in wanted][:top_k]

    @rule(words=WORDS)
    def score(self, words: list[str]) -> None:
        query = " ".join(words)
        keys = np.array([*self.documents, *range(12), *range(5)], np.uint64)
        found = dict(self.index.search(query, 10_000))
        assert self.index.scores(query, keys).tolist() == [found.get(int(k), 0.0) for k in keys]
        for key in list(self.documents)[:3]:
            shares = self.index.matched(query, key)
            assert sum(share for _, share in shares) == pytest.approx(found.get(key, 0.0))

    @invariant()
    def is_sound(self) -> None:
        self.index.check()
        assert len(self.index) == len(self.documents)
        assert all(key in self.index for key in self.documents)


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


def zipf_texts(count: int, seed: int = 1) -> list[str]:
    """Texts in which some words are in nearly every one and most are in few."""
    draw = random.Random(seed)
    return [
        " ".join(f"w{min(int(draw.paretovariate(0.6)), 3000)}" for _ in range(draw.randint(3, 20)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def large() -> tuple[SparseIndex, dict[int, str]]:
    """Enough documents for common words to be pruned."""
    documents = dict(enumerate(zipf_texts(15_000)))
    index = SparseIndex()
    for key, text in documents.items():
        index.add(key, text)
    return index, documents


def test_an_exhaustive_search_of_a_large_index_is_exact(
    large: tuple[SparseIndex, dict[int, str]],
) -> None:
    index, documents = large
    query = "w1 w2 w7 w40"
    expected = bm25(documents, query)
    assert dict(index.search(query, 10**6, exact=True)) == pytest.approx(expected, rel=1e-9)


def test_pruning_finds_nearly_what_an_exhaustive_search_finds(
    large: tuple[SparseIndex, dict[int, str]],
) -> None:
    index, _ = large
    common = 0
    queries = zipf_texts(100, seed=2)
    for query in queries:
        exact = {key for key, _ in index.search(query, 10, exact=True)}
        found = {key for key, _ in index.search(query, 10)}
        assert len(found) == 10
        common += len(exact & found)
    assert common >= 0.95 * 10 * len(queries)


def test_pruned_scores_are_the_exact_ones_also_while_runs_are_merged() -> None:
    index = SparseIndex(seal_at=40_000, segment_size=400, clock=ticking())
    add_until_merging(index, documents=14_000, postings=20_000)
    query = "w1 w2 w3 w900"  # the first two are in more documents than may make candidates
    for _ in range(6):
        assert index.step(4)  # still under way, a little further each time
        exact = dict(index.search(query, 10**6, exact=True))
        pruned = index.search(query, 1000)
        assert {key: exact[key] for key, _ in pruned} == pytest.approx(dict(pruned), rel=1e-9)


def test_common_words_alone_are_answered_and_fill_up_what_rare_ones_leave(
    large: tuple[SparseIndex, dict[int, str]],
) -> None:
    index, documents = large
    assert len(index.search("w1 w2", 10)) == 10
    rarest = min(Counter(word for text in documents.values() for word in text.split()).items())[0]
    assert len(index.search(f"{rarest} w1", 500)) == 500
    assert index.search("w1 w2 w3", 10) == index.search("w1 w2 w3", 10, exact=True)


def test_a_filter_finds_the_few_allowed_ones_however_deep_they_rank(
    large: tuple[SparseIndex, dict[int, str]],
) -> None:
    index, documents = large
    wanted = {key for key, text in documents.items() if key % 2500 == 3 and "w1 " in f"{text} "}
    asked: list[int] = []

    def allow(key: int) -> bool:
        asked.append(key)
        return key in wanted

    found = index.search("w1 w2 w777", 5, allow=allow)
    assert len(found) == min(5, len(wanted)) > 0
    assert {key for key, _ in found} <= wanted
    assert len(asked) == len(set(asked))


def test_equal_texts_rank_newer_first_even_where_the_cut_falls_between_them() -> None:
    index = SparseIndex()
    for key in range(50):
        index.add(key, "same words")
    index.update(7, "same words")
    assert [key for key, _ in index.search("same", 3)] == [7, 49, 48]


def test_a_search_sees_what_was_just_added_and_nothing_just_removed() -> None:
    index = SparseIndex()
    for key in range(300):
        index.add(key, f"common unique{key}")
        assert [hit[0] for hit in index.search(f"unique{key}")] == [key]
        index.remove(key)
        assert index.search(f"unique{key}") == []
        if key % 2:
            index.add(key, "common other")
    index.check()
    assert len(index) == 150


def test_endless_coming_and_going_keeps_numbers_and_memory_bounded() -> None:
    index = SparseIndex(seal_at=2000, segment_size=256)
    texts = zipf_texts(500)
    for key in range(500):
        index.add(key, texts[key % 500])
    slots = []
    for key in range(500, 12_000):
        index.add(key, texts[key % 500])
        assert index.remove(key - 500)
        slots.append(index._documents.used_slots)
    settle(index)
    index.check()
    assert slots[-1] <= 1.05 * slots[len(slots) // 2] < 5 * 500
    fresh = SparseIndex()
    for key in range(11_500, 12_000):
        fresh.add(key, texts[key % 500])
    fresh.search("w1")
    assert index.nbytes < 5 * fresh.nbytes
    assert index.search("w5 w9", 1000, exact=True) == fresh.search("w5 w9", 1000, exact=True)


def test_a_run_that_is_mostly_dead_is_rewritten_without_any_new_document() -> None:
    index = SparseIndex()
    for key, text in enumerate(zipf_texts(5000)):
        index.add(key, text)
    index.search("w1")
    settle(index)
    before = sum(run.nbytes for run in index._postings.runs.values())
    for key in range(4900):
        index.remove(key)
    settle(index)
    index.check()
    assert sum(run.nbytes for run in index._postings.runs.values()) < before / 10
    assert index._documents.free_slots >= 4900 - 1024
    assert len(index) == 100


@pytest.mark.parametrize("segment_size", [2, 16, 64])
@pytest.mark.parametrize("seed", range(2))
def test_every_step_of_every_merge_is_sound(segment_size: int, seed: int) -> None:
    draw = random.Random(seed)
    index = tiny(segment_size)
    living: list[int] = []
    for key, text in enumerate(zipf_texts(150, seed)):
        index.add(key, text)
        living.append(key)
        if draw.random() < 0.4:
            index.remove(living.pop(draw.randrange(len(living))))
        if draw.random() < 0.2:
            index.step(draw.randrange(4))
            index.check()
    index.check()
    assert len(index) == len(living)


def test_an_emptied_index_keeps_no_postings() -> None:
    index = tiny()
    for key in range(300):
        index.add(key, f"some text {key}")
    for key in range(300):
        index.remove(key)
    assert index.search("some text") == []
    settle(index)
    index.check()
    assert index._postings.runs == {}
    assert len(index) == 0


def test_hashes_that_differ_in_their_last_bits_alone_are_kept_apart() -> None:
    hashes = np.array([7, 5, 6, 5, 7, 5], np.uint64)
    analysis = Analysis(hashes, np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 2]))
    segment = invert(analysis, np.array([10, 20, 30], np.uint32))
    assert segment is not None
    assert segment.terms.tolist() == [5, 6, 7]
    assert segment.starts.tolist() == [0, 3, 4, 6]
    assert segment.slots.tolist() == [10, 20, 30, 20, 10, 30]
    assert segment.counts.tolist() == [1] * 6


def test_runs_stay_few_however_documents_come() -> None:
    index = SparseIndex()
    for key, text in enumerate(zipf_texts(2000)):
        index.add(key, text)
        if key % 3 == 0:
            index.search("w2")
    assert len(index._postings.runs) < 40


def test_no_call_moves_more_than_a_bounded_number_of_postings() -> None:
    index = SparseIndex(seal_at=1000, segment_size=64)
    before = 0
    for key, text in enumerate(zipf_texts(4000)):
        index.add(key, text)
        for merge in index._postings.merges:
            assert all(segment.size <= 64 for segment in merge.output.segments)
        moving = sum(merge.remaining for merge in index._postings.merges)
        before = max(before, moving)
    assert before > 10 * 64  # some merge was too big for one call, so it went on over many
    index.check()


def test_columns_are_widened_a_little_with_every_batch() -> None:
    documents = Documents()
    for first in range(0, 3000, 10):
        room, copied = len(documents.keys), documents._copied
        documents.seal(range(first, first + 10), np.ones(10, np.int64), 0)
        documents.check()
        if len(documents.keys) > room:  # the wider ones took over: nearly all was copied before
            assert room - copied <= 4 * 10
    assert len(documents.keys) >= 3000


def test_nothing_in_the_index_is_an_object_the_collector_has_to_visit() -> None:
    index = SparseIndex()
    texts = zipf_texts(20_000)
    gc.collect()
    before = len(gc.get_objects())
    for key, text in enumerate(texts):
        index.add(key, text)
    index.search("w1")
    gc.collect()
    assert len(gc.get_objects()) - before < 1000


def test_megabytes_emptiness_and_oddities_are_texts_too() -> None:
    index = SparseIndex()
    index.add(1, "supercalifragilistic " * 50_000 + "needle")
    index.add(2, "")
    index.add(3, "\0\ud800")
    index.add(2**64 - 1, "needle")
    assert [key for key, _ in index.search("needle \ud800")] == [2**64 - 1, 1]
    assert index.search("") == index.search("\ud800") == []
    as_long = {1: "w " * 50_000 + "needle", 2: "", 3: "", 4: "needle"}
    found = dict(index.search("supercalifragilistic"))
    assert found == pytest.approx(bm25(as_long, "w"), rel=1e-9)
    assert index.remove(2)
    index.check()


@given(st.floats(0, 5), st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_the_constants_of_bm25_are_the_callers_choice(k1: float, b: float) -> None:
    documents = dict(enumerate(zipf_texts(60)))
    index = SparseIndex(k1=k1, b=b, seal_at=300)
    for key, text in documents.items():
        index.add(key, text)
    for key in range(0, 60, 7):
        index.remove(key)
        del documents[key]
    found = index.search("w1 w2 w2 w9", 100)
    assert dict(found) == pytest.approx(bm25(documents, "w1 w2 w2 w9", k1, b), rel=1e-9)


def test_upkeep_ends_with_its_time_and_says_whether_there_is_more() -> None:
    index = SparseIndex(seal_at=1000, segment_size=64, clock=ticking())
    add_until_merging(index, documents=500, postings=1000)
    assert index.step(0)
    assert index.step(3)
    settle(index)
    assert not index.step(0)
    index.check()


@pytest.mark.parametrize("key", ["1", 1.0, None, True])
def test_a_key_that_is_no_int_is_refused(key: object) -> None:
    with pytest.raises(TypeError, match="key must be an int"):
        SparseIndex().add(key, "text")  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [-1, 2**64])
def test_a_key_beyond_64_bits_is_refused(key: int) -> None:
    with pytest.raises(InvalidInput, match="64 bits"):
        SparseIndex().add(key, "text")


def test_a_refused_update_leaves_the_old_text() -> None:
    index = SparseIndex()
    index.add(1, "old")
    with pytest.raises(TypeError, match="key 1 must be a str"):
        index.update(1, b"new")  # type: ignore[arg-type]
    assert [key for key, _ in index.search("old")] == [1]


def test_who_may_hold_all_of_some_words_is_told() -> None:
    index = SparseIndex()
    for key in range(20):
        index.add(key, f"common {'even' if key % 2 == 0 else 'odd'} {'rare' if key < 3 else ''}")
    index.remove(2)
    groups = [("common", "rare"), ("even", "rare"), ("nowhere", "rare"), ("even", "odd"), ()]
    found = [set(keys) for keys in index.holders(groups, 5)]
    assert found[0] == {0, 1}
    assert {0} <= found[1] <= {0, 1}  # two are few enough to look no further
    assert found[2:] == [set(), set(), set()]
    assert index.holders([("common",)], 5) == [[]]  # too many to tell
    assert index.holders([], 5) == []


def test_unusable_options_are_refused() -> None:
    for options in ({"k1": -1.0}, {"b": 1.5}, {"k1": math.nan}, {"seal_at": 0}):
        with pytest.raises(InvalidInput):
            SparseIndex(**options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="top_k"):
        SparseIndex().search("a", 0)
    with pytest.raises(TypeError, match="query"):
        SparseIndex().search(None)  # type: ignore[arg-type]


def test_a_filter_that_fails_leaves_the_index_as_it_was() -> None:
    index = SparseIndex()
    index.add(1, "text")

    def broken(key: int) -> bool:
        raise RuntimeError(key)

    with pytest.raises(RuntimeError):
        index.search("text", allow=broken)
    index.check()
    assert [key for key, _ in index.search("text")] == [1]


def indexed(*texts: str) -> SparseIndex:
    index = SparseIndex()
    for key, text in enumerate(texts):
        index.add(key, text)
    return index


def keys_of(found: list[tuple[int, float]]) -> list[int]:
    return [key for key, _ in found]


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("Ann's memories of the sea", ["memory", "ann", "Ann’s", "MEMORIES"]),
        ("def getUserName(self)", ["getUserName", "user name", "username get", "getusername"]),
        ("the user_id column", ["user_id", "userId", "user-id", "user id"]),
        ("it costs 1,000 or 3.14", ["1000", "1,000", "3.14"]),
        ("seen on 2023-05-07", ["2023-05-07", "2023", "07"]),
        ("write to ann@example.com", ["ann@example.com", "example.com", "ann"]),
        ("猫在家里睡觉", ["猫", "睡觉", "猫睡觉"]),
        ("ネコが好き", ["ネコ", "好き"]),
        ("고양이가 잔다", ["고양이", "잔다"]),
        ("الكتاب على الطاولة", ["كتاب", "الطاولة"]),
        ("кошки спят", ["кошка", "кошками"]),
        ("x", ["x", "X"]),
        ("needle " + "hay " * 25_000, ["needle", "needles"]),
        ("party 🎉 time", ["party 🎉", "parties"]),
    ],
)
def test_a_text_is_found_by_what_a_reader_would_ask(text: str, queries: list[str]) -> None:
    index = indexed("something else entirely 我", text, "and more of that 你")
    for query in queries:
        assert keys_of(index.search(query))[:1] == [1], query


def test_the_exact_name_ranks_before_names_that_share_its_parts() -> None:
    index = indexed("getUserName()", "user name get", "setUserName", "userName", "getUserNames(x)")
    assert keys_of(index.search("getUserName"))[:2] == [0, 4]  # a plural is the same word
    assert set(keys_of(index.search("user name"))) == {0, 1, 2, 3, 4}


def test_words_that_say_nothing_are_left_out_of_a_query_that_says_something() -> None:
    index = indexed("what is the matter with you", "zebras", "the zebra is in the house")
    assert set(keys_of(index.search("what is the zebra"))) == {1, 2}
    assert index.search("what is the zebra") == index.search("zebra")
    assert set(index.weights("what is the zebra")) == {"zebra"}


@pytest.mark.parametrize("query", ["to be or not to be", "the", "的是"])
def test_a_query_of_such_words_alone_is_asked_as_it_stands(query: str) -> None:
    index = indexed("to be or not to be, the question", "zebra", "这是我的")
    assert index.search(query)


def test_stop_words_are_a_choice() -> None:
    index = SparseIndex(stop_words=())
    index.add(1, "the house")
    assert keys_of(index.search("the zebra")) == [1]
    other = SparseIndex(stop_words={"house"})
    other.add(1, "the house")
    assert other.search("house zebra") == []


def test_any_word_will_do_where_no_document_has_a_telling_one() -> None:
    index = SparseIndex(any_word=True)
    index.add(1, "the house")
    index.add(2, "a zebra")
    assert keys_of(index.search("the scene")) == [1]
    assert keys_of(index.search("the zebra")) == [2]
    assert index.search("scene") == []
    assert keys_of(index.search("the zebra", allow=lambda key: key == 1)) == [1]
    index.remove(2)
    assert keys_of(index.search("the zebra")) == [1]


def test_the_language_is_a_choice() -> None:
    index = SparseIndex(language="german")
    index.add(1, "Die Häuser am See")
    assert keys_of(index.search("Haus")) == [1]
    with pytest.raises(InvalidInput, match="no stemmer for 'klingon'"):
        SparseIndex(language="klingon")


@pytest.mark.parametrize("share", [0.001, 0.05, 0.6])
def test_a_mask_finds_what_an_exhaustive_search_of_the_allowed_finds(
    large: tuple[SparseIndex, dict[int, str]], share: float
) -> None:
    index, documents = large
    allowed = np.random.default_rng(3).random(len(documents) - 100) < share
    wanted = set(np.flatnonzero(allowed).tolist())
    common = total = 0
    for query in [*zipf_texts(30, seed=4), "w1 w2", "w1"]:
        everything = index.search(query, 10**6, exact=True)
        best = [hit for hit in everything if hit[0] in wanted][:10]
        found = index.search(query, 10, allow=allowed)
        assert len(found) == len(best)
        assert set(keys_of(found)) <= wanted
        assert index.search(query, 10, allow=allowed, exact=True) == best
        common += len(set(keys_of(found)) & set(keys_of(best)))
        total += len(best)
    assert common >= (total if share == 0.001 else 0.95 * total)


def test_keys_beyond_a_mask_are_not_allowed() -> None:
    index = indexed("cat", "cat", "cat")
    index.add(2**64 - 1, "cat")
    assert keys_of(index.search("cat", allow=np.array([True, False]))) == [0]
    assert index.search("cat", allow=np.zeros(0, np.bool_)) == []
    assert keys_of(index.search("cat", allow=np.ones(10_000, np.bool_))) == [2, 1, 0]


def test_a_filter_that_is_neither_is_refused() -> None:
    index = indexed("cat")
    with pytest.raises(InvalidInput, match="flat array of bool"):
        index.search("cat", allow=np.array([1, 0]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="allow must be a callable"):
        index.search("cat", allow={0})  # type: ignore[arg-type]


def test_given_documents_score_as_they_would_in_a_search(
    large: tuple[SparseIndex, dict[int, str]],
) -> None:
    index, documents = large
    keys = np.array([5, -1, 10**9, 14_999, 5, *range(0, 15_000, 40)])
    for query in ["w1 w2 w7 w40", "w3", "nothing", ""]:
        expected = dict(index.search(query, 10**6, exact=True))
        scores = index.scores(query, keys)
        assert scores.tolist() == [expected.get(key, 0.0) for key in keys.tolist()]
    assert index.scores("w1", np.zeros(0, np.int64)).tolist() == []
    assert documents[5] in documents.values()


def test_scores_stay_exact_among_the_dead_that_are_not_purged() -> None:
    documents = dict(enumerate(zipf_texts(3000)))
    index = SparseIndex(clock=ticking())
    for key, text in documents.items():
        index.add(key, text)
    index.search("w1")
    for key in [key for key, text in documents.items() if "w5 " in text][::2]:
        index.remove(key)
        del documents[key]
    expected = bm25(documents, "w1 w5 w9")
    keys = np.arange(3000)
    found = dict(zip(keys.tolist(), index.scores("w1 w5 w9", keys).tolist(), strict=True))
    assert {key: score for key, score in found.items() if score} == pytest.approx(expected)


def test_keys_to_score_must_be_ints() -> None:
    with pytest.raises(TypeError, match="flat array of ints"):
        indexed("cat").scores("cat", np.array([0.5]))  # type: ignore[arg-type]


def test_a_hit_says_which_words_of_the_query_it_matched() -> None:
    index = indexed("the cats ran home", "cats and cats", "dogs at home", "more dogs")
    shares = index.matched("Running cat's home, cat zebra", 0)
    assert [word for word, _ in shares] == ["cat", "home"]
    score = dict(index.search("Running cat's home, cat zebra"))[0]
    assert sum(share for _, share in shares) == pytest.approx(score)
    assert index.matched("zebra", 0) == index.matched("cat", 77) == index.matched("", 0) == []


def test_rarer_words_weigh_more_and_unknown_ones_most() -> None:
    index = indexed("cats and dogs", "cats", "cats again")
    weights = index.weights("cats Dogs zebras")
    assert sorted(weights, key=weights.__getitem__) == ["cats", "dogs", "zebras"]
    assert weights["cats"] == pytest.approx(math.log(1 + 0.5 / 3.5))


@pytest.mark.parametrize("top_k", [0, -1])
def test_a_number_of_hits_below_one_is_refused(top_k: int) -> None:
    with pytest.raises(InvalidInput, match="top_k must be 1 or more"):
        indexed("cat").search("cat", top_k)


def test_a_number_of_hits_that_is_no_int_is_refused() -> None:
    with pytest.raises(TypeError):
        indexed("cat").search("cat", 2.5)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3000),
    st.integers(1, 300),
    st.integers(1, 50),
)
def test_the_highest_are_found_with_all_their_equals(
    values: list[int], depth: int, repeats: int
) -> None:
    scores = np.array(values * repeats, np.float64)
    found = _highest(scores, depth)
    lowest = sorted(scores, reverse=True)[: min(depth, len(scores))][-1]
    assert found.tolist() == np.flatnonzero(scores >= lowest).tolist()


def test_keys_far_apart_are_found_as_those_side_by_side() -> None:
    index, far = tiny(), [2**64 - 1, 2**40, 10**6]
    near = list(range(0, 60, 3))
    for key in [*near, *far]:
        name = "q" + str(key).translate(str.maketrans("0123456789", "bcdfghjklm"))
        index.add(key, f"tea {name}")
        assert [found for found, _ in index.search(name)] == [key]
        index.check()
    wanted = np.array([*near, *far, 1, 2**50], np.uint64)
    assert (index.scores("tea", wanted) > 0).tolist() == [True] * (len(near) + 3) + [False] * 2
    index.remove_many(np.array([3, 2**40], np.uint64))
    assert not index.remove(3)
    assert (index.scores("tea", wanted) > 0).sum() == len(near) + 1
    index.check()


def test_a_query_repeated_sees_what_came_and_went_between() -> None:
    index = tiny()
    for key in range(20):
        index.add(key, "tea" if key % 2 else "tea with milk")
    first = dict(index.search("tea milk", 30))
    assert dict(index.search("tea milk", 30)) == first
    index.remove(4)
    assert set(dict(index.search("tea milk", 30))) == set(range(20)) - {4}
    index.add(99, "tea tea milk")
    assert index.search("tea milk", 30)[0][0] == 99
    settle(index)
    again = index.search("tea milk", 30)
    assert dict(index.search("milk tea", 30)) == pytest.approx(dict(again))
    assert index.gains("tea milk", np.array([99, 4, 99])).gains[1].tolist() == [0.0, 0.0]
    twice = index.gains("tea milk", np.array([99, 99])).gains
    assert twice[0].tolist() == twice[1].tolist()
    index.check()
