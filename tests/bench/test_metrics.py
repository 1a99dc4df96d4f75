from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput
from memoryspace.evaluation import all_at, any_at, fraction_at, ndcg_at, reciprocal_rank

RANKED = ["a", "b", "c", "d"]
GOLD = {"b", "d", "x"}


def test_any_wants_one_gold_id_among_the_first_k():
    assert any_at(1, RANKED, GOLD) == 0
    assert any_at(2, RANKED, GOLD) == 1


def test_fraction_counts_each_gold_id_found_and_those_never_ranked():
    assert [fraction_at(k, RANKED, GOLD) for k in (1, 2, 3, 4, 99)] == [
        0,
        1 / 3,
        1 / 3,
        2 / 3,
        2 / 3,
    ]


def test_all_wants_every_gold_id():
    assert all_at(3, RANKED, {"b", "d"}) == 0
    assert all_at(4, RANKED, {"b", "d"}) == 1
    assert all_at(4, RANKED, GOLD) == 0
    assert all_at(1, RANKED, {"a", "b"}) == 0


def test_reciprocal_rank_is_that_of_the_first_gold_id():
    assert reciprocal_rank(RANKED, {"d", "b"}) == 1 / 2
    assert reciprocal_rank(RANKED, {"x"}) == 0
    assert reciprocal_rank([], {"x"}) == 0


def test_ndcg_by_hand():
    second, fourth = 1 / math.log2(3), 1 / math.log2(5)
    ideal_of_two, ideal_of_three = 1 + 1 / math.log2(3), 1 + 1 / math.log2(3) + 1 / 2
    assert ndcg_at(4, RANKED, {"b", "d"}) == pytest.approx((second + fourth) / ideal_of_two)
    assert ndcg_at(3, RANKED, {"b", "d"}) == pytest.approx(second / ideal_of_two)
    assert ndcg_at(4, RANKED, GOLD) == pytest.approx((second + fourth) / ideal_of_three)
    assert ndcg_at(1, RANKED, {"a", "b"}) == 1  # one place, and a gold id on it


def test_gold_given_twice_counts_once():
    assert fraction_at(2, RANKED, ["a", "a", "c"]) == 1 / 2
    assert all_at(1, RANKED, ["a", "a"]) == 1


@pytest.mark.parametrize("metric", [any_at, all_at, fraction_at, ndcg_at])
@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(metric, k):
    with pytest.raises(InvalidInput, match="1 or more"):
        metric(k, RANKED, GOLD)


@pytest.mark.parametrize("metric", [any_at, all_at, fraction_at, ndcg_at])
def test_what_no_mean_may_count_is_refused(metric):
    with pytest.raises(InvalidInput, match="gold is empty"):
        metric(5, RANKED, [])
    with pytest.raises(InvalidInput, match="twice"):
        metric(5, ["a", "a"], {"a"})
    with pytest.raises(TypeError, match="not one string"):
        metric(5, RANKED, "abc")


def test_reciprocal_rank_refuses_empty_gold_and_doubled_ids():
    with pytest.raises(InvalidInput, match="gold is empty"):
        reciprocal_rank(RANKED, [])
    with pytest.raises(InvalidInput, match="twice"):
        reciprocal_rank(["b", "a", "a"], {"a"})


ids = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(ids, ids.filter(len), st.integers(1, 9))
def test_all_never_exceeds_the_fraction_nor_the_fraction_any(ranked, gold, k):
    assert all_at(k, ranked, gold) <= fraction_at(k, ranked, gold) <= any_at(k, ranked, gold)
    assert fraction_at(k, ranked, gold) <= fraction_at(k + 1, ranked, gold)


@given(ids, ids.filter(len), st.integers(1, 9))
def test_ndcg_is_one_exactly_for_a_ranking_with_the_gold_in_front(ranked, gold, k):
    best = min(k, len(gold))
    perfect = len(ranked) >= best and set(ranked[:best]) <= set(gold)
    assert (ndcg_at(k, ranked, gold) > 1 - 1e-9) == perfect
    assert 0 <= ndcg_at(k, ranked, gold) <= 1 + 1e-9
