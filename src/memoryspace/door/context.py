"""The block of a prompt: what is known and was said that bears on a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from ..errors import MissingExtra
from ..service.long_term.rendering import Rendered, quoted, rendered
from ..service.values.memory import MemoryItem
from ..service.values.results import MemoryHit
from ..token import OpenAITokenCounter, estimate_tokens

TokenCount = Callable[[str], int]


class Material(Struct, frozen=True):
    """What may go into a context: hits, best first, and standing instructions."""

    hits: Sequence[MemoryHit]
    instructions: Sequence[MemoryItem]

    def memories(self) -> list[MemoryItem]:
        """Return instructions, then facts that hold now, then what was said, each once."""
        facts = [fact for hit in self.hits for fact in hit.facts if fact.valid_to is None]
        said = [hit.memory for hit in self.hits]
        each = {memory.id: memory for memory in (*self.instructions, *facts, *said)}
        return [memory for memory in each.values() if not memory.holds_secret]

    def notes(self) -> dict[str, str]:
        """Return what to say of messages that a later one contradicts."""
        return {
            hit.memory.id: f"NO LONGER TRUE, see id {quoted(hit.superseded_by)}"
            for hit in self.hits
            if hit.superseded_by is not None
        }


def block(material: Material, max_tokens: int, now: float, count: TokenCount) -> Rendered:
    """Return the material as text within a budget."""
    return rendered(
        material.memories(), max_tokens=max_tokens, now=now, count=count, notes=material.notes()
    )


def best_count() -> TokenCount:
    """Return the exact count if the extra ``tokens`` is installed, else an estimate."""
    try:
        return OpenAITokenCounter().count_text
    except MissingExtra:
        return estimate_tokens
