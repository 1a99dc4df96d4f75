"""The examples in docstrings run, and the objects people print say what they are."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import memoryspace
from memoryspace.agent import AgentBase, UserAgent
from memoryspace.embedding import CachedEmbedder, CallableEmbedder, VectorFiles
from memoryspace.events import EventStream
from memoryspace.files import FileMap
from memoryspace.pipeline import MsgHub
from memoryspace.plan import Plan, PlanNotebook
from memoryspace.session import JSONSession
from memoryspace.tool import Toolkit

PACKAGE = Path(memoryspace.__file__).parent


def modules_with_examples() -> list[str]:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
    names = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in files]
    return [".".join(parts).removesuffix(".__init__") for parts in names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_run(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_an_agent_is_shown_with_its_name_and_id() -> None:
    named, nameless = UserAgent("alice"), AgentBase()
    assert repr(named) == f"UserAgent(name='alice', id={named.id!r})"
    assert repr(nameless) == f"AgentBase(id={nameless.id!r})"


def test_a_hub_is_shown_with_its_participants() -> None:
    agent = UserAgent("alice")
    shown = f"MsgHub(name='garden', participants=[{agent!r}], closed)"
    assert repr(MsgHub([agent], name="garden")) == shown


def test_a_toolkit_is_shown_with_its_tools() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "Look things up.", active=True)
    toolkit.register_tool_function(sorted, func_name="sort", json_schema=SORT)
    assert repr(toolkit) == "Toolkit(tools=['sort'], active_groups=['web'])"


SORT = {"type": "function", "function": {"name": "sort", "parameters": {"type": "object"}}}


def test_an_event_stream_is_shown_with_the_number_of_its_listeners() -> None:
    stream = EventStream()
    stream.subscribe(print)
    assert repr(stream) == "EventStream(listeners=1)"


def test_a_notebook_is_shown_with_its_plan() -> None:
    notebook = PlanNotebook()
    assert repr(notebook) == "PlanNotebook(no plan)"
    notebook.current_plan = Plan("garden", "Plan it.", "A plan.")
    assert repr(notebook) == "PlanNotebook(plan='garden')"


def test_what_is_in_a_folder_is_shown_with_the_folder(tmp_path: Path) -> None:
    files = FileMap(tmp_path)
    files["a"] = b"four"
    assert repr(files) == f"FileMap({str(tmp_path)!r}, bytes_used=4)"
    assert repr(JSONSession(tmp_path)) == f"JSONSession({str(tmp_path)!r})"


def test_an_embedder_is_shown_with_its_vector_space(tmp_path: Path) -> None:
    embedder = CallableEmbedder(lambda texts: [[1.0] for _ in texts], "one", 1)
    cached = CachedEmbedder(embedder, VectorFiles(tmp_path))
    assert repr(embedder) == "CallableEmbedder('one')"
    assert repr(cached) == f"CachedEmbedder(CallableEmbedder('one'), {str(tmp_path)!r})"
