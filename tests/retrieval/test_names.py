"""What entries are called, and the bridges that names make between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from memoryspace.retrieval.ranking.bridging import Bridges, by_row, trust_in
from memoryspace.retrieval.ranking.names import Mentions, TitleNames, mentions_in, name_of


def names_of(*titles: str | None) -> TitleNames:
    names = TitleNames()
    for row, title in enumerate(titles):
        names.add(row, title)
    return names


def rows_in(names: TitleNames, text: str) -> set[int]:
    return {row for name in names.within(text) for row in names.rows(name)}


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Kotka", ("Kotka",)),
        ("The Silent Harbour", ("The", "Silent", "Harbour")),
        ("Mercury (planet)", ("Mercury",)),
        ("水星（行星）", ("水", "星")),
        ("Mercury (planet) notes", ("Mercury", "planet", "notes")),
        ("Jean-Luc O'Neil", ("Jean", "Luc", "O", "Neil")),
        ("2001: A Space Odyssey", ("2001", "A", "Space", "Odyssey")),
        ("北京", ("北", "京")),
        ("東京タワー", ("東", "京", "タ", "ワ", "ー")),
        ("한강", ("한", "강")),
    ],
)
def test_a_title_is_read_as_words(title: str, name: tuple[str, ...]) -> None:
    assert name_of(title) == name


@pytest.mark.parametrize("title", [None, "", " ", "?!", "It", "The Who", "(only a remark)", "的"])
def test_what_would_stand_in_every_text_is_no_name(title: str | None) -> None:
    assert name_of(title) == ()


@pytest.mark.parametrize("sign", ["(", " ", "(a", "Word ", "（"])
def test_a_long_title_is_cut(sign: str) -> None:
    assert len(name_of("Name " + sign * 50_000)) <= 12


def test_a_name_is_found_within_a_text() -> None:
    names = names_of("Kotka", "The Silent Harbour", "北京", None)
    assert rows_in(names, "shot in Kotka, for The Silent Harbour.") == {0, 1}
    assert rows_in(names, "我在北京吃饭") == {2}
    assert rows_in(names, "Kotkan satama, the silent harbour, 北方 京都") == set()
    assert rows_in(names, "") == set()


def test_a_name_is_found_in_its_own_case_only() -> None:
    names = names_of("Rose", "iPod")
    assert rows_in(names, "a rose is no iPod") == set()
    assert rows_in(names, "Rose came") == {0}


def test_names_within_names_are_all_found() -> None:
    names = names_of("New York", "New York City", "York")
    assert rows_in(names, "in New York City") == {0, 1, 2}
    assert rows_in(names, "in New York") == {0, 2}


def test_several_may_have_one_name() -> None:
    names = names_of("Mercury (planet)", "Mercury (god)", "Venus")
    assert rows_in(names, "Mercury rises") == {0, 1}
    names.remove(0, "Mercury (planet)")
    assert rows_in(names, "Mercury rises") == {1}
    names.remove(1, "Mercury (god)")
    assert rows_in(names, "Mercury rises") == set()
    assert len(names) == 1


def test_what_a_row_names_is_known_anew_after_every_change() -> None:
    texts = {0: "Kotka and Oulu", 1: "nothing"}
    names = names_of("Kotka")
    assert set(names.within_row(0, texts.__getitem__)) == {("Kotka",)}
    names.add(1, "Oulu")
    assert set(names.within_row(0, texts.__getitem__)) == {("Kotka",), ("Oulu",)}
    names.remove(0, "Kotka")
    texts[0] = "only Oulu"
    names.add(0, None)
    assert set(names.within_row(0, texts.__getitem__)) == {("Oulu",)}


def test_a_row_given_out_again_is_read_anew() -> None:
    names = names_of("Kotka", None)
    assert set(names.within_row(1, lambda row: "about Kotka")) == {("Kotka",)}
    names.remove(1, None)
    names.add(1, None)
    assert set(names.within_row(1, lambda row: "about nothing")) == set()


_TITLES = st.sampled_from(
    [None, "Kotka", "New York", "New York City", "York", "York (band)", "北京", "京", "It", "a b"]
)
_TEXT = "It was in New York City, not York or Kotka. 我在北京 a b"


class NamesBesideAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.names = TitleNames()
        self.titles: dict[int, str | None] = {}

    @rule(row=st.integers(0, 6), title=_TITLES)
    def put(self, row: int, title: str | None) -> None:
        if row in self.titles:
            self.names.remove(row, self.titles[row])
        self.names.add(row, title)
        self.titles[row] = title

    @rule(row=st.integers(0, 6))
    def drop(self, row: int) -> None:
        if row in self.titles:
            self.names.remove(row, self.titles.pop(row))

    @rule(row=st.integers(0, 6))
    def look(self, row: int) -> None:
        fresh = TitleNames()
        for each, title in self.titles.items():
            fresh.add(each, title)
        assert len(self.names) == len(fresh)
        assert rows_in(self.names, _TEXT) == rows_in(fresh, _TEXT)
        known = set(self.names.within_row(row, lambda row: _TEXT))
        assert known == set(fresh.within(_TEXT))


TestNamesBesideAList = NamesBesideAList.TestCase
TestNamesBesideAList.settings = settings(max_examples=50)


# -- names anywhere --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("built by Rask Brothers in Kotka.", ["Rask Brothers", "Kotka"]),
        ("Rain fell. Snow fell on Ulysses S. Grant.", ["Rain", "Ulysses S. Grant"]),
        ("The Duke of York met Marks & Spencer", ["Duke of York", "Marks & Spencer"]),
        ("at Élodie's, by Łódź, with Анна Каренина", ["Élodie", "Łódź", "Анна Каренина"]),
        ("他演过《青河往事》和「雨」", ["青河往事"]),
        ("nothing at all, I think. It was. He is", []),
    ],
)
def test_a_text_speaks_of_names(text: str, spoken: list[str]) -> None:
    assert list(mentions_in(text)) == spoken


def test_a_name_is_looked_up_by_the_words_that_tell() -> None:
    assert mentions_in("by Ulysses S. Grant, the Duke of York")["Ulysses S. Grant"] == (
        "ulysses",
        "grant",
    )
    assert mentions_in("he saw Jack's Place of Tea")["Jack's Place of Tea"] == (
        "jack",
        "place",
        "tea",
    )


def test_only_the_first_names_of_a_text_count() -> None:
    many = " and ".join(f"Name{n} Long" for n in range(100))
    assert list(mentions_in(many)) == [f"Name{n} Long" for n in range(20)]


def test_what_a_row_speaks_of_is_remembered_until_it_is_forgotten() -> None:
    spoken = Mentions()
    assert list(spoken.within_row(0, lambda row: "in Kotka")) == ["Kotka"]
    assert list(spoken.within_row(0, lambda row: "in Oulu")) == ["Kotka"]
    spoken.forget(0)
    assert list(spoken.within_row(0, lambda row: "in Oulu")) == ["Oulu"]


# -- bridges ---------------------------------------------------------------------------------------

_TEXTS = {
    0: "A film shot in Kotka.",
    1: "A port, twin town of Oulu.",
    2: "A town in the north. Oulu is cold.",
    3: "Nothing to do with Film One, or Film One.",
}


def bridges() -> Bridges:
    return Bridges(names_of("Film One", "Kotka", "Oulu"), _TEXTS.__getitem__)


def test_a_question_names_entries() -> None:
    assert bridges().named_in("was Film One shot in Oulu?") == {0: 1.0, 2: 1.0}
    assert bridges().named_in("was it?") == {}
    assert Bridges(TitleNames(), _TEXTS.__getitem__).named_in("Film One") == {}


def test_a_name_that_very_many_have_tells_nobody_apart() -> None:
    diaries = Bridges(names_of(*["Diary"] * 500, "Kotka"), lambda row: "Diary, Kotka")
    assert diaries.named_in("what is in the Diary of Kotka?") == {500: 1.0}
    assert diaries.named_by({0: 1.0}) == {500: 1.0}


def test_the_best_name_others_as_far_as_they_are_trusted() -> None:
    assert bridges().named_by({0: 1.0, 1: 0.25}) == {1: 1.0, 2: 0.25}
    assert bridges().named_by({2: 1.0}) == {}  # its own name is no bridge
    assert bridges().named_by({}) == {}


def test_the_most_trusted_of_those_who_name_it_counts() -> None:
    both = Bridges(names_of("Kotka"), {1: "Kotka", 2: "Kotka"}.__getitem__)
    assert both.named_by({1: 0.3, 2: 0.8}) == {0: 0.8}


def test_whoever_names_the_best_is_found() -> None:
    assert bridges().naming([0, 1, 2, 3], {1: 1.0, 0: 0.5}) == {0: 1.0, 3: 0.5}
    assert bridges().naming([2], {2: 1.0}) == {}
    assert bridges().naming([], {2: 1.0}) == {}


def test_trust_is_the_square_of_the_share() -> None:
    rows, totals = np.array([7, 8, 9]), np.array([2.0, 4.0, -1.0])
    assert trust_in(rows, totals, 10) == {8: 1.0, 7: 0.25, 9: 0.0}
    assert trust_in(rows, totals, 1) == {8: 1.0}


def test_nobody_is_trusted_where_nobody_has_any() -> None:
    assert trust_in(np.array([], np.int64), np.array([]), 5) == {}
    assert trust_in(np.array([1, 2]), np.array([0.0, 0.0]), 5) == {1: 0.0, 2: 0.0}
    assert trust_in(np.array([1]), np.array([-2.0]), 5) == {1: 0.0}


def test_values_stand_by_row() -> None:
    rows = np.array([1, 3, 5])
    assert by_row(rows, {3: 0.5, 9: 1.0, 1: 0.25}).tolist() == [0.25, 0.5, 0.0]
    assert by_row(rows, {}).tolist() == [0.0, 0.0, 0.0]
    assert by_row(rows, {0: 1.0, 2: 1.0}).tolist() == [0.0, 0.0, 0.0]
    assert by_row(np.array([], np.int64), {1: 1.0}).tolist() == []
