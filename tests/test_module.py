from pathlib import Path
from typing import Any

import pytest

from memoryspace.module import StateModule, load_together


class Counter(StateModule):
    def __init__(self, count: int = 0) -> None:
        super().__init__()
        self.count = count
        self.register_state("count", custom_from_json=int)


class Agent(StateModule):
    def __init__(self, name: str = "agent") -> None:
        super().__init__()
        self.name = name
        self.tags: Any = ["a"]
        self.register_state("name")
        self.register_state("tags", custom_from_json=list)
        self.first = Counter(1)
        self.second = Counter(2)


STATE = {"first": {"count": 1}, "second": {"count": 2}, "name": "agent", "tags": ["a"]}


def test_a_state_holds_the_children_first_and_then_the_attributes() -> None:
    state = Agent().state_dict()
    assert state == STATE
    assert list(state) == ["first", "second", "name", "tags"]


def test_an_attribute_that_is_not_registered_is_no_part_of_the_state() -> None:
    agent: Any = Agent()
    agent.secret = object()
    assert agent.state_dict() == STATE


def test_a_state_can_be_put_back_into_another_object() -> None:
    agent, other = Agent("alice"), Agent("bob")
    agent.first.count, agent.tags = 7, ["x", "y"]
    other.load_state_dict(agent.state_dict())
    assert other.state_dict() == agent.state_dict()
    assert other.first is not agent.first


def test_converters_are_used_both_ways() -> None:
    module: Any = StateModule()
    module.seen = {3, 1}
    module.register_state("seen", custom_to_json=sorted, custom_from_json=set)
    assert module.state_dict() == {"seen": [1, 3]}
    module.load_state_dict({"seen": [5, 5]})
    assert module.seen == {5}


def test_registering_again_replaces_the_converters() -> None:
    module: Any = StateModule()
    module.count = 1
    module.register_state("count", custom_to_json=str)
    module.register_state("count")
    assert module.state_dict() == {"count": 1}


def test_only_an_attribute_that_exists_can_be_registered() -> None:
    module = StateModule()
    with pytest.raises(AttributeError, match="missing"):
        module.register_state("missing")
    assert module.state_dict() == {}


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", {(1, 2): 3}])
def test_a_value_that_json_cannot_write_needs_a_converter(value: Any) -> None:
    module: Any = StateModule()
    module.value = value
    with pytest.raises(TypeError, match="value"):
        module.register_state("value")
    module.register_state("value", custom_to_json=repr)
    assert module.state_dict() == {"value": repr(value)}


def test_a_value_that_contains_itself_needs_a_converter() -> None:
    module: Any = StateModule()
    module.value = []
    module.value.append(module.value)
    with pytest.raises(TypeError, match="value"):
        module.register_state("value")
    assert module.state_dict() == {}


def test_a_child_cannot_be_registered_as_an_attribute() -> None:
    agent = Agent()
    with pytest.raises(ValueError, match="first"):
        agent.register_state("first")
    assert agent.state_dict() == STATE


def test_a_child_needs_the_parent_to_be_initialised_first() -> None:
    class Hasty(StateModule):
        def __init__(self) -> None:
            self.child = Counter()
            super().__init__()

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\).*Hasty.*'child'"):
        Hasty()


def test_a_deleted_attribute_leaves_the_state() -> None:
    agent = Agent()
    del agent.first
    del agent.name
    assert agent.state_dict() == {"second": {"count": 2}, "tags": ["a"]}
    agent.load_state_dict(agent.state_dict())
    assert not hasattr(agent, "name")


def test_deleting_what_is_not_there_changes_nothing() -> None:
    agent: Any = Agent()
    with pytest.raises(AttributeError):
        del agent.nothing
    assert agent.state_dict() == STATE


def test_a_replaced_child_is_no_longer_part_of_the_state() -> None:
    agent: Any = Agent()
    agent.first = None
    assert "first" not in agent.state_dict()
    agent.load_state_dict(agent.state_dict())
    assert agent.first is None


def test_a_child_replaced_by_another_is_the_one_that_is_saved() -> None:
    agent = Agent()
    agent.first = Counter(9)
    assert agent.state_dict()["first"] == {"count": 9}


def test_children_inside_lists_are_not_tracked() -> None:
    agent: Any = Agent()
    agent.others = [Counter()]
    assert agent.state_dict() == STATE


@pytest.mark.parametrize("missing", list(STATE))
def test_a_missing_key_is_an_error_when_strict(missing: str) -> None:
    agent = Agent("before")
    state = {key: value for key, value in STATE.items() if key != missing}
    with pytest.raises(KeyError, match=missing):
        agent.load_state_dict(state)
    assert agent.state_dict() == {**STATE, "name": "before"}


@pytest.mark.parametrize("missing", list(STATE))
def test_a_missing_key_is_left_alone_when_not_strict(missing: str) -> None:
    agent = Agent("before")
    agent.first.count = agent.second.count = 5
    agent.tags = ["before"]
    before = agent.state_dict()
    agent.load_state_dict({key: STATE[key] for key in STATE if key != missing}, strict=False)
    assert agent.state_dict() == {**STATE, missing: before[missing]}


def test_strictness_is_handed_down_to_children() -> None:
    agent = Agent()
    state = {**STATE, "first": {}, "second": {"count": 8}}
    with pytest.raises(KeyError, match="count"):
        agent.load_state_dict(state)
    assert agent.state_dict() == STATE
    agent.load_state_dict(state, strict=False)
    assert (agent.first.count, agent.second.count) == (1, 8)


def test_extra_keys_are_ignored() -> None:
    agent = Agent()
    agent.load_state_dict({**STATE, "name": "new", "unknown": 1})
    assert agent.state_dict() == {**STATE, "name": "new"}
    assert not hasattr(agent, "unknown")


@pytest.mark.parametrize(
    "wrong",
    [{"second": {"count": "many"}}, {"second": {}}, {"second": None}, {"tags": None}],
    ids=["child value", "child key", "no child", "own value"],
)
def test_a_failing_load_leaves_everything_as_it_was(wrong: dict[str, Any]) -> None:
    agent = Agent("before")
    agent.first.count = agent.second.count = 5
    before = agent.state_dict()
    with pytest.raises((KeyError, TypeError, ValueError)):
        agent.load_state_dict({**STATE, **wrong})
    assert agent.state_dict() == before


def test_a_failure_far_down_is_undone_everywhere() -> None:
    root: Any = StateModule()
    root.left, root.right = Agent("left"), Agent("right")
    before = root.state_dict()
    state = {"left": {**STATE, "name": "new"}, "right": {**STATE, "second": {"count": "x"}}}
    with pytest.raises(ValueError, match="x"):
        root.load_state_dict(state)
    assert root.state_dict() == before


def test_loading_together_loads_the_names_that_are_there() -> None:
    one, two = Counter(1), Counter(2)
    load_together({"one": one, "two": two}, {"two": {"count": 9}, "three": {"count": 3}})
    assert (one.count, two.count) == (1, 9)


def test_loading_together_puts_the_others_back_if_one_fails() -> None:
    one, agent, three = Counter(1), Agent("before"), Counter(3)
    states = {"one": {"count": 8}, "agent": {**STATE, "name": "new"}, "three": {"count": "x"}}
    with pytest.raises(ValueError, match="x"):
        load_together({"one": one, "agent": agent, "three": three}, states)
    assert (one.count, three.count) == (1, 3)
    assert agent.state_dict() == {**STATE, "name": "before"}


def test_loading_together_may_leave_missing_keys_alone() -> None:
    one, agent = Counter(1), Agent("before")
    with pytest.raises(KeyError, match="count"):
        load_together({"agent": agent, "one": one}, {"agent": STATE, "one": {}})
    assert agent.name == "before"
    load_together({"agent": agent, "one": one}, {"agent": STATE, "one": {}}, strict=False)
    assert (agent.name, one.count) == ("agent", 1)


def test_a_module_in_place_of_a_registered_attribute_takes_its_place_in_the_state() -> None:
    class Holder(StateModule):
        def __init__(self) -> None:
            super().__init__()
            self.part: object = 1
            self.register_state("part")

    holder = Holder()
    holder.part = Holder()
    assert holder.state_dict() == {"part": {"part": 1}}


def test_a_setter_that_refuses_undoes_the_whole_load() -> None:
    class Picky(StateModule):
        def __init__(self) -> None:
            super().__init__()
            self.first = 1
            self._second = 2
            self.register_state("first")
            self.register_state("second")

        @property
        def second(self) -> int:
            return self._second

        @second.setter
        def second(self, value: int) -> None:
            if value < 0:
                raise ValueError(value)
            self._second = value

    picky = Picky()
    with pytest.raises(ValueError, match="-1"):
        picky.load_state_dict({"first": 9, "second": -1})
    assert (picky.first, picky.second) == (1, 2)


def test_undoing_keeps_a_value_that_json_would_change() -> None:
    class Located(StateModule):
        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path
            self.register_state("path", custom_to_json=str)

    one, two = Located(Path("/one")), Located(Path("/two"))
    with pytest.raises(KeyError):
        load_together({"one": one, "two": two}, {"one": {"path": "/x"}, "two": {}})
    assert one.path == Path("/one")
