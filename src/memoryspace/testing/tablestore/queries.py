"""Query evaluation of the fake Tablestore: which rows match, and their scores."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tablestore import FieldType, VectorMetricType

from .tables import Columns, Key, refused

Scores: TypeAlias = dict[Key, float]

_WORDS = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SATURATION, _LENGTH = 1.2, 0.75  # of BM25


def words_of(text: str) -> list[str]:
    """Return the words of a text; in Chinese, Japanese and Korean, each character."""
    return _WORDS.findall(_IDEOGRAPHS.sub(r" \g<0> ", text.lower()))


class Searching:
    """One query over the rows of an index."""

    def __init__(self, fields: Mapping[str, Any], rows: Mapping[Key, Columns]) -> None:
        self._fields = fields
        self._rows = rows

    def run(self, query: Any) -> Scores:
        """Return the rows that match, each with its score."""
        kind = type(query).__name__
        if kind not in _KINDS:
            raise refused("OTSParameterInvalid", f"this fake does not support {kind}")
        return _KINDS[kind](self, query)

    def match(self, query: Any) -> Scores:
        """Score the words of a field by BM25; one matching word is enough."""
        name = self._checked(query.field_name, FieldType.TEXT)
        texts = {key: words_of(row[name]) for key, row in self._rows.items() if row.get(name)}
        wanted = set(words_of(query.text))
        average = sum(map(len, texts.values())) / max(1, len(texts))
        seen_in = Counter(word for words in texts.values() for word in wanted & set(words))
        scores = {}
        for key, words in texts.items():
            counts = Counter(word for word in words if word in wanted)
            if counts:
                norm = _SATURATION * (1 - _LENGTH + _LENGTH * len(words) / average)
                scores[key] = sum(
                    _rarity(len(texts), seen_in[word]) * n * (_SATURATION + 1) / (n + norm)
                    for word, n in counts.items()
                )
        return scores

    def phrase(self, query: Any) -> Scores:
        """Match consecutive words."""
        name = self._checked(query.field_name, FieldType.TEXT)
        wanted = f" {' '.join(words_of(query.text))} "
        return {
            key: 1.0
            for key, row in self._rows.items()
            if wanted.strip() and wanted in f" {' '.join(words_of(row.get(name) or ''))} "
        }

    def everything(self, query: Any) -> Scores:
        """Match all rows."""
        return dict.fromkeys(self._rows, 1.0)

    def term(self, query: Any) -> Scores:
        """Match one value of a field."""
        return self._where(query.field_name, lambda value: value == query.column_value)

    def terms(self, query: Any) -> Scores:
        """Match any of several values of a field."""
        return self._where(query.field_name, lambda value: value in query.column_values)

    def exists(self, query: Any) -> Scores:
        """Match rows that have a field."""
        return self._where(query.field_name, lambda value: True)

    def range(self, query: Any) -> Scores:
        """Match a range of values of a field."""

        def fits(value: Any) -> bool:
            low, high = query.range_from, query.range_to
            if low is not None and (value < low or (value == low and not query.include_lower)):
                return False
            return high is None or value < high or (value == high and bool(query.include_upper))

        return self._where(query.field_name, fits)

    def all_of(self, query: Any) -> Scores:
        """Combine queries: must, filter, should, must not."""
        must = [self.run(each) for each in query.must_queries]
        should = [self.run(each) for each in query.should_queries]
        required = [*must, *(self.run(each) for each in query.filter_queries)]
        least = query.minimum_should_match
        least = (0 if required else min(1, len(should))) if least is None else least
        refused_keys = {key for each in query.must_not_queries for key in self.run(each)}
        return {
            key: sum(each.get(key, 0.0) for each in [*must, *should])
            for key in self._rows
            if key not in refused_keys
            and all(key in each for each in required)
            and sum(key in each for each in should) >= least
        }

    def nearest(self, query: Any) -> Scores:
        """Return the rows with the nearest vectors among those that pass the filter."""
        name = self._checked(query.field_name, FieldType.VECTOR)
        options = self._fields[name].vector_options
        wanted = list(query.float32_query_vector)
        if len(wanted) != options.dimension:
            raise refused("OTSParameterInvalid", f"vector dimension must be {options.dimension}")
        passed = self._rows if query.filter is None else self.run(query.filter)
        scored = {
            key: _likeness(options.metric_type, wanted, json.loads(self._rows[key][name]))
            for key in passed
            if self._rows[key].get(name)
        }
        best = sorted(scored, key=lambda key: (-scored[key], key))[: query.top_k]
        return {key: scored[key] for key in best}

    def _where(self, field: str, fits: Callable[[Any], bool]) -> Scores:
        name = self._checked(field)
        return {
            key: 1.0
            for key, row in self._rows.items()
            if row.get(name) is not None and fits(row[name])
        }

    def _checked(self, field: str, kind: Any = None) -> str:
        if field not in self._fields or kind not in (None, self._fields[field].field_type):
            raise refused("OTSParameterInvalid", f"field [{field}] is not indexed for this query")
        return field


_KINDS: Mapping[str, Callable[[Searching, Any], Scores]] = {
    "MatchQuery": Searching.match,
    "MatchPhraseQuery": Searching.phrase,
    "MatchAllQuery": Searching.everything,
    "TermQuery": Searching.term,
    "TermsQuery": Searching.terms,
    "ExistsQuery": Searching.exists,
    "RangeQuery": Searching.range,
    "BoolQuery": Searching.all_of,
    "KnnVectorQuery": Searching.nearest,
}


def _rarity(total: int, having: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def _likeness(metric: Any, one: Sequence[float], other: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    if metric == VectorMetricType.VM_DOT_PRODUCT:
        return dot
    if metric == VectorMetricType.VM_EUCLIDEAN:
        return 1 / (1 + sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))
    lengths = math.hypot(*one) * math.hypot(*other)
    return (1 + (dot / lengths if lengths else 0.0)) / 2
