"""Programs written for the agent runtime's memory services run with only the import root changed.

Each program is what the runtime's own guide shows of one thing, in the guide's shape: imports at
the top, a ``main`` that is awaited.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from typing import Any

import pytest

SETTING = """
from memoryspace.engine.services.memory import InMemoryMemoryService
from memoryspace.engine.schemas.agent_schemas import Message, TextContent

def said(words):
    return [Message(role="user", content=[TextContent(type="text", text=words)])]
"""

ADDING = """
async def main():
    memory_service = InMemoryMemoryService()
    await memory_service.start()
    user_id = "user1"
    messages = said("hello world")
    await memory_service.add_memory(user_id, messages)
    kept = await memory_service.list_memory(user_id)
    await memory_service.stop()
    return kept == messages
"""

SEARCHING = """
async def main():
    memory_service = InMemoryMemoryService()
    await memory_service.start()
    user_id = "user1"
    messages = said("hello world")
    await memory_service.add_memory(user_id, messages)
    retrieved = await memory_service.search_memory(user_id, said("hello"))
    await memory_service.stop()
    return retrieved == messages
"""

LISTING = """
async def main():
    memory_service = InMemoryMemoryService()
    await memory_service.start()
    user_id = "user1"
    messages = said("hello world")
    await memory_service.add_memory(user_id, messages)
    memory_list = await memory_service.list_memory(
        user_id,
        filters={"page_size": 10, "page_num": 1}
    )
    beyond = await memory_service.list_memory(user_id, filters={"page_size": 10, "page_num": 2})
    await memory_service.stop()
    return memory_list == messages and beyond == []
"""

DELETING = """
async def main():
    memory_service = InMemoryMemoryService()
    await memory_service.start()
    user_id = "user1"
    session_id = "session1"
    await memory_service.add_memory(user_id, said("hello world"), session_id=session_id)
    await memory_service.add_memory(user_id, said("elsewhere"))
    await memory_service.delete_memory(user_id, session_id)
    left = [message.get_text_content() for message in await memory_service.list_memory(user_id)]
    await memory_service.delete_memory(user_id)
    nothing = await memory_service.list_memory(user_id)
    await memory_service.stop()
    return left == ["elsewhere"] and nothing == []
"""

LIFECYCLE = """
async def main():
    memory_service = InMemoryMemoryService()
    await memory_service.start()
    is_healthy = await memory_service.health()
    await memory_service.stop()
    return is_healthy is True
"""


@pytest.mark.parametrize(
    "program",
    [ADDING, SEARCHING, LISTING, DELETING, LIFECYCLE],
    ids=["adding", "searching", "listing", "deleting", "lifecycle"],
)
def test_a_program_of_the_guide_runs(program: str) -> None:
    names: dict[str, Any] = {}
    exec(SETTING + program, names)
    assert asyncio.run(names["main"]()) is True


TABLESTORE = """
from memoryspace.engine.services.memory import TablestoreMemoryService
from memoryspace.engine.services.utils.tablestore_service_utils import create_tablestore_client
from memoryspace.engine.services.memory.tablestore_memory_service import SearchStrategy

def client():
    return create_tablestore_client(
        end_point="https://instance.cn-nowhere.ots.aliyuncs.com",
        instance_name="your_instance_name",
        access_key_id="your_access_key_id",
        access_key_secret="your_access_key_secret",
    )

async def main():
    tablestore_memory_service = TablestoreMemoryService(tablestore_client=client())
    tablestore_memory_service = TablestoreMemoryService(
        tablestore_client=client(),
        search_strategy=SearchStrategy.VECTOR,
    )
    return isinstance(tablestore_memory_service, TablestoreMemoryService)
"""


def test_the_services_on_tablestore_are_made_as_in_the_guide() -> None:
    names: dict[str, Any] = {}
    exec(TABLESTORE, names)
    assert asyncio.run(names["main"]()) is True


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("engine.services.memory", "MemoryService InMemoryMemoryService RedisMemoryService"),
        ("engine.services.memory", "Mem0MemoryService TablestoreMemoryService"),
        ("engine.services.memory", "ReMePersonalMemoryService ReMeTaskMemoryService"),
        ("engine.services.memory", "MemoryServiceFactory"),
        ("engine.services.memory.memory_service", "MemoryService InMemoryMemoryService"),
        ("engine.services.memory.redis_memory_service", "RedisMemoryService"),
        ("engine.services.memory.mem0_memory_service", "Mem0MemoryService"),
        ("engine.services.memory.tablestore_memory_service", "TablestoreMemoryService"),
        ("engine.services.memory.tablestore_memory_service", "SearchStrategy"),
        ("engine.services.memory.reme_personal_memory_service", "ReMePersonalMemoryService"),
        ("engine.services.memory.reme_task_memory_service", "ReMeTaskMemoryService"),
        ("engine.services.memory.memory_service_factory", "MemoryServiceFactory"),
        ("engine.services.utils.tablestore_service_utils", "create_tablestore_client"),
        ("engine.schemas.agent_schemas", "Message TextContent ImageContent DataContent Content"),
        ("engine.schemas.agent_schemas", "AudioContent FileContent RefusalContent Event Error"),
        ("engine.schemas.agent_schemas", "MessageType ContentType Role RunStatus"),
        ("engine.schemas.agent_schemas", "SequenceNumberGenerator"),
        ("engine.schemas.session", "Session"),
        ("service.personal_memory_service", "PersonalMemoryService"),
        ("service.task_memory_service", "TaskMemoryService"),
    ],
)
def test_a_name_of_the_runtime_or_of_reme_stands_at_its_path(module: str, names: str) -> None:
    found = importlib.import_module(f"memoryspace.{module}")
    here = importlib.import_module(
        "memoryspace.service.schema" if "schemas" in module else "memoryspace.service"
    )
    for name in names.split():
        assert name in found.__all__
        if hasattr(here, name):
            assert getattr(found, name) is getattr(here, name)
        assert inspect.isclass(getattr(found, name)) or callable(getattr(found, name))


def test_a_name_that_is_not_there_is_said_to_be_missing() -> None:
    found = importlib.import_module("memoryspace.engine.services.memory")
    with pytest.raises(AttributeError, match="no_such_name"):
        found.no_such_name  # noqa: B018  # the module's own answer is asked for
