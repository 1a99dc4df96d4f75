"""What an answer is to be: three ways to say it, one schema, one check, and errors without text."""

from __future__ import annotations

import json
import traceback
from enum import Enum
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from memoryspace.errors import InvalidInput, WrongForm
from memoryspace.model import json_schema_of, validated
from memoryspace.model.schemas import closed, is_open

SECRET = "the user's own words"


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Step(BaseModel):
    title: str
    minutes: int = 5


class Plan(BaseModel):
    goal: str = Field(max_length=100)
    mood: Mood = Mood.GOOD
    steps: list[Step] = []

    @field_validator("goal")
    @classmethod
    def _polite(cls, goal: str) -> str:
        if "!" in goal:
            raise ValueError(f"no shouting: {goal}")
        return goal


class StructStep(msgspec.Struct):
    title: str
    minutes: int = 5


class StructPlan(msgspec.Struct, forbid_unknown_fields=True):
    goal: str
    mood: Literal["good", "bad"] = "good"
    steps: list[StructStep] = []


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "mood": {"enum": ["good", "bad"]},
        "steps": {"type": "array", "items": {"$ref": "#/$defs/Step"}},
    },
    "required": ["goal"],
    "additionalProperties": False,
    "$defs": {
        "Step": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "minutes": {"type": ["integer", "null"]}},
            "required": ["title"],
        }
    },
}
FORMS: list[Any] = [Plan, StructPlan, SCHEMA]
each_form = pytest.mark.parametrize("form", FORMS, ids=["pydantic", "msgspec", "schema"])
GOOD = {"goal": "rest", "mood": "bad", "steps": [{"title": "sit down", "minutes": 3}]}


@each_form
def test_a_good_document_comes_back_whole(form: Any) -> None:
    assert validated(form, GOOD) == GOOD


@each_form
def test_the_schema_is_an_object_that_json_can_hold_and_that_names_its_members(form: Any) -> None:
    schema = json_schema_of(form)
    assert schema["type"] == "object"
    assert list(schema["properties"]) == ["goal", "mood", "steps"]
    assert schema["required"] == ["goal"]
    assert json.loads(json.dumps(schema)) == schema


@each_form
def test_a_good_document_is_of_its_own_schema(form: Any) -> None:
    assert validated(json_schema_of(form), GOOD) == GOOD
    assert validated(closed(json_schema_of(form)), GOOD) == GOOD


@each_form
@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"mood": SECRET, "goal": "x"}, "$.mood"),
        ({"goal": [SECRET]}, "$.goal"),
        ({"goal": "x", "steps": SECRET}, "$.steps"),
        ({"goal": "x", "steps": [{"title": "a"}, {"title": {SECRET: SECRET}}]}, "$.steps[1].title"),
        ({"steps": []}, "goal"),
        ([SECRET], "$"),
        (SECRET, "$"),
        (None, "$"),
    ],
)
def test_a_wrong_document_is_told_by_its_place_and_never_quoted(
    form: Any, document: Any, place: str
) -> None:
    with pytest.raises(WrongForm) as caught:
        validated(form, document)
    assert place in str(caught.value)
    assert isinstance(caught.value, InvalidInput)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "name", [SECRET, f"x - at `$.{SECRET}", f"` - at `$.goal.{SECRET}", "Expected `" + SECRET]
)
def test_an_unknown_name_is_never_quoted(name: str) -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="forbid")
        counts: dict[str, int] = {}

    for form, document in (
        (StructPlan, {"goal": "x", name: 1}),
        (SCHEMA, {"goal": "x", name: 1}),
        (Open, {name: 1}),
        (Open, {"counts": {name: "many"}}),
    ):
        with pytest.raises(WrongForm) as caught:
            validated(form, document)  # type: ignore[arg-type]  # one of three kinds
        assert SECRET not in str(caught.value)


def test_a_class_that_checks_by_itself_may_quote_but_the_error_does_not() -> None:
    with pytest.raises(WrongForm, match=r"\$\.goal value_error") as caught:
        validated(Plan, {"goal": SECRET + "!"})
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_what_is_left_out_gets_the_defaults_of_its_class() -> None:
    full = {"goal": "rest", "mood": "good", "steps": []}
    assert validated(Plan, {"goal": "rest"}) == full
    assert validated(StructPlan, {"goal": "rest"}) == full
    assert validated(SCHEMA, {"goal": "rest"}) == {"goal": "rest"}


def test_the_result_can_build_the_class_again_by_the_names_of_the_schema() -> None:
    class Aliased(BaseModel):
        next_step: str = Field(alias="nextStep")

    found = validated(Aliased, {"nextStep": "go"})
    assert found == {"nextStep": "go"}
    assert list(json_schema_of(Aliased)["properties"]) == ["nextStep"]
    assert Aliased(**found).next_step == "go"


def test_what_is_no_object_in_json_is_refused() -> None:
    for wrong in (int, list[int], object()):
        with pytest.raises(TypeError, match="structured_model must be"):
            json_schema_of(wrong)  # type: ignore[arg-type]  # that is the point


def test_titles_of_classes_go_and_members_of_that_name_stay() -> None:
    text = json.dumps(json_schema_of(Plan))
    assert "Plan" not in text
    assert '"title": {"type": "string"}' in text


class Tree(msgspec.Struct):
    name: str
    default: int = 0
    branches: list[Tree] = []


class PydanticTree(BaseModel):
    name: str
    default: int = 0
    branches: list[PydanticTree] = []


@pytest.mark.parametrize("form", [Tree, PydanticTree])
def test_a_tree_refers_to_itself_and_is_checked_to_its_leaves(form: Any) -> None:
    schema = closed(json_schema_of(form))
    leaf = {"name": "leaf", "default": 1, "branches": []}
    assert validated(schema, {**leaf, "branches": [leaf]})["branches"] == [leaf]
    with pytest.raises(WrongForm, match=r"\$\.branches\[0\]\.branches\[0\]\.name"):
        validated(schema, {**leaf, "branches": [{**leaf, "branches": [{**leaf, "name": 1}]}]})


def test_a_closed_schema_leaves_nothing_out_and_keeps_members_named_like_its_words() -> None:
    schema = closed(json_schema_of(Tree))
    tree = schema["$defs"]["Tree"] if "$ref" in schema else schema
    assert tree["required"] == ["name", "default", "branches"]
    assert tree["additionalProperties"] is False
    assert "default" not in tree["properties"]["branches"]


@pytest.mark.parametrize(
    ("schema", "is_it"),
    [
        (SCHEMA, False),
        ({"type": "object"}, True),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, True),
        ({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}, True),
        ({"type": "object", "properties": {"additionalProperties": {"type": "string"}}}, False),
    ],
)
def test_a_schema_with_members_it_does_not_name_is_open(schema: Any, is_it: bool) -> None:
    assert is_open(schema) is is_it


@pytest.mark.parametrize(
    ("schema", "value", "is_of_it"),
    [
        ({"type": "integer"}, 1.0, True),
        ({"type": "integer"}, 1.5, False),
        ({"type": "integer"}, float("inf"), False),
        ({"type": "integer"}, 10**400, True),
        ({"type": "number"}, True, False),
        ({"type": "boolean"}, True, True),
        ({"const": 1}, 2, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, False),
        ({"oneOf": [{"type": "string"}]}, 1, False),
        ({"allOf": [{"type": "string"}, {"enum": ["a"]}]}, "b", False),
        ({"$ref": "#/$defs/nowhere"}, 1, True),
        ({"$ref": "#/properties/value"}, 1, True),
        ({"type": "of a later draft"}, 1, True),
        (False, 1, False),
        (True, 1, True),
    ],
)
def test_the_words_of_a_schema_mean_what_they_should(
    schema: Any, value: Any, is_of_it: bool
) -> None:
    whole = {"type": "object", "properties": {"value": schema}}
    if is_of_it:
        assert validated(whole, {"value": value}) == {"value": value}
    else:
        with pytest.raises(WrongForm, match=r"\$\.value"):
            validated(whole, {"value": value})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
members = st.sampled_from(["goal", "mood", "steps", "title", "x"])


@given(document=st.dictionaries(members, json_values) | json_values)
def test_any_document_is_of_the_form_or_wrong_form_is_raised(document: Any) -> None:
    for form in FORMS:
        try:
            found = validated(form, document)
        except WrongForm:
            continue
        assert json.loads(json.dumps(found)) == found
        assert validated(form, found) == found
