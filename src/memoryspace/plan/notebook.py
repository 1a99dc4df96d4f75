"""``PlanNotebook``: the plan of an agent, shown to its model at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import InvalidInput
from ..formatter.truncating import IS_HINT
from ..message import Msg
from ..model.prompting import tagged
from ..module import StateModule
from ..tool import ToolResponse, told
from .plan import Plan, SubTask

HINT_TAG = "system-hint"
_TO_START = (
    "No subtask is in progress. Start number {place} with update_subtask_state, or finish_plan."
)
_AT_WORK = """\
You are at number {place}: {name}
{description}
Expected: {expected}
When it is done, call finish_subtask with what came of it."""
_AT_END = "All subtasks are through. Call finish_plan with what came of the plan, then answer."

PlanToHint: TypeAlias = Callable[[Plan], str | None]


def plan_to_hint(plan: Plan) -> str:
    """Return the default hint about a plan: the whole plan, and the next step."""
    if plan.current is not None:
        step = plan.step(plan.current)
        what = _AT_WORK.format(
            place=plan.current,
            name=step.name,
            description=step.description,
            expected=step.expected_outcome,
        )
    else:
        what = _AT_END if plan.next is None else _TO_START.format(place=plan.next)
    return f"Your plan ([x] done, [>] in progress, [-] abandoned):\n{plan}\n\n{what}"


class PlanNotebook(StateModule):
    """Holds one plan at a time. Its methods are tools for the model; the plan is its state.

    Args:
        max_subtasks: The largest number of subtasks of a plan; None for no limit.
        plan_to_hint: Makes the hint that the model sees at each step.

    Examples:
        >>> PlanNotebook(max_subtasks=5)
        PlanNotebook(no plan)
    """

    def __init__(
        self, max_subtasks: int | None = None, plan_to_hint: PlanToHint = plan_to_hint
    ) -> None:
        super().__init__()
        self.max_subtasks = max_subtasks
        self.plan_to_hint = plan_to_hint
        self.current_plan: Plan | None = None
        self.register_state("current_plan", msgspec.to_builtins, _plan_of)

    def __repr__(self) -> str:
        plan = self.current_plan
        return f"PlanNotebook({'no plan' if plan is None else f'plan={plan.name!r}'})"

    def list_tools(self) -> list[Callable[..., Any]]:
        """Return the functions that the model can call."""
        return [
            self.create_plan,
            self.update_subtask_state,
            self.finish_subtask,
            self.view_subtasks,
            self.finish_plan,
        ]

    async def get_current_hint(self) -> Msg | None:
        """Return the hint about the plan for this step; None without a plan."""
        hint = None if self.current_plan is None else self.plan_to_hint(self.current_plan)
        if not hint:
            return None
        return Msg("user", tagged(HINT_TAG, hint), "user", metadata={IS_HINT: True})

    async def create_plan(
        self, name: str, description: str, expected_outcome: str, subtasks: list[SubTask]
    ) -> ToolResponse:
        """Plan a task that takes several steps, before you begin. An earlier plan is replaced.

        Args:
            name (`str`): A short name.
            description (`str`): What is to be done, with all conditions it must meet.
            expected_outcome (`str`): What will be there in the end, so that one can check it.
            subtasks (`list[SubTask]`): The steps, in order.
        """
        if not subtasks:
            raise InvalidInput("a plan needs at least one subtask")
        if self.max_subtasks is not None and len(subtasks) > self.max_subtasks:
            raise InvalidInput(f"a plan may have at most {self.max_subtasks} subtasks")
        steps = tuple(replace(step, state="todo", outcome="") for step in subtasks)
        plan = Plan(name, description, expected_outcome, steps)
        self.current_plan = plan.with_state(0, "in_progress")
        return told(f"The plan {name!r} has {len(steps)} subtasks; number 0 is in progress.")

    async def update_subtask_state(
        self, subtask_idx: int, state: Literal["todo", "in_progress", "abandoned"]
    ) -> ToolResponse:
        """Begin a subtask, put it back, or give it up.

        Args:
            subtask_idx (`int`): Its number, from 0.
            state (`str`): The new state. Only one subtask can be in progress.
        """
        self.current_plan = self._plan().with_state(subtask_idx, state)
        return told(f"Subtask {subtask_idx} is {state}.")

    async def finish_subtask(self, subtask_idx: int, subtask_outcome: str) -> ToolResponse:
        """Say that a subtask is done; the next one is then in progress.

        Args:
            subtask_idx (`int`): Its number, from 0.
            subtask_outcome (`str`): What came of it, with all that later steps need.
        """
        plan = self._plan().with_state(subtask_idx, "done", subtask_outcome)
        following = plan.next if plan.current is None else None
        done = f"Subtask {subtask_idx} is done."
        if following is None:
            self.current_plan = plan
            return told(done)
        self.current_plan = plan.with_state(following, "in_progress")
        return told(f"{done} Number {following} is in progress.")

    async def view_subtasks(self, subtask_idx: list[int]) -> ToolResponse:
        """Read subtasks in full, with what came of those that are done.

        Args:
            subtask_idx (`list[int]`): Their numbers, from 0.
        """
        plan = self._plan()
        shown = {str(place): msgspec.to_builtins(plan.step(place)) for place in subtask_idx}
        return told(msgspec.json.encode(shown).decode())

    async def finish_plan(self, state: Literal["done", "abandoned"], outcome: str) -> ToolResponse:
        """Say that the plan is through, or is given up.

        Args:
            state (`str`): Which of the two.
            outcome (`str`): What came of it, or why it was given up.
        """
        name = self._plan().name
        self.current_plan = None
        return told(f"The plan {name!r} is {state}: {outcome}")

    def _plan(self) -> Plan:
        if self.current_plan is None:
            raise InvalidInput("there is no plan; make one with create_plan")
        return self.current_plan


def _plan_of(state: Any) -> Plan | None:
    return msgspec.convert(state, Plan | None)
