"""Imports point down only, cost little, and every public name is where it is promised."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoryspace

PACKAGE = Path(memoryspace.__file__).parent

# From the ground up. A module may import what stands on its own floor or below.
FLOORS = [
    {"collector", "errors", "showing", "types", "version"},
    {"configuring", "extras", "events", "files", "http", "lifecycle", "loops", "message", "module"}
    | {"portable", "retrying", "token"},
    {"operations"},
    {"embedding", "formatter", "model", "record", "tool"},
    {"verbs"},
    {"context", "kernel", "retrieval"},
    {"store"},
    {"memory", "service", "session"},
    {"agent", "care", "door", "moving", "pipeline", "plan"},
    {"bench", "engine", "evaluation", "server", "testing", "tour"},
    {"cli", "__init__", "__main__"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unit_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_units(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every import of our own, wherever it stands in the file, with its line."""
    package = ("memoryspace", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("memoryspace"), f"{path}: import relatively"
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            target = (*base, *(node.module.split(".") if node.module else ()))
            if target[:1] == ("memoryspace",):
                names = [target[1]] if len(target) > 1 else [alias.name for alias in node.names]
                yield from ((node.lineno, name) for name in names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down_only(path: Path) -> None:
    own = unit_of(path)
    upward = [
        f"line {line}: {unit}"
        for line, unit in imported_units(path)
        if unit != own and FLOOR_OF[unit] > FLOOR_OF[own]
    ]
    assert upward == []


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "store").rglob("*.py")), ids=lambda path: path.name
)
def test_stores_use_only_what_the_kernel_offers(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert not node.module.startswith("kernel."), f"line {node.lineno}: {node.module}"


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {
        "sqlalchemy",
        "redis",
        "numpy",
        "tiktoken",
        "aiosqlite",
        "asyncpg",
        "asyncmy",
        "fastapi",
        "lmdb",
        "sqlite3",
        "aiohttp",
        "mem0",
        "tablestore",
        "openai",
        "anthropic",
        "http.client",
        "memoryspace.model",
        "memoryspace.session",
        "memoryspace.service",
        "memoryspace.kernel",
    }
    code = "import memoryspace, sys; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "memoryspace" in output
    assert not heavy & set(output.split())


@pytest.mark.parametrize(
    "name",
    [
        "memoryspace",
        "memoryspace.agent",
        "memoryspace.agent.leaks",
        "memoryspace.bench",
        "memoryspace.care",
        "memoryspace.embedding",
        "memoryspace.context",
        "memoryspace.formatter",
        "memoryspace.kernel",
        "memoryspace.kernel.tiers.cold",
        "memoryspace.kernel.durable.journal",
        "memoryspace.retrieval",
        "memoryspace.memory",
        "memoryspace.model",
        "memoryspace.moving",
        "memoryspace.pipeline",
        "memoryspace.plan",
        "memoryspace.service",
        "memoryspace.message",
        "memoryspace.session",
        "memoryspace.store",
        "memoryspace.testing",
        "memoryspace.testing.providers",
        "memoryspace.token",
        "memoryspace.tool",
    ],
)
def test_every_promised_name_is_there(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__all__ == sorted(module.__all__, key=_as_ruff_sorts)
    for each in module.__all__:
        assert getattr(module, each) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(module, "no_such_name")  # noqa: B009  # the module's own answer is asked for


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("message", "Msg TextBlock ThinkingBlock ToolUseBlock ToolResultBlock ImageBlock"),
        ("message", "AudioBlock VideoBlock Base64Source URLSource ContentBlock"),
        ("formatter", "FormatterBase TruncatedFormatterBase OpenAIChatFormatter"),
        ("formatter", "OpenAIMultiAgentFormatter AnthropicChatFormatter DashScopeChatFormatter"),
        ("formatter", "AnthropicMultiAgentFormatter DashScopeMultiAgentFormatter"),
        ("formatter", "GeminiChatFormatter GeminiMultiAgentFormatter DeepSeekChatFormatter"),
        ("formatter", "DeepSeekMultiAgentFormatter OllamaChatFormatter OllamaMultiAgentFormatter"),
        ("module", "StateModule"),
        ("memory", "MemoryBase InMemoryMemory RedisMemory AsyncSQLAlchemyMemory"),
        ("memory", "LongTermMemoryBase Mem0LongTermMemory ReMePersonalLongTermMemory"),
        ("memory", "ReMeTaskLongTermMemory ReMeToolLongTermMemory"),
        ("memory", "ReMeShortTermMemory MemoryWithCompress MessageStorageBase"),
        ("session", "SessionBase JSONSession RedisSession"),
        ("token", "TokenCounterBase CharTokenCounter OpenAITokenCounter"),
        ("embedding", "EmbeddingModelBase EmbeddingUsage EmbeddingResponse EmbeddingCacheBase"),
        ("embedding", "FileEmbeddingCache OpenAITextEmbedding DashScopeTextEmbedding"),
        ("embedding", "DashScopeMultiModalEmbedding GeminiTextEmbedding OllamaTextEmbedding"),
        ("model", "ChatModelBase ChatResponse OpenAIChatModel AnthropicChatModel"),
        ("model", "DashScopeChatModel OllamaChatModel GeminiChatModel"),
        ("types", "JSONPrimitive JSONSerializableObject Embedding"),
        ("types", "AgentHookTypes ReActAgentHookTypes ToolFunction"),
        ("agent", "AgentBase UserAgent UserInputBase UserInputData TerminalUserInput"),
        ("agent", "ReActAgentBase ReActAgent"),
        ("pipeline", "MsgHub SequentialPipeline FanoutPipeline sequential_pipeline"),
        ("pipeline", "fanout_pipeline stream_printing_messages"),
        ("plan", "Plan PlanNotebook SubTask"),
        ("tool", "Toolkit ToolResponse"),
    ],
)  # fmt: skip
def test_names_of_agentscope_v1_stand_at_the_same_path(module: str, names: str) -> None:
    found = importlib.import_module(f"memoryspace.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


def test_a_missing_extra_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules.update(redis=None, sqlalchemy=None)\n"
        "import memoryspace\n"
        "for name in ('RedisMemory', 'AsyncSQLAlchemyMemory', 'SQLStore', 'RedisSession'):\n"
        "    try: getattr(memoryspace, name)\n"
        "    except ImportError as error: print(error)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.count("pip install 'memoryspace[redis]'") == 2
    assert output.count("pip install 'memoryspace[sql]'") == 2


def _as_ruff_sorts(name: str) -> tuple[int, str]:
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name
