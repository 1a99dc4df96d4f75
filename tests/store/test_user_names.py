"""The names of users that backends in this process keep in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryspace.store import users
from memoryspace.store.users import UserNames, cursor_after, user_before

names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=3)


@given(st.lists(names), st.lists(names), names)
def test_names_are_what_a_sorted_set_would_be(came: list[str], went: list[str], at: str) -> None:
    held, model = UserNames(), set[str]()
    for name in came:
        if name not in model:
            held.add(name)
            model.add(name)
    for name in went:
        if name in model:
            held.remove(name)
            model.remove(name)
    assert list(held.after("")) == sorted(model)
    assert list(held.after(at)) == [name for name in sorted(model) if name > at]


def test_many_names_stand_in_short_lists() -> None:
    held, many = UserNames(), [f"{number * 7919 % 10_007:05}" for number in range(10_007)]
    for name in many:
        held.add(name)
    assert list(held.after("")) == sorted(many)
    assert max(map(len, held._buckets)) <= 2 * users._BUCKET
    for name in many[:10_000]:
        held.remove(name)
    assert list(held.after("")) == sorted(many[10_000:])


@given(names)
def test_a_cursor_leads_back_to_its_user(user: str) -> None:
    assert user_before(cursor_after(user)) == user
