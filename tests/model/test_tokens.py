import json
import sys
from typing import Any

import pytest

from memoryspace.errors import MissingExtra
from memoryspace.token import (
    CharTokenCounter,
    EstimatedTokenCounter,
    OpenAITokenCounter,
    TokenCounterBase,
    estimate_tokens,
)

ENGLISH = """\
The harbour was quiet when the last ferry left, and only a few gulls were still arguing over the
remains of someone's lunch. Maria had promised to call before nine, so I walked up and down the
pier, counting the lamps and trying not to look at my watch. By the time the telephone rang, it
had begun to rain, softly at first and then with the kind of conviction that empties a street. She
said that the train had been delayed outside the city, that she was cold and rather hungry, and
that under no circumstances should I start cooking without her. I laughed, turned up my collar and
went home by the long way, past the bakery and the old customs house."""

CHINESE = """\
去年冬天，我和几个朋友去了一趟北方的小城。火车开了整整一个晚上，窗外一直下着雪，车厢里却很暖和。
第二天早上我们到站的时候，天还没有完全亮，街上只有几家卖早点的小店开着门。我们每人要了一碗热豆浆和
两根油条，老板听出我们是南方人，笑着问我们冷不冷。后来他告诉我们，城外有一条结了冰的河，孩子们放学
以后都喜欢去那里滑冰。下午我们果然去了，虽然摔了好几次，但是大家都玩得很开心。"""

MIXED = """\
我们的 agent 每次对话结束以后，会把重要的信息写进 long-term memory，例如用户的名字和喜欢的
编程语言。If the user says that something has changed, the old fact is not deleted but marked as
outdated, 这样以后还能查到它的来源。目前 retrieval 的准确率大约是 87%，延迟在 20 ms 左右；下一步
我们打算 compare three embedding models on the same data，然后再决定用哪一个。"""

CODE = '''\
def merge_intervals(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of the intervals, sorted and without overlaps."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


class Window:
    def __init__(self, size: int) -> None:
        self.size = size
        self.items: list[str] = []

    def push(self, item: str) -> None:
        self.items.append(item)
        if len(self.items) > self.size:
            del self.items[0]
'''

JSON = json.dumps(
    {"id": 17, "name": "search", "arguments": {"query": "weather in Oslo", "limit": 5}}, indent=2
)

TEXTS = {"english": ENGLISH, "chinese": CHINESE, "mixed": MIXED, "code": CODE, "json": JSON}
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


async def exact(text: str) -> int:
    """Return the tokens of the text alone."""
    return await OpenAITokenCounter().count([{"content": text}]) - 6


@pytest.mark.parametrize("counter", [CharTokenCounter, EstimatedTokenCounter, OpenAITokenCounter])
async def test_no_messages_count_nothing(counter: type[TokenCounterBase]) -> None:
    assert await counter().count([]) == 0


@pytest.mark.parametrize("counter", [CharTokenCounter, EstimatedTokenCounter, OpenAITokenCounter])
async def test_tools_are_counted_too(counter: type[TokenCounterBase]) -> None:
    messages = [{"role": "user", "content": "hello"}]
    without = await counter().count(messages)
    assert await counter().count(messages, []) == await counter().count(messages, None) == without
    assert await counter().count(messages, TOOLS) > without


@pytest.mark.parametrize("counter", [CharTokenCounter, EstimatedTokenCounter, OpenAITokenCounter])
async def test_counting_leaves_the_messages_as_they_are(counter: type[TokenCounterBase]) -> None:
    messages = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]
    await counter().count(messages, TOOLS)
    assert messages == [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]


async def test_characters_are_those_of_the_messages_as_lines() -> None:
    first, second = {"role": "user", "content": "你好"}, {"role": "assistant", "content": "hello"}
    counter = CharTokenCounter()
    assert await counter.count([first]) == len(str(first))
    assert await counter.count([first, second]) == len(f"{first}\n{second}")
    assert await counter.count([first, second], TOOLS) == len(f"{first}\n{second}\n{TOOLS}")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_an_estimate_is_close_to_the_exact_count(text: str) -> None:
    assert estimate_tokens(text) == pytest.approx(await exact(text), rel=0.15)


async def test_an_estimate_of_messages_is_close_to_the_exact_count() -> None:
    messages = [{"role": "user", "name": kind, "content": text} for kind, text in TEXTS.items()]
    estimated = await EstimatedTokenCounter().count(messages)
    assert estimated == pytest.approx(await OpenAITokenCounter().count(messages), rel=0.15)


async def test_an_estimate_reaches_into_blocks_and_tool_calls() -> None:
    counter = EstimatedTokenCounter()
    plain = await counter.count([{"role": "user", "content": [{"type": "text", "text": ""}]}])
    longer = await counter.count([{"role": "user", "content": [{"type": "text", "text": ENGLISH}]}])
    assert longer - plain == estimate_tokens(ENGLISH)
    call = {"function": {"name": "f", "arguments": CHINESE}}
    assert await counter.count([{"tool_calls": [call]}]) > estimate_tokens(CHINESE)


def test_an_estimate_of_nothing_is_nothing() -> None:
    assert estimate_tokens("") == estimate_tokens("   ") == 0


async def test_each_message_adds_three_and_the_reply_three() -> None:
    counter = OpenAITokenCounter()
    assert await counter.count([{}]) == 3 + 3
    assert await counter.count([{}, {}, {}]) == 3 * 3 + 3
    assert await counter.count([{"role": "user", "content": "hello"}]) == 3 + 1 + 1 + 3


async def test_a_name_adds_one_to_its_own_tokens() -> None:
    without = await OpenAITokenCounter().count([{"role": "user", "content": "hello"}])
    named = [{"role": "user", "content": "hello", "name": "user"}]
    assert await OpenAITokenCounter().count(named) == without + 1 + 1


async def test_tool_calls_count_as_json() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "找", "arguments": '{"a": 1}'}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    written = json.dumps(calls, ensure_ascii=False)
    assert await OpenAITokenCounter().count([message]) == 6 + 1 + await exact(written)


async def test_text_parts_count_as_their_text() -> None:
    parts = [{"type": "text", "text": "hello"}, {"type": "text", "text": ENGLISH}]
    expected = 6 + await exact("hello") + await exact(ENGLISH)
    assert await OpenAITokenCounter().count([{"content": parts}]) == expected


@pytest.mark.parametrize(
    ("image", "tokens"),
    [({"url": "http://x/y.png"}, 765), ({"url": "data:…", "detail": "low"}, 85)],
)
async def test_a_picture_counts_by_its_detail(image: dict[str, str], tokens: int) -> None:
    part = {"type": "image_url", "image_url": image}
    assert await OpenAITokenCounter().count([{"content": [part]}]) == 6 + tokens


@pytest.mark.parametrize("field", [{"content": 5}, {"content": {}}, {"extra": ["x"]}])
async def test_a_field_of_unknown_type_is_a_type_error(field: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(field))):
        await OpenAITokenCounter().count([{"role": "user", **field}])


async def test_control_tokens_in_a_text_are_only_text() -> None:
    assert await exact("<|endoftext|>") > 1


def test_without_the_extra_the_exact_counter_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(MissingExtra, match=r"pip install 'memoryspace\[tokens\]'"):
        OpenAITokenCounter()
    assert issubclass(MissingExtra, ImportError)


async def test_the_estimate_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert await EstimatedTokenCounter().count([{"role": "user", "content": ENGLISH}]) > 100
