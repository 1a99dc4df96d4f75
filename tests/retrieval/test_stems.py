"""Words of one meaning have one stem, whatever was read before and however it is read."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.retrieval import tokens
from memoryspace.retrieval.text.analysis import analyse
from memoryspace.retrieval.text.hashing import hash_all, token_hash
from memoryspace.retrieval.text.stems import Stems, stems_for


@pytest.mark.parametrize(
    ("forms"),
    [
        ["memory", "memories", "Memory's", "MEMORIES"],
        ["connect", "connected", "connecting", "connections"],
        ["книга", "книги", "книгами"],
        ["γάτα", "γάτες"],
        ["मकान", "मकानों"],
        ["كتاب", "الكتاب"],
        ["e-mail", "emails", "E-Mails"],
    ],
)
def test_forms_of_a_word_share_their_stem(forms: list[str]) -> None:
    assert len({tokens(form)[0] for form in forms}) == 1


@pytest.mark.parametrize("word", ["1990s", "gpt4s", "foo.bars", "v1.2s", "מלכים", "cars" * 20])
def test_what_is_no_word_of_a_known_language_stays_as_it_is(word: str) -> None:
    assert tokens(word)[0] == word


def test_the_language_of_latin_words_is_a_choice() -> None:
    assert tokens("Häuser", "german") == tokens("Haus", "german")
    assert tokens("Häuser") != tokens("Haus")
    assert tokens("memories книги", None) == ["memories", "книги"]


@pytest.mark.parametrize("language", ["klingon", "", "persian"])
def test_an_unknown_language_is_refused_with_those_there_are(language: str) -> None:
    with pytest.raises(InvalidInput, match=r"no stemmer for .*english.*None"):
        Stems(language)


@given(st.lists(st.lists(st.text("aeinsgd", min_size=1, max_size=7), max_size=8), max_size=5))
def test_what_was_read_before_does_not_matter(batches: list[list[str]]) -> None:
    stems = Stems("english")
    for batch in batches:
        found = stems.replace(hash_all(batch), lambda at, of=batch: [of[i] for i in at.tolist()])
        assert found.tolist() == [token_hash(stems.stem(word)) for word in batch]


def test_words_that_push_each_other_out_of_the_memory_keep_their_stems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memoryspace.retrieval.text.stems._REMEMBERED", 2)
    stems = Stems("english")
    text = ["running houses memories", "houses walked cats running"]
    for word in " ".join(text).split() * 2:
        batch = [word, "dogs", word]
        found = stems.replace(hash_all(batch), lambda at, of=batch: [of[i] for i in at.tolist()])
        assert found.tolist() == [token_hash(stems.stem(each)) for each in batch]


def test_only_words_not_seen_lately_are_cut_out() -> None:
    stems = Stems("english")
    asked: list[int] = []

    def cut(at: object) -> list[str]:
        asked.extend(at.tolist())  # type: ignore[attr-defined]
        return ["cats", "dogs"][: len(asked)]

    hashes = hash_all(["cats", "dogs", "cats"])
    first = stems.replace(hashes, lambda at: [["cats", "dogs", "cats"][i] for i in at.tolist()])
    assert (stems.replace(hashes, cut) == first).all()
    assert asked == []


def test_threads_may_share_the_stemmers() -> None:
    texts = [f"{word}s {word}ing {word}ed" for word in ("walk", "talk", "jump", "paint")] * 50
    expected = sorted(analyse(texts).hashes.tolist())
    found: list[list[int]] = []

    def work() -> None:
        found.extend(sorted(analyse(texts).hashes.tolist()) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 80
    assert stems_for("english") is stems_for("english")


@pytest.mark.parametrize("word", ["memories", "x", "猫", "1990s", "long" * 30_000])
def test_the_hash_of_a_stem_is_that_of_its_letters(word: str) -> None:
    stems = stems_for("english")
    assert stems.stem_hash(word) == token_hash(stems.stem(word))
