"""The thin form of a message: its big parts are stubs that say where the whole is.

Results of tools shrink to a preview, pictures, sounds and films to their name, and thoughts leave.
What a stub says depends on the part that left and on nothing else, so a message has the same thin
form at all times, and a prompt that shows it stays the same.
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
from .meter import MEDIA_TOKENS, likeness
from .rendering import Kind, dump, media_name, text_of_output

Block: TypeAlias = dict[str, Any]

_RESULT = """\
{preview}
[This result left the context: {lines:,} lines, {characters:,} characters. \
To read it: read_memory("{handle}", first_line, last_line)]"""
_MEDIUM = '[{name}, left the context and is kept as "{handle}"]'
_MOST_KNOWN = 10_000  # thin forms that are remembered
_SHARE = 4  # a preview is at most so much of the whole: a quarter


class Part(NamedTuple):
    """Something that a thin message does without."""

    what: What
    parcel: Parcel
    handle: str


class Thinned(NamedTuple):
    """A thin message, and what it does without."""

    message: Msg
    parts: tuple[Part, ...]


class Thinner:
    """Makes thin forms, each once, with ``preview`` characters of a result left.

    A handle is the beginning of a content's digest, unless the archive had to take more of it.
    """

    def __init__(self, preview: int) -> None:
        self.preview = preview
        self._longer: dict[str, str] = {}  # digest → handle
        self._known: dict[tuple[str, int], Thinned | None] = {}

    def thin(self, msg: Msg) -> Thinned | None:
        """Return the thin form of a message; None if it has none: nothing in it is big."""
        key = msg.id, likeness(msg)
        if key not in self._known:
            self._known[key] = self._thinned(msg)
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return self._known[key]

    def handle(self, kind: Kind, data: str) -> str:
        """Return the handle that a content will have."""
        digest = digest_of(kind, data)
        return self._longer.get(digest, digest[:SHORTEST_HANDLE])

    def rename(self, kind: Kind, data: str, handle: str) -> bool:
        """Learn the handle that a content really has; tell whether it is another."""
        if handle == self.handle(kind, data):
            return False
        self._longer[digest_of(kind, data)] = handle
        self._known.clear()
        return True

    def _thinned(self, msg: Msg) -> Thinned | None:
        content = peek_content(msg)
        if isinstance(content, str):
            return None
        bench = _Bench(msg.id, self.preview, self._keep)
        blocks = bench.thin(content)
        return Thinned(_with(msg, blocks), tuple(bench.parts)) if bench.parts else None

    def _keep(self, kind: Kind, data: str) -> Kept:
        return described(kind, data, self.handle(kind, data))


class _Bench:
    """Thins the blocks of one message and collects what leaves."""

    def __init__(self, holder: str, preview: int, keep: Callable[[Kind, str], Kept]) -> None:
        self.parts: list[Part] = []
        self._holder, self._preview, self._keep = holder, preview, keep

    def thin(self, content: list[Any]) -> list[Any]:
        thoughts = [block for block in content if _type(block) == "thinking"]
        is_all = len(thoughts) == len(content)  # a message that says nothing is none
        if is_all or (thoughts and self._take("thinking", thoughts) is None):
            thoughts = []
        others = [block for block in content if not (thoughts and _type(block) == "thinking")]
        return [self._thin_block(block) for block in others]

    def _thin_block(self, block: Any) -> Any:
        kind = _type(block)
        if kind == "tool_result":
            return self._thin_result(block)
        if kind in MEDIA_TOKENS:
            kept = self._take("media", [block])
            return block if kept is None else _text(_media_stub(block, kept))
        return block

    def _thin_result(self, block: Block) -> Block:
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
        """Have something kept; None where it cannot be written down, and so has to stay."""
        kind: Kind = "text" if isinstance(value, str) else "blocks"
        try:
            data = value if isinstance(value, str) else dump(value)
        except NotSerializable:
            return None
        kept = self._keep(kind, data)
        self.parts.append(Part(what, Parcel(data, kind, self._holder), kept.handle))
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
    """Return so many characters of a text: most of its beginning, some of its end."""
    end = length // _SHARE
    if not end:
        return text[:length]
    return f"{text[: length - end].rstrip()}\n…\n{text[-end:].lstrip()}"


def _is_worth_it(output: Any, text: str, preview: int) -> bool:
    """Whether the stub is clearly shorter than what it stands for."""
    if isinstance(output, list) and any(_type(block) in MEDIA_TOKENS for block in output):
        return True
    around = len(_RESULT) + 32  # the handle and the numbers are longer than their names
    return len(text) > min(preview, len(text) // _SHARE) + around


def _with(msg: Msg, blocks: list[Any]) -> Msg:
    """Return a message like another one, with other blocks."""
    new = Msg(
        msg.name, blocks, msg.role, peek_metadata(msg), msg.timestamp, msg.invocation_id
    )  # fmt: skip
    new.id = msg.id
    return new


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _type(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None
