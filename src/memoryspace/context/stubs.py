"""Stubs: what stays of a message whose big parts left, with the handles to read them by.

Tool results shrink to a preview, media to a name, and thinking blocks are removed. A stub depends
only on the part it replaces, so a message always gets the same stubs and the prompt stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ..errors import NotSerializable
from ..message import Msg
from ..message.msg import peek_content, peek_metadata
from .archive import Kept, Parcel, digest_of
from .archive.base import SHORTEST_HANDLE, described
from .losses import What
from .meter import MEDIA_TOKENS, fingerprint
from .rendering import Kind, dump, media_name, text_of_output

Block: TypeAlias = dict[str, Any]

_RESULT = """\
{preview}
[This result left the context: {lines:,} lines, {characters:,} characters. \
To read it: read_memory("{handle}", first_line, last_line)]"""
_MEDIUM = '[{name}, left the context and is kept as "{handle}"]'
_MAX_CACHED = 10_000  # stubbed messages
_SHARE = 4  # a preview is at most a quarter of the whole


class OffloadedPart(NamedTuple):
    """A part of a message that a stub replaces."""

    what: What
    parcel: Parcel
    handle: str


class StubbedMessage(NamedTuple):
    """A message with stubs, and the parts they replace."""

    message: Msg
    parts: tuple[OffloadedPart, ...]


class StubMaker:
    """Replaces the big parts of messages by stubs, with ``preview`` characters of each result.

    Stubbed messages are cached. A handle is the beginning of a content's digest; ``rename`` records
    the longer ones that an archive had to choose.
    """

    def __init__(self, preview: int) -> None:
        self.preview = preview
        self._longer: dict[str, str] = {}  # digest → handle
        self._known: dict[tuple[str, int], StubbedMessage | None] = {}

    def stub(self, msg: Msg) -> StubbedMessage | None:
        """Return a message with stubs, or None if nothing in it is big."""
        key = msg.id, fingerprint(msg)
        if key not in self._known:
            self._known[key] = self._make(msg)
            if len(self._known) > _MAX_CACHED:
                del self._known[next(iter(self._known))]
        return self._known[key]

    def handle(self, kind: Kind, data: str) -> str:
        """Return the handle of a content."""
        digest = digest_of(kind, data)
        return self._longer.get(digest, digest[:SHORTEST_HANDLE])

    def rename(self, kind: Kind, data: str, handle: str) -> bool:
        """Record the handle that the archive chose; return whether it is a different one."""
        if handle == self.handle(kind, data):
            return False
        self._longer[digest_of(kind, data)] = handle
        self._known.clear()
        return True

    def _make(self, msg: Msg) -> StubbedMessage | None:
        content = peek_content(msg)
        if isinstance(content, str):
            return None
        stubber = _BlockStubber(msg.id, self.preview, self._keep)
        blocks = stubber.stub(content)
        return StubbedMessage(_with(msg, blocks), tuple(stubber.parts)) if stubber.parts else None

    def _keep(self, kind: Kind, data: str) -> Kept:
        return described(kind, data, self.handle(kind, data))


class _BlockStubber:
    """Stubs the blocks of one message and collects the parts that leave."""

    def __init__(self, holder: str, preview: int, keep: Callable[[Kind, str], Kept]) -> None:
        self.parts: list[OffloadedPart] = []
        self._holder, self._preview, self._keep = holder, preview, keep

    def stub(self, content: list[Any]) -> list[Any]:
        thoughts = [block for block in content if _type(block) == "thinking"]
        is_all = len(thoughts) == len(content)  # a message must not become empty
        if is_all or (thoughts and self._take("thinking", thoughts) is None):
            thoughts = []
        others = [block for block in content if not (thoughts and _type(block) == "thinking")]
        return [self._stub_block(block) for block in others]

    def _stub_block(self, block: Any) -> Any:
        kind = _type(block)
        if kind == "tool_result":
            return self._stub_result(block)
        if kind in MEDIA_TOKENS:
            kept = self._take("media", [block])
            return block if kept is None else _text(_media_stub(block, kept))
        return block

    def _stub_result(self, block: Block) -> Block:
        output = block.get("output")
        text = text_of_output(output)
        if not _is_worth_it(output, text, self._preview):
            return block
        kept = self._take("tool_result", output)
        if kept is None:
            return block
        stub = _result_stub(text, kept, self._preview)
        return {**block, "output": stub if isinstance(output, str) else [_text(stub)]}

    def _take(self, what: What, value: Any) -> Kept | None:
        """Collect a part; return None if it cannot be serialised and so must stay."""
        kind: Kind = "text" if isinstance(value, str) else "blocks"
        try:
            data = value if isinstance(value, str) else dump(value)
        except NotSerializable:
            return None
        kept = self._keep(kind, data)
        self.parts.append(OffloadedPart(what, Parcel(data, kind, self._holder), kept.handle))
        return kept


def _result_stub(text: str, kept: Kept, preview: int) -> str:
    return _RESULT.format(
        preview=_beginning_and_end(text, min(preview, len(text) // _SHARE)),
        lines=kept.lines,
        characters=kept.characters,
        handle=kept.handle,
    ).lstrip("\n")


def _media_stub(block: Block, kept: Kept) -> str:
    return _MEDIUM.format(name=media_name(block), handle=kept.handle)


def _beginning_and_end(text: str, length: int) -> str:
    """Return ``length`` characters of a text: most from its beginning, some from its end."""
    end = length // _SHARE
    if not end:
        return text[:length]
    return f"{text[: length - end].rstrip()}\n…\n{text[-end:].lstrip()}"


def _is_worth_it(output: Any, text: str, preview: int) -> bool:
    """Return whether the stub is clearly shorter than the output."""
    if isinstance(output, list) and any(_type(block) in MEDIA_TOKENS for block in output):
        return True
    around = len(_RESULT) + 32  # the handle and the numbers are longer than their names
    return len(text) > min(preview, len(text) // _SHARE) + around


def _with(msg: Msg, blocks: list[Any]) -> Msg:
    """Return a copy of a message with other blocks."""
    new = Msg(
        msg.name, blocks, msg.role, peek_metadata(msg), msg.timestamp, msg.invocation_id
    )  # fmt: skip
    new.id = msg.id
    return new


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _type(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None
