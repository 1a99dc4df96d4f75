"""Helpers for the tests of compaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from memoryspace.context import Compacted, Compactor
from memoryspace.context.history import GroupedHistory
from memoryspace.message import Msg

WORDS = "one two three four five six seven eight nine ten "


def said(text: str, role: Any = "user", id: str = "") -> Msg:
    msg = Msg(role, text, role)
    msg.id = id if id else msg.id
    return msg


def step(number: object, output: Any = "done", name: str = "look", **arguments: Any) -> list[Msg]:
    """A call of a tool and its result."""
    call: Any = {"type": "tool_use", "id": f"call-{number}", "name": name, "input": arguments}
    result: Any = {"type": "tool_result", "id": f"call-{number}", "name": name, "output": output}
    return [Msg("agent", [call], "assistant"), Msg("system", [result], "system")]


def conversation(turns: int, words: int = 5) -> list[Msg]:
    return [
        said(f"{role} says number {turn}. " + WORDS * words, role)
        for turn in range(turns)
        for role in ("user", "assistant")
    ]


def heavier(msg: Msg, times: int) -> Msg:
    """A message with every text in it repeated, as long as real ones are."""
    content = msg.content
    if isinstance(content, str):
        msg.content = content * times
    else:
        msg.content = [_heavier(block, times) for block in content]
    return msg


def _heavier(value: Any, times: int) -> Any:
    if not isinstance(value, dict):
        return value
    new = dict(value)
    for name in ("text", "thinking", "output", "data"):
        if isinstance(new.get(name), str):
            new[name] = new[name] * times
    if isinstance(new.get("output"), list):
        new["output"] = [_heavier(each, times) for each in new["output"]]
    if isinstance(new.get("source"), dict):
        new["source"] = _heavier(new["source"], times)
    return new


def as_text(value: Any) -> str:
    """A value to be compared byte for byte; NaN equals itself here."""
    return json.dumps(value.to_dict() if isinstance(value, Msg) else value, default=repr)


class Session:
    """A conversation that is compacted again and again, and what has left it so far."""

    def __init__(self, compactor: Compactor) -> None:
        self.compactor = compactor
        self.done: Compacted | None = None
        self.handles: set[str] = set()

    async def compact(self, history: Sequence[Msg], **options: Any) -> Compacted:
        pages = self.done.pages if self.done is not None else None
        self.done = await self.compactor.compact(history, pages=pages, **options)
        self.handles.update(self.done.report.handles)
        return self.done

    async def check(
        self, history: Sequence[Msg], pinned: Collection[str] = (), hints: Collection[str] = ()
    ) -> None:
        """Everything is either there as it was, or can be had back byte for byte."""
        assert self.done is not None
        whole = GroupedHistory(history, pinned=pinned, hints=hints)
        kept = [await self.compactor.expand(handle) for handle in self.handles]
        told = {as_text(each) for each in kept}
        messages = {as_text(each) for some in kept for each in some if isinstance(each, Msg)}
        shown = {msg.id: msg for msg in self.done.messages}
        for msg in whole.messages:
            if msg.id not in shown:
                assert as_text(msg) in messages, "a message is gone"
            elif as_text(msg) != as_text(shown[msg.id]):
                check_stubbed(msg, shown[msg.id], told)
        self.check_what_stays(whole)
        self.check_report()
        self.compactor.archive.check()

    def check_what_stays(self, whole: GroupedHistory) -> None:
        assert self.done is not None
        shown = {msg.id: msg for msg in self.done.messages}
        for msg in whole.messages:
            if msg.id in whole.pinned or msg.id == whole.newest:
                assert as_text(shown[msg.id]) == as_text(msg), "what must stay has changed"
        order = [msg.id for msg in whole.messages if msg.id in shown]
        assert [msg.id for msg in self.done.messages if msg.id in set(order)] == order

    def check_report(self) -> None:
        assert self.done is not None
        report = self.done.report
        assert all(loss.tokens >= (loss.what != "summary") for loss in report.losses)
        lost = sum(loss.tokens for loss in report.losses)
        assert report.tokens_before - lost == report.tokens_after
        assert report.is_within_budget == (report.excess == "")


def check_stubbed(msg: Msg, stubbed: Msg, told: set[str]) -> None:
    """Every part of a message is in its stubbed form, or among what can be had back."""
    for name in ("name", "role", "timestamp", "invocation_id", "metadata"):
        assert as_text(getattr(stubbed, name)) == as_text(getattr(msg, name))
    left = [as_text(block) for block in stubbed.content]
    thoughts = []
    for block in msg.content:
        assert isinstance(block, dict)
        if as_text(block) in left:
            continue
        if block["type"] == "thinking":
            thoughts.append(block)
        elif block["type"] == "tool_result":
            assert as_text(block["output"]) in told, "a result is gone"
        else:
            assert as_text([block]) in told, "a part is gone"
    assert not thoughts or as_text(thoughts) in told
