"""Token counting: how many tokens each message takes in a prompt.

``Meter`` measures and caches. ``PromptCounter`` finds what a group of messages adds to a prompt
with a given counter and formatter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..formatter.base import FormatterBase
from ..message import Msg, groups_of
from ..message.msg import peek_content
from ..token import EstimatedTokenCounter, TokenCounterBase, estimate_tokens
from ..token.base import texts_in
from .rendering import text_of_content

# Tokens of a media block, wherever its data is: a guess, but never the length of its data.
MEDIA_TOKENS = {"image": 765, "audio": 800, "video": 3000}
_TOKENS_PER_MESSAGE = 4  # its role and delimiters
_CHARACTERS_PER_TOKEN = 4
_UNREAD = ("type", "raw_input")  # fields of blocks that no model sees
_MAX_CACHED = 50_000  # measured groups

# The small conversation within which groups are counted.
_USER = Msg("user", "word", "user")
_ASSISTANT = Msg("assistant", "word", "assistant")
_STEP = [
    Msg("assistant", [{"type": "tool_use", "id": "a", "name": "b", "input": {}}], "assistant"),
    Msg("system", [{"type": "tool_result", "id": "a", "name": "b", "output": "word"}], "system"),
]


class Meter:
    """Measures messages in tokens.

    Measurements are cached by content, so a message is measured again only if it changes. A tool
    call and its results are measured together, and their tokens divided among them.

    Args:
        counter: Counts the tokens of formatted messages; an estimate by default.
        formatter: Formats messages as the model's provider receives them. Without it, role and
            plain text are counted.

    Example::

        meter = Meter(OpenAITokenCounter("gpt-4o"), OpenAIChatFormatter())
        tokens = sum(await meter.costs(messages))
    """

    def __init__(
        self, counter: TokenCounterBase | None = None, formatter: FormatterBase | None = None
    ) -> None:
        self._prompt_counter: PromptCounter | None = None
        if counter is not None or formatter is not None:
            self._prompt_counter = PromptCounter(
                counter if counter is not None else EstimatedTokenCounter(), formatter
            )
        self._known: dict[int, list[int]] = {}

    async def costs(self, messages: Sequence[Msg]) -> list[int]:
        """Return the tokens of each message."""
        return [cost for group in groups_of(messages) for cost in await self.group_costs(group)]

    async def group_costs(self, group: Sequence[Msg]) -> list[int]:
        """Return the tokens of each message of one atomic group."""
        key = hash(tuple(map(fingerprint, group)))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = await self.measure(group)
            if len(self._known) > _MAX_CACHED:
                del self._known[next(iter(self._known))]
        return known

    async def frame(self) -> int:
        """Return the tokens of a prompt besides its messages."""
        return await self._prompt_counter.frame() if self._prompt_counter is not None else 0

    async def measure(self, group: Sequence[Msg]) -> list[int]:
        """Measure each message of one atomic group; ``group_costs`` caches the result."""
        if self._prompt_counter is None:
            return [estimated_cost(msg) for msg in group]
        counted = await self._prompt_counter.cost([_without_media(msg) for msg in group])
        whole = counted + sum(map(media_cost, group))
        return [whole] if len(group) == 1 else divided(whole, [*map(_weight, group)])


def fingerprint(msg: Msg) -> int:
    """Return a hash of a message's role, name and content.

    Python strings cache their hash, so this costs little more than a walk over the blocks.
    """
    return hash((msg.role, msg.name, _hashable(peek_content(msg))))


def estimated_cost(msg: Msg) -> int:
    """Estimate the tokens of a message in a prompt."""
    content = peek_content(msg)
    cost = _TOKENS_PER_MESSAGE + estimate_tokens(msg.name)
    if isinstance(content, str):
        return cost + estimate_tokens(content)
    return cost + sum(map(estimate_tokens, _texts(content))) + media_cost(msg)


def media_cost(msg: Msg) -> int:
    """Return the tokens of the media in a message."""
    content = peek_content(msg)
    return 0 if isinstance(content, str) else sum(map(_media_tokens, _media(content)))


def _weight(msg: Msg) -> int:
    """Estimate the characters of a message in a prompt."""
    content = peek_content(msg)
    texts = [content] if isinstance(content, str) else _texts(content)
    return _CHARACTERS_PER_TOKEN * (_TOKENS_PER_MESSAGE + media_cost(msg)) + sum(map(len, texts))


def _media(blocks: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if isinstance(block, dict):
            if block.get("type") in MEDIA_TOKENS:
                yield block
            elif block.get("type") == "tool_result" and isinstance(block.get("output"), list):
                yield from _media(block["output"])


def _media_tokens(block: dict[str, Any]) -> int:
    return MEDIA_TOKENS[block["type"]]


def _texts(blocks: Sequence[Any]) -> Iterator[str]:
    """Yield the texts in blocks that a model reads, without field names."""
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in MEDIA_TOKENS:
            continue
        if kind == "tool_result" and isinstance(block.get("output"), list):
            yield from (str(block.get("id", "")), str(block.get("name", "")))
            yield from _texts(block["output"])
        elif isinstance(block, dict):
            yield from texts_in([value for key, value in block.items() if key not in _UNREAD])
        else:
            yield str(block)


def _without_media(msg: Msg) -> Msg:
    content = peek_content(msg)
    if isinstance(content, str) or not any(True for _ in _media(content)):
        return msg
    bare = Msg(msg.name, _bare(content), msg.role)
    bare.id = msg.id
    return bare


def _bare(blocks: Sequence[Any]) -> list[Any]:
    kept: list[Any] = []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result" and isinstance(block.get("output"), list):
            kept.append({**block, "output": _bare(block["output"])})
        elif kind not in MEDIA_TOKENS:
            kept.append(block)
    return kept


def divided(whole: int, shares: Sequence[int]) -> list[int]:
    """Divide a number in proportion to shares; the remainder goes to the first."""
    total = max(1, sum(shares))
    parts = [whole * share // total for share in shares]
    parts[0] += whole - sum(parts)
    return parts


def _hashable(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return tuple([(key, _hashable(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    return repr(value)


class PromptCounter:
    """Counts what a group of messages adds to a formatted prompt.

    Some formatters treat each group on its own: the group is formatted and counted. Others merge
    turns, insert fillers where a provider requires a speaker, or add delimiters: there a group is
    formatted within a small conversation, and the tokens of that conversation are subtracted.
    """

    def __init__(self, counter: TokenCounterBase, formatter: FormatterBase | None) -> None:
        self._counter = counter
        self._formatter = formatter
        self._known: dict[str, int] = {}
        self._is_plain: bool | None = None

    async def frame(self) -> int:
        """Return the tokens of a prompt besides its messages, with fillers at both ends."""
        if await self._formats_one_by_one():
            return await self._bare_frame()
        turn = await self._turn()
        bare = await self._short() - 3 * turn
        lone = await self._constant("lone", [_ASSISTANT])
        return bare + max(0, lone - bare - turn)

    async def cost(self, group: Sequence[Msg]) -> int:
        """Return the tokens that a group adds to a conversation."""
        if await self._formats_one_by_one():
            prompt = await self._prompt(list(group))
            counted = await self._counter.count(prompt) - await self._bare_frame() if prompt else 0
        elif len(group) > 1:
            counted = await self._count([_USER, *group, _ASSISTANT, _USER]) - await self._short()
        elif group[0].role == "system":
            counted = await self._count([*group, _USER]) - await self._constant("user", [_USER])
        elif group[0].role == "assistant":
            whole = await self._count([_USER, *group, _USER])
            counted = whole - await self._short() + await self._turn()
        else:
            whole = await self._count([_USER, _ASSISTANT, *group, _ASSISTANT, _USER])
            counted = whole - await self._long() + await self._turn()
        return max(0, counted)

    async def _formats_one_by_one(self) -> bool:
        """Return whether formatting all messages equals formatting each group by itself."""
        if self._is_plain is None:
            groups = [[_USER], [_ASSISTANT], _STEP, [_USER]]
            apart = [each for group in groups for each in await self._prompt(list(group))]
            together = await self._prompt([msg for group in groups for msg in group])
            self._is_plain = apart == together
        return self._is_plain

    async def _bare_frame(self) -> int:
        """Return what the counter adds to any prompt: twice one message less two messages."""
        if "frame" not in self._known:
            one = await self._prompt([_USER])
            twice = await self._counter.count([*one, *one])
            self._known["frame"] = 2 * await self._counter.count(one) - twice
        return self._known["frame"]

    async def _turn(self) -> int:
        """Return the tokens of a turn of one word."""
        return -((await self._short() - await self._long()) // 2)

    async def _short(self) -> int:
        return await self._constant("short", [_USER, _ASSISTANT, _USER])

    async def _long(self) -> int:
        return await self._constant("long", [_USER, _ASSISTANT, _USER, _ASSISTANT, _USER])

    async def _constant(self, name: str, messages: list[Msg]) -> int:
        if name not in self._known:
            self._known[name] = await self._count(messages)
        return self._known[name]

    async def _count(self, messages: list[Msg]) -> int:
        return await self._counter.count(await self._prompt(messages))

    async def _prompt(self, messages: list[Msg]) -> list[dict[str, Any]]:
        if self._formatter is not None:
            return await self._formatter.format_group(messages)
        return [{"role": msg.role, "content": text_of_content(msg)} for msg in messages]
