"""Learning from runs: lessons for tasks, kept as long as they help, and guidelines for tools."""

import asyncio
import json
from typing import Any

from memoryspace.service import TaskMemoryService, ToolCallResult, ToolMemoryService

USER = "booking-agent"
TASK = "Book a table for two at the harbour restaurant on Friday."


async def main() -> None:
    """Run the example."""
    async with TaskMemoryService() as tasks:
        await learn(tasks)
        await use(tasks)
    async with ToolMemoryService() as tools:
        await watch_tools(tools)


def asked(task: str) -> dict[str, Any]:
    """Return a user message."""
    return {"role": "user", "content": task}


def called(tool: str, answer: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return a tool call and its result as OpenAI messages."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"call-{tool}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call-{tool}", "content": answer},
    ]


HASTY = [
    asked(TASK),
    *called("find_restaurant", '{"id": 7}', name="harbour"),
    *called("book_table", "Error: no free table at 19:00", id=7, people=2, time="19:00"),
]
CAREFUL = [
    asked(TASK),
    *called("find_restaurant", '{"id": 7}', name="harbour"),
    *called("free_tables", '["20:00", "21:00"]', id=7, day="Friday"),
    *called("book_table", '{"booked": true}', id=7, people=2, time="20:00"),
]


SALT = [asked("Season the soup with salt."), *called("add_salt", "ok", spoons=9)]


async def learn(tasks: TaskMemoryService) -> None:
    """Add a failed and a successful run; one lesson says what to do and what to avoid."""
    await tasks.add_trajectory(USER, HASTY, score=0.0, session_id="monday")
    await tasks.add_trajectory(USER, CAREFUL, score=1.0, session_id="tuesday")
    await tasks.add_trajectory(USER, SALT, score=1.0, session_id="wednesday")
    for memory in (await tasks.page(USER)).memories:
        print(f"{memory.details['type']}:\n{memory.text}")


async def use(tasks: TaskMemoryService) -> None:
    """Retrieve the lessons that concern a task, and record whether they helped."""
    lessons = await tasks.search(USER, "Book a table in a restaurant for Sunday")
    print("lessons for a similar task:", len(lessons))
    print("lessons for one never seen:", len(await tasks.search(USER, "Translate this poem")))
    salt = await tasks.search(USER, "Season the soup with salt")
    for helped in (True, True, False):
        await tasks.record_use(USER, lessons[0].memory.id, helped=helped)
        await tasks.record_use(USER, salt[0].memory.id, helped=False)
    pruned = await tasks.prune(USER, min_uses=3, min_success_rate=0.5)
    print("pruned after three uses without help:", int(pruned))
    for memory in (await tasks.page(USER)).memories:
        details = memory.details
        print(f"  kept: {details['type']}, helped {details['successes']} of {details['uses']}")


async def watch_tools(tools: ToolMemoryService) -> None:
    """Turn tool calls into statistics and guidelines; a call recorded twice counts once."""
    calls = [search_flights(day, limit=20) for day in range(1, 6)]
    calls += [search_flights(day, limit=500) for day in (6, 7)]
    await tools.add_tool_call_results(USER, calls)
    print("new when recorded again:", len(await tools.add_tool_call_results(USER, calls)))
    for memory in await tools.guidelines(USER, ["search_flights", "never_called"]):
        print(memory.text)


def search_flights(day: int, *, limit: int) -> ToolCallResult:
    """Return a call, with its outcome, of a tool that returns at most 100 results."""
    is_allowed = limit <= 100
    return ToolCallResult(
        tool_name="search_flights",
        input={"to": "Oslo", "day": f"2024-05-0{day}", "limit": limit},
        output="3 flights" if is_allowed else f"Error: limit {limit} is above 100",
        success=is_allowed,
        time_cost=0.4 if is_allowed else 0.1,
        token_cost=120,
        create_time=f"2024-04-0{day} 12:00:00",
    )


if __name__ == "__main__":
    asyncio.run(main())
