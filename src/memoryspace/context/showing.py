"""What a draft comes to: the resident messages, and the page table that shows them again."""

from __future__ import annotations

from ..message import Msg, thaw
from .draft import Draft, ids_of
from .history import Fate, Group
from .pages import Pages


def messages_of(draft: Draft) -> list[Msg]:
    """Return what is resident: instructions, the stand-in, and the rest in order."""
    first = len(draft.history.instructions)
    shown = [_own(group, at) for group in draft.resident() for at in range(len(group.messages))]
    if not draft.stand_in.text:
        return shown
    return [*shown[:first], draft.stand_in.message(draft.history.began), *shown[first:]]


def pages_of(draft: Draft) -> Pages:
    """Return the page table that shows the history as this draft does."""
    return Pages(
        offloaded=frozenset(
            msg.id
            for group in draft.resident()
            for at, msg in enumerate(group.originals)
            if not group.is_whole(at)
        ),
        summarised=_ids_of(draft, "summarised"),
        dropped=_ids_of(draft, "dropped"),
        summary=draft.stand_in.text,
    )


def _ids_of(draft: Draft, fate: Fate) -> frozenset[str]:
    return frozenset(ids_of([group for group in draft.groups if group.fate == fate]))


def _own(group: Group, at: int) -> Msg:
    """A thin form is remembered, so whoever asks gets one of his own."""
    return group.messages[at] if group.is_whole(at) else thaw(group.messages[at])
