"""An agent that fails, learns from it, and succeeds at a similar task after a restart.

The agent is scripted: it follows the lesson it retrieves, and without one tries the obvious. Its
memory is a folder. No model and no server are needed.
"""

import asyncio
import json
import tempfile
from typing import Any

from memoryspace.service import TaskMemoryService

AGENT = "export-agent"
ROWS = 412  # in the service, which returns at most 200 at a time


async def main() -> None:
    """Run the example."""
    with tempfile.TemporaryDirectory() as folder:
        await work(folder, "Export every customer from the Larkdesk CRM")
        await work(folder, "Export every customer of the Larkdesk CRM once more, with all pages")
        await work(folder, "Export every supplier from the Larkdesk CRM")
        await work(folder, "Translate the manual into French")


async def work(folder: str, task: str) -> None:
    """Run one task with a newly opened memory, as after a restart."""
    async with TaskMemoryService(folder) as tasks:
        lessons = await tasks.search(AGENT, task, top_k=1)
        print(f"{task}\n  lesson: {lessons[0].memory.details['type'] if lessons else 'none'}")
        if "Export" not in task:
            return
        run, rows = attempt(task, lessons[0].memory.text if lessons else "")
        score = float(rows == ROWS)
        await tasks.add_trajectory(AGENT, run, score=score)
        for hit in lessons:
            await tasks.record_use(AGENT, hit.memory.id, helped=score == 1)
        print(f"  rows: {rows} of {ROWS}, score {score:g}")


def attempt(task: str, lesson: str) -> tuple[list[dict[str, Any]], int]:
    """Return what the agent did, and how many rows it got.

    It follows the cursor where it was told that pages are refused.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    rows = 0
    calls: list[dict[str, Any]] = [{"cursor": "start"}, {"cursor": "n200"}, {"cursor": "n400"}]
    if "page is not supported" not in lesson and "cursor" not in lesson:
        calls = [{"page": 1}, {"page": 2}]
    for number, arguments in enumerate(calls):
        answer, got = get_rows(arguments)
        rows += got
        function = {"name": "get_rows", "arguments": json.dumps(arguments)}
        call = {"id": f"call-{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call-{number}", "content": answer})
    messages.append({"role": "assistant", "content": f"I wrote {rows} rows."})
    return messages, rows


def get_rows(arguments: dict[str, Any]) -> tuple[str, int]:
    """Simulate the service: the first page, then further pages by cursor only."""
    if arguments.get("page", 1) > 1:
        return '{"error": "page is not supported beyond 1, follow next_cursor"}', 0
    begin = {"start": 0, "n200": 200, "n400": 400}[arguments.get("cursor", "start")]
    got = min(200, ROWS - begin)
    return json.dumps({"rows": got, "next_cursor": f"n{begin + got}"}), got


if __name__ == "__main__":
    asyncio.run(main())
