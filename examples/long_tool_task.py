"""A long task in a small context window: an agent reads twelve logs, of which only one fits.

    python examples/long_tool_task.py

What does not fit is moved from the prompt to a folder. The agent knows what was moved, and reads it
back when it needs a detail. Its steps are scripted below. To let a model decide, use an
OpenAI-compatible server:

    pip install 'memoryspace[openai]'
    MEMORYSPACE_MODEL_URL=http://localhost:11434/v1 MEMORYSPACE_MODEL=qwen3:8b python examples/...
"""

import asyncio
import os
import random
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memoryspace.agent import CompressionConfig, ReActAgent
from memoryspace.context import ExtractiveSummary, Meter
from memoryspace.formatter import OpenAIChatFormatter
from memoryspace.message import Msg, ToolUseBlock
from memoryspace.model import Answer, ChatModelBase, ToolChoice
from memoryspace.testing import ScriptedModel
from memoryspace.testing.scripted import Line
from memoryspace.token import EstimatedTokenCounter
from memoryspace.tool import Toolkit

STATIONS = ["Aare", "Birs", "Emme", "Inn", "Linth", "Limmat", "Reuss", "Rhine", "Rhone", "Saane",
            "Ticino", "Thur"]  # fmt: skip
WINDOW = 4000
TASK = "Read the logs of all twelve stations and tell me which river rose."
DETAIL = "One more thing: what was the level of the Emme at 07:30, to the centimetre?"


async def main() -> None:
    """Run the example."""
    with TemporaryDirectory() as folder:
        model = Counted(model_of(*steps()))
        agent = agent_of(model, Path(folder))
        agent.set_console_output_enabled(False)  # the logs are long
        print(f"The agent has a window of {WINDOW:,} tokens.\n\nYou: {TASK}\n")
        agent.register_instance_hook("post_reasoning", "show", show_step)
        print("  step  tool               everything so far    in the prompt")
        said = await agent(Msg("you", TASK, "user"))
        print(f"\nAgent: {said.get_text_content()}")
        show_losses(agent)
        print(f"\nYou: {DETAIL}\n")
        said = await agent(Msg("you", DETAIL, "user"))
        print(f"\nAgent: {said.get_text_content()}")
        print(f"\nIn the log itself: {line_of(log_of('Emme'), '07:30')}")
        print(f"The largest prompt had {max(model.sent):,} tokens.")
        stored = await agent.memory.get_memory(prepend_summary=False)
        print(f"The memory has all {len(stored)} messages, {await tokens_of(stored):,} tokens.")


async def read_log(station: str) -> str:
    """Read the log of a station: its water level in metres, every ten minutes of a day.

    Args:
        station (`str`): The name of a river: Aare, Birs, Emme, Inn, Linth, Limmat, Reuss, Rhine,
            Rhone, Saane, Ticino or Thur.
    """
    return log_of(station)


def log_of(station: str) -> str:
    """Return a station's log, which is always the same."""
    chance = random.Random(station)
    level = 2.0 + chance.random()
    lines = []
    for minute in range(0, 24 * 60, 10):
        level += chance.gauss(0.004 if station == "Rhine" else 0, 0.004)
        clock = f"{minute // 60:02}:{minute % 60:02}"
        lines.append(f"{station} {clock} level {level:.2f} m, sensor {chance.randrange(10**6):06}")
    return "\n".join(lines)


def line_of(log: str, clock: str) -> str:
    """Return the line of a log at a time."""
    return next(line for line in log.splitlines() if f" {clock} " in line)


def agent_of(model: ChatModelBase, folder: Path) -> ReActAgent:
    """Return an agent that reads logs within a limited context window."""
    toolkit = Toolkit()
    toolkit.register_tool_function(read_log)
    config = CompressionConfig(
        trigger_threshold=WINDOW, keep_recent=2, store_dir=folder, summariser=ExtractiveSummary()
    )
    prompt = "You watch rivers. Read one log at a time and note what you saw before the next one."
    formatter = OpenAIChatFormatter()
    return ReActAgent(
        "hydrologist", prompt, model, formatter, toolkit, max_iters=30, compression_config=config
    )


async def show_step(agent: ReActAgent, arguments: dict[str, Any], said: Msg) -> None:
    """Print each tool call, with the tokens of the conversation and of the prompt."""
    assert isinstance(agent.model, Counted)
    everything = await tokens_of(await agent.memory.get_memory(prepend_summary=False))
    for call in said.get_content_blocks("tool_use"):
        name = call["name"]  # type: ignore[typeddict-item]  # chosen by its type
        step, sent = len(agent.model.sent), agent.model.sent[-1]
        print(f"  {step:4}  {name:16} {everything:12,} tokens {sent:9,} tokens")


def show_losses(agent: ReActAgent) -> None:
    """Print what left at the last compaction, and how to read it back."""
    assert agent.window is not None
    report = agent.window.report
    if report is None:  # a real model may answer without reading
        print("\nNothing had to leave.")
        return
    print(f"\nWhat left at the last compaction: {report.tokens_before:,} tokens became "
          f"{report.tokens_after:,}")  # fmt: skip
    for loss in report.losses[:4]:
        print(f'  {loss.what:12} {loss.tokens:6,} tokens  read_memory("{loss.handle}")  {loss.why}')
    print(f"  … {len(report.losses)} in all, and every one can be had back.")


async def tokens_of(messages: list[Msg]) -> int:
    """Estimate the tokens of messages."""
    return sum(await Meter().costs(messages))


def steps() -> list[Line]:
    """Return the script of the offline model: read each log, later look up one line."""
    reading: list[Line] = [
        [
            {"type": "text", "text": f"Next is the {station}."},
            call("read_log", station=station),
        ]
        for station in STATIONS
    ]
    return [
        *reading,
        "The Rhine rose, by more than half a metre. The others stayed where they were.",
        [call("search_memory", pattern="Emme 07:30")],
        answer_from_what_was_found,
    ]


def answer_from_what_was_found(prompt: list[dict[str, Any]]) -> Line:
    """Answer with the last tool result."""
    found = re.search(r"Emme 07:30 level ([\d.]+) m", str(prompt[-1]["content"]))
    return f"At 07:30 the Emme stood at {found[1] if found else '?'} m; I have looked it up again."


def call(name: str, **arguments: Any) -> ToolUseBlock:
    """Return a tool call block."""
    return {"type": "tool_use", "id": f"call-{random.randrange(10**9)}", "name": name,
            "input": arguments}  # fmt: skip


class Counted(ChatModelBase):
    """A model that records the tokens of each prompt."""

    def __init__(self, model: ChatModelBase) -> None:
        super().__init__(model.model_name, model.stream)
        self._model = model
        self.sent: list[int] = []

    async def __call__(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        tool_choice: ToolChoice | None = None,
        structured_model: Any = None,
    ) -> Answer:
        """Count the tokens and forward the call."""
        self.sent.append(await EstimatedTokenCounter().count(messages, tools))
        return await self._model(messages, tools, tool_choice, structured_model)


def model_of(*lines: Line) -> ChatModelBase:
    """Return a scripted model, or a real one if ``MEMORYSPACE_MODEL_URL`` is set."""
    url = os.environ.get("MEMORYSPACE_MODEL_URL")
    if url is None:
        return ScriptedModel(*lines)
    from memoryspace.model import OpenAIChatModel

    name, key = os.environ["MEMORYSPACE_MODEL"], os.environ.get("MEMORYSPACE_MODEL_KEY", "none")
    return OpenAIChatModel(name, key, client_kwargs={"base_url": url})


if __name__ == "__main__":
    asyncio.run(main())
