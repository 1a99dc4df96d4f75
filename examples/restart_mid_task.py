"""A process dies in the middle of a tool call; another one continues from the folder.

    python examples/restart_mid_task.py

The agent surveys four fields. At the third one the power fails and the process exits at once. The
next process finds the conversation with an unanswered tool call, repairs it, and continues where
the first one stopped. The agent's steps are scripted below. To let a model decide, use an
OpenAI-compatible server:

    pip install 'memoryspace[openai]'
    MEMORYSPACE_MODEL_URL=http://localhost:11434/v1 MEMORYSPACE_MODEL=qwen3:8b python examples/...
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memoryspace.agent import ReActAgent
from memoryspace.formatter import OpenAIChatFormatter
from memoryspace.memory import SpaceMemory
from memoryspace.message import Msg
from memoryspace.model import ChatModelBase
from memoryspace.testing import ScriptedModel
from memoryspace.testing.scripted import Line
from memoryspace.tool import Toolkit

FIELDS = ["north", "east", "south", "west"]
TASK = "Survey the north, east, south and west field, in this order, and tell me what grows there."
HARVEST = {"north": "rye", "east": "barley", "south": "poppies", "west": "flax"}
POWER_FAILURE = 70  # the exit code of the first process


def main() -> None:
    """Run the example: one process that dies, and one that continues."""
    with TemporaryDirectory() as folder:
        print("--- the first process ---")
        first = run(folder)
        print(f"--- it is gone, with exit code {first}; the second process ---")
        second = run(folder)
        print(f"--- done, with exit code {second} ---")


def run(folder: str) -> int:
    """Run this script as a separate process that works on the task."""
    command = [sys.executable, __file__, "work", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode not in (0, POWER_FAILURE):
        print(done.stderr)
    return done.returncode


async def work(folder: Path) -> None:
    """Start the task, or continue it."""
    async with SpaceMemory(folder / "memory", "survey", "ann") as memory:
        agent = agent_of(memory, folder)
        known = await memory.size()
        if known:
            print(f"found {known} messages; going on")
            said = await agent()
        else:
            print("nothing is known yet; beginning")
            said = await agent(Msg("ann", TASK, "user"))
        print(f"Agent: {said.get_text_content()}")
        print(f"messages in the folder: {await memory.size()}")


def agent_of(memory: SpaceMemory, folder: Path) -> ReActAgent:
    """Return an agent that surveys fields, one of which has a faulty cable."""
    cable = folder / "cable burnt"

    async def survey(field: str) -> str:
        """Survey a field and tell what grows there.

        Args:
            field (`str`): Which one: north, east, south or west.
        """
        print(f"  surveying the {field} field …", flush=True)
        if field == "south" and not cable.exists():
            cable.touch()
            os._exit(POWER_FAILURE)  # nothing is closed, nothing is cleaned up
        return f"{field}: {HARVEST.get(field, 'nothing')}"

    toolkit = Toolkit()
    toolkit.register_tool_function(survey)
    prompt = "You survey fields, one call at a time. A call without a result has to be made again."
    agent = ReActAgent(
        "surveyor", prompt, model_of(next_step), OpenAIChatFormatter(), toolkit, memory
    )
    agent.set_console_output_enabled(False)
    return agent


def next_step(prompt: list[dict[str, Any]]) -> Line:
    """Act as the offline model: survey the fields without a result, then answer."""
    lost = [each for each in prompt if "There is no result" in str(each.get("content"))]
    if lost and prompt[-1] is lost[-1]:
        print("  (a call without a result: it was interrupted)")
    results = [str(each["content"]) for each in prompt if each["role"] == "tool"]
    known = [text for text in results if text.partition(":")[0] in FIELDS]
    for field in FIELDS:
        if not any(text.startswith(field) for text in known):
            place = f"call-{len(results)}"
            return [{"type": "tool_use", "id": place, "name": "survey", "input": {"field": field}}]
    return f"This is what grows there: {', '.join(known)}."


def model_of(line: Line) -> ChatModelBase:
    """Return a scripted model, or a real one if ``MEMORYSPACE_MODEL_URL`` is set."""
    url = os.environ.get("MEMORYSPACE_MODEL_URL")
    if url is None:
        return ScriptedModel(*[line] * 10)
    from memoryspace.model import OpenAIChatModel

    name, key = os.environ["MEMORYSPACE_MODEL"], os.environ.get("MEMORYSPACE_MODEL_KEY", "none")
    return OpenAIChatModel(name, key, client_kwargs={"base_url": url})


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        asyncio.run(work(Path(sys.argv[2])))
    else:
        main()
