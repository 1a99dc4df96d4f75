import copy
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidMessage
from memoryspace.message import (
    Base64Source,
    ImageBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    new_id,
)

BASE_57 = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

CALL = ToolUseBlock(type="tool_use", id="1", name="add", input={"a": 1, "b": 2})
RESULT = ToolResultBlock(type="tool_result", id="1", name="add", output="3")
THOUGHT = ThinkingBlock(type="thinking", thinking="let me see")
HELLO = TextBlock(type="text", text="hello")
WORLD = TextBlock(type="text", text="world")
PICTURE = ImageBlock(type="image", source=URLSource(type="url", url="http://x/y.png"))


def blocks() -> list[Any]:
    return copy.deepcopy([THOUGHT, HELLO, CALL, RESULT, WORLD, PICTURE])


def test_a_message_keeps_what_it_was_built_from() -> None:
    content, metadata = blocks(), {"k": [1]}
    msg = Msg("alice", content, "assistant", metadata, "2026-01-02 03:04:05.678", "call-1")
    assert (msg.name, msg.role, msg.timestamp) == ("alice", "assistant", "2026-01-02 03:04:05.678")
    assert msg.content is content
    assert msg.metadata is metadata
    assert msg.invocation_id == "call-1"


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_the_three_roles_are_accepted(role: Any) -> None:
    assert Msg("a", "hi", role).role == role


@pytest.mark.parametrize("role", ["tool", "User", "", None, 1, ["user"]])
def test_any_other_role_is_refused(role: Any) -> None:
    with pytest.raises(InvalidMessage, match="role"):
        Msg("a", "hi", role)


@pytest.mark.parametrize("content", [None, 1, b"hi", ("hi",), {"type": "text"}, iter("hi")])
def test_content_that_is_neither_text_nor_a_list_is_refused(content: Any) -> None:
    with pytest.raises(InvalidMessage, match=type(content).__name__):
        Msg("a", content, "user")
    with pytest.raises(InvalidMessage):
        Msg.from_dict({"name": "a", "content": content, "role": "user"})


def test_a_refused_message_is_an_assertion_error_as_in_agentscope() -> None:
    assert issubclass(InvalidMessage, AssertionError)
    assert issubclass(InvalidMessage, ValueError)


@pytest.mark.parametrize("metadata", [None, {}])
def test_missing_metadata_becomes_a_dict_of_its_own(metadata: dict[str, Any] | None) -> None:
    first, second = Msg("a", "x", "user", metadata), Msg("a", "x", "user", metadata)
    first.metadata["k"] = 1
    assert second.metadata == {}


def test_blocks_are_plain_dicts() -> None:
    source = Base64Source(type="base64", media_type="image/png", data="AA==")
    block = ImageBlock(type="image", source=source)
    assert type(block) is dict
    assert block == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
    }


def test_a_timestamp_is_local_time_in_milliseconds() -> None:
    timestamp = Msg("a", "x", "user").timestamp
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", timestamp)


def test_ids_have_22_signs_of_base_57_and_differ() -> None:
    ids = [new_id() for _ in range(10_000)] + [Msg("a", "x", "user").id for _ in range(100)]
    assert all(len(id_) == 22 and set(id_) <= set(BASE_57) for id_ in ids)
    assert len(set(ids)) == len(ids)


def test_every_sign_of_base_57_is_used() -> None:
    assert set("".join(new_id() for _ in range(1000))) == set(BASE_57)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_makes_other_ids_than_its_parent() -> None:
    program = (
        "import os\n"
        "from memoryspace.message import new_id\n"
        "new_id()\n"
        "child = os.fork()\n"
        "os.write(1, ''.join(new_id() + '\\n' for _ in range(500)).encode())\n"
        "child and os.waitpid(child, 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    ids = run.stdout.decode().split()
    assert len(ids) == len(set(ids)) == 1000


def test_the_id_may_be_set_and_equality_is_identity() -> None:
    first, second = Msg("a", "x", "user"), Msg("a", "x", "user")
    second.id = first.id
    assert first.id == second.id
    assert first != second
    assert len({first, second}) == 2


def test_a_dict_has_the_keys_of_agentscope_in_order() -> None:
    msg = Msg("a", blocks(), "user", {"k": 1})
    data = msg.to_dict()
    assert list(data) == ["id", "name", "role", "content", "metadata", "timestamp"]
    assert data["content"] is msg.content
    assert data["metadata"] is msg.metadata


def test_the_invocation_id_survives_the_round_trip() -> None:
    data = Msg("a", "x", "user", invocation_id="call-7").to_dict()
    assert list(data)[-1] == "invocation_id"
    assert Msg.from_dict(data).invocation_id == "call-7"
    assert Msg.from_dict(Msg("a", "x", "user").to_dict()).invocation_id is None


@given(
    st.text(),
    st.text() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text()})),
    st.sampled_from(["user", "assistant", "system"]),
    st.dictionaries(st.text(), st.none() | st.integers() | st.lists(st.text())),
)
def test_a_message_reads_back_from_its_dict(
    name: str, content: Any, role: Any, metadata: dict[str, Any]
) -> None:
    data = Msg(name, content, role, metadata, invocation_id="i").to_dict()
    assert Msg.from_dict(data).to_dict() == data


def test_a_dict_needs_only_name_content_and_role() -> None:
    first = Msg.from_dict({"name": "a", "content": "x", "role": "user"})
    second = Msg.from_dict({"name": "a", "content": "x", "role": "user", "metadata": None})
    assert len(first.id) == 22
    assert first.id != second.id
    assert first.timestamp
    assert first.metadata == second.metadata == {}


def test_unknown_keys_are_ignored() -> None:
    msg = Msg.from_dict({"name": "a", "content": "x", "role": "user", "type": "msg", "extra": 1})
    assert "extra" not in msg.to_dict()


@pytest.mark.parametrize("missing", ["name", "content", "role"])
def test_a_dict_without_a_needed_key_is_refused_by_name(missing: str) -> None:
    data = {"name": "a", "content": "x", "role": "user"}
    del data[missing]
    with pytest.raises(InvalidMessage, match=missing):
        Msg.from_dict(data)


def test_text_content_is_the_text_or_the_joined_text_blocks() -> None:
    assert Msg("a", "plain", "user").get_text_content() == "plain"
    assert Msg("a", "", "user").get_text_content() == ""
    assert Msg("a", blocks(), "user").get_text_content() == "hello\nworld"
    assert Msg("a", blocks(), "user").get_text_content(separator=" ") == "hello world"


@pytest.mark.parametrize("content", [[], [THOUGHT], [CALL, RESULT, PICTURE]])
def test_text_content_is_none_without_a_text_block(content: list[Any]) -> None:
    assert Msg("a", content, "user").get_text_content() is None


def test_blocks_are_chosen_by_type_or_types() -> None:
    msg = Msg("a", blocks(), "assistant")
    assert msg.get_content_blocks() is msg.content
    assert msg.get_content_blocks("text") == [HELLO, WORLD]
    assert msg.get_content_blocks(["tool_use", "tool_result"]) == [CALL, RESULT]
    assert msg.get_content_blocks("audio") == []
    assert msg.get_content_blocks([]) == []


def test_text_counts_as_one_text_block() -> None:
    msg = Msg("a", "hello", "user")
    assert msg.get_content_blocks() == msg.get_content_blocks("text") == [HELLO]
    assert msg.get_content_blocks("thinking") == []


def test_it_tells_whether_blocks_of_a_type_are_there() -> None:
    msg = Msg("a", blocks(), "assistant")
    assert msg.has_content_blocks()
    assert msg.has_content_blocks("tool_use")
    assert msg.has_content_blocks(["audio", "image"])
    assert not msg.has_content_blocks("video")
    assert not Msg("a", [], "user").has_content_blocks()
    assert Msg("a", "x", "user").has_content_blocks("text")


def test_repr_is_the_one_of_agentscope() -> None:
    msg = Msg("al", [HELLO], "user", {"k": 1}, "2026-01-02 03:04:05.678")
    msg.id = "the-id"
    assert repr(msg) == (
        "Msg(id='the-id', name='al', content=[{'type': 'text', 'text': 'hello'}], role='user', "
        "metadata={'k': 1}, timestamp='2026-01-02 03:04:05.678', invocation_id='None')"
    )


def test_a_user_may_add_attributes_of_their_own() -> None:
    msg: Any = Msg("a", "x", "user")
    msg.note = "mine"
    assert copy.deepcopy(msg).note == "mine"


# -- deep copies -----------------------------------------------------------------------------------


def test_a_deep_copy_has_everything_and_shares_nothing() -> None:
    msg = Msg("Ann", blocks(), "assistant", {"list": [1]}, "2025-01-01 10:00:00.000", "call")
    clone = copy.deepcopy(msg)
    assert type(clone) is Msg
    assert clone.to_dict() == msg.to_dict()
    clone.metadata["list"].append(2)
    clone.content.clear()  # type: ignore[union-attr]  # a list here
    assert (msg.content, msg.metadata) == (blocks(), {"list": [1]})
    plain = Msg("Ann", "hello", "user")
    copy.deepcopy(plain).metadata["new"] = 1
    assert plain.metadata == {}


def test_a_deep_copy_keeps_what_is_one_thing_one_thing() -> None:
    msg = Msg("Ann", "hello", "user")
    shared: list[Any] = [msg]
    msg.metadata = {"here": shared, "there": shared, "self": msg}
    clone, again = copy.deepcopy([msg, msg])
    assert clone is again
    assert clone is not msg
    assert clone.metadata["self"] is clone
    assert clone.metadata["here"] is clone.metadata["there"]
    assert clone.metadata["here"] == [clone]


class Slotted(Msg):
    __slots__ = ("weight",)
    weight: list[int]


class Stateful(Msg):
    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "content": "forgotten"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name, self.content = state["name"], state["content"]


def test_a_deep_copy_of_a_subclass_has_what_the_subclass_has() -> None:
    msg = Slotted("Ann", blocks(), "user", {"a": [1]})
    msg.weight, msg.note = [5], ["mine"]  # type: ignore[attr-defined]  # an attribute of a user's own
    msg.metadata["self"] = msg
    clone = copy.deepcopy(msg)
    assert type(clone) is Slotted
    assert (clone.weight, clone.note, clone.id) == ([5], ["mine"], msg.id)  # type: ignore[attr-defined]  # as above
    assert clone.weight is not msg.weight
    assert clone.metadata["self"] is clone
    assert clone.content == blocks()
    assert copy.deepcopy(Stateful("Ann", "secret", "user")).content == "forgotten"
