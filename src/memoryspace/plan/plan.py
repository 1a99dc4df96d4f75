"""``Plan``: a task in steps. Plans are immutable; a change makes a new plan."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..errors import InvalidInput

State: TypeAlias = Literal["todo", "in_progress", "done", "abandoned"]
SIGNS: dict[State, str] = {"todo": " ", "in_progress": ">", "done": "x", "abandoned": "-"}


class SubTask(Struct, frozen=True):
    """One step of a plan."""

    name: Annotated[str, Meta(description="What is to be done, in a few words")]
    description: Annotated[str, Meta(description="How, with all conditions that it must meet")]
    expected_outcome: Annotated[str, Meta(description="What will be there when it is done")]
    state: Annotated[State, Meta(description="Always todo at first")] = "todo"
    outcome: Annotated[str, Meta(description="Always empty at first")] = ""

    def __str__(self) -> str:
        return f"[{SIGNS[self.state]}] {self.name}"


class Plan(Struct, frozen=True):
    """A task in steps, at most one of them in progress."""

    name: str
    description: str
    expected_outcome: str
    subtasks: tuple[SubTask, ...] = ()

    def __str__(self) -> str:
        steps = "".join(f"\n{place}. {step}" for place, step in enumerate(self.subtasks))
        return f"# {self.name}\n{self.description}\nExpected: {self.expected_outcome}{steps}"

    @property
    def current(self) -> int | None:
        """The index of the step in progress, or None."""
        states = [step.state for step in self.subtasks]
        return states.index("in_progress") if "in_progress" in states else None

    @property
    def next(self) -> int | None:
        """The index of the first step to do, or None."""
        states = [step.state for step in self.subtasks]
        return states.index("todo") if "todo" in states else None

    def step(self, place: int) -> SubTask:
        """Return the step with this index, from 0."""
        if not 0 <= place < len(self.subtasks):
            raise InvalidInput(
                f"there is no subtask {place}; they are numbered from 0 to {len(self.subtasks) - 1}"
            )
        return self.subtasks[place]

    def with_state(self, place: int, state: State, outcome: str = "") -> Plan:
        """Return a copy of the plan with one step in another state."""
        if state == "in_progress" and self.current not in (None, place):
            raise InvalidInput(f"subtask {self.current} is in progress; finish or abandon it first")
        step = replace(self.step(place), state=state, outcome=outcome)
        steps = (*self.subtasks[:place], step, *self.subtasks[place + 1 :])
        return replace(self, subtasks=steps)
