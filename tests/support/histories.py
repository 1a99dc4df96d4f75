"""Histories for Hypothesis: whole ones, broken ones, and such as no honest program would make."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from memoryspace.message import Msg

PIXEL = "iVBORw0KGgo="

odd_ids = ["a-2", "a-2-2", "b-2", "functions.look:0", "", "x" * 100, "é", "a b", "a\0b"]
tool_ids = st.sampled_from([*"aaaaaaaabbbbcd", *odd_ids])
words = st.sampled_from(
    ["hello", "", " ", "\n", "so\n", "你好", "</history>", "{}", "\ud800", "\0", "None", "[image]"]
) | st.text(max_size=8)
tool_names = st.sampled_from(["look", "look here", "", "9lives", "你好", "n" * 200])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words
json_like = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(words, json_like, max_size=2)
urls = st.sampled_from(
    ["https://example.org/a.png", "http://example.org/a.png", "/etc/passwd", "file:///etc/passwd",
     f"data:image/png;base64,{PIXEL}", f"data:audio/wav;base64,{PIXEL}", "data:,hello", "a.png",
     "HTTPS://EXAMPLE.ORG", "https://", "javascript:alert(1)", ""]
)  # fmt: skip
media_types = st.sampled_from(
    ["image/png", "image/svg+xml", "audio/wav", "audio/mpeg", "audio/ogg", "video/mp4", "", "png"]
)
data = st.sampled_from([PIXEL, "", "?", "abc", "aGVsbG8="])
sources = (
    st.fixed_dictionaries({"type": st.just("url"), "url": urls})
    | st.fixed_dictionaries({"type": st.just("base64"), "media_type": media_types, "data": data})
    | st.dictionaries(st.sampled_from(["type", "url", "data", "media_type"]), scalars, max_size=3)
    | scalars
)
texts = st.fixed_dictionaries({"type": st.just("text"), "text": words})
media = st.fixed_dictionaries(
    {"type": st.sampled_from(["image", "audio", "video"]), "source": sources}
)
thoughts = st.fixed_dictionaries(
    {"type": st.just("thinking"), "thinking": words}, optional={"signature": words}
)
whole_calls = st.fixed_dictionaries(
    {"type": st.just("tool_use"), "id": tool_ids, "name": tool_names, "input": arguments}
)
whole_results = st.fixed_dictionaries(
    {
        "type": st.just("tool_result"),
        "id": tool_ids,
        "name": tool_names,
        "output": words | st.lists(texts | media, max_size=3),
    }
)
junk = (
    json_like
    | st.just({1: 2, (3, 4): {5}})
    | st.builds(object)
    | st.just(b"bytes")
    | st.fixed_dictionaries({"type": st.sampled_from(["file", "", "text", "image", "thinking"])})
    | st.fixed_dictionaries({"type": st.just("text"), "text": scalars})
    | st.fixed_dictionaries({"type": scalars | st.just(["text"]), "text": words})
)
broken_calls = st.fixed_dictionaries(
    {"type": st.just("tool_use")},
    optional={
        "id": tool_ids | scalars | st.just([]),
        "name": tool_names | scalars,
        "input": json_like | st.just('{"a": 1}') | st.just("[" * 2000),
        "raw_input": scalars | st.just('{"a": 1}'),
    },
)
broken_results = st.fixed_dictionaries(
    {"type": st.just("tool_result")},
    optional={
        "id": tool_ids | scalars | st.just([]),
        "name": tool_names | scalars,
        "output": json_like | st.lists(junk | texts | media | whole_calls, max_size=3),
    },
)
_KINDS: list[st.SearchStrategy[Any]] = [
    *[texts] * 3, thoughts, media, *[whole_calls] * 4, *[whole_results] * 5,
    broken_calls, broken_results, junk,
]  # fmt: skip
blocks = st.sampled_from(_KINDS).flatmap(lambda kind: kind)  # each with its weight
contents = words | st.lists(blocks, max_size=4)
speakers = st.sampled_from(["Ann", "Ann Lee", "", "a/b", "你好", "n" * 100])
roles = st.sampled_from(["user", "assistant", "system"])


def _message(name: str, content: Any, role: Any) -> Msg:
    return Msg(name, content, role)


messages = st.builds(_message, speakers, contents, roles)
histories = st.lists(messages, max_size=8)


@st.composite
def whole_histories(draw: st.DrawFn) -> list[Msg]:
    """A history that needs no repair: every call is answered right behind it."""
    history = [Msg("system", "Be brief.", "system")] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            history.append(Msg("Bob", draw(words), draw(st.sampled_from(["user", "assistant"]))))
            continue
        ids = [f"call_{number}_{each}" for each in range(draw(st.integers(1, 3)))]
        history.append(Msg("Ann", [_call(id) for id in ids], "assistant"))
        if draw(st.booleans()):
            history.append(Msg("system", [_result(id) for id in ids], "system"))
        else:
            history += [Msg("system", [_result(id)], "system") for id in ids]
    return history


def _call(id: str) -> Any:
    return {"type": "tool_use", "id": id, "name": "look", "input": {}}


def _result(id: str) -> Any:
    return {"type": "tool_result", "id": id, "name": "look", "output": f"seen by {id}"}


def trajectories() -> Iterator[list[Msg]]:
    """Real agent runs, from the folder that ``MEMORYSPACE_DATA`` names; skips without it."""
    folder = os.environ.get("MEMORYSPACE_DATA")
    if folder is None:
        pytest.skip("MEMORYSPACE_DATA names no folder with the real agent runs")
    path = Path(folder, "agent_trajectories.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if said := json.loads(line)["messages"]:
                yield [message_of(each) for each in said]


def message_of(said: dict[str, Any]) -> Msg:
    """A message as OpenAI's API has it, as ours."""
    text = said.get("content") or ""
    if said["role"] == "tool":
        result = {
            "type": "tool_result",
            "id": said["tool_call_id"],
            "name": said.get("name", "tool"),
        }
        return Msg("system", [{**result, "output": text}], "system")  # type: ignore[list-item]
    content: list[Any] = [{"type": "text", "text": text}] if text else []
    for call in said.get("tool_calls") or ():
        raw = call["function"]["arguments"]
        block = {"type": "tool_use", "id": call["id"], "name": call["function"]["name"]}
        content.append({**block, "input": raw})
    return Msg(said["role"], content, said["role"])
