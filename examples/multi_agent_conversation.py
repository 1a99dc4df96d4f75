"""Three agents in a conversation. Each hears what the others say and has its own memory.

    python examples/multi_agent_conversation.py

Their lines are scripted below. To let a model write them, use an OpenAI-compatible server:

    pip install 'memoryspace[openai]'
    MEMORYSPACE_MODEL_URL=http://localhost:11434/v1 MEMORYSPACE_MODEL=qwen3:8b python examples/...
"""

import asyncio
import os

from memoryspace.agent import ReActAgent
from memoryspace.formatter import OpenAIMultiAgentFormatter
from memoryspace.message import Msg
from memoryspace.model import ChatModelBase
from memoryspace.pipeline import MsgHub, sequential_pipeline
from memoryspace.testing import ScriptedModel
from memoryspace.testing.scripted import Line

PLAY = """You are {name}, {role}. You and two friends plan a picnic. Say one or two sentences at a
time, in your own voice."""


async def main() -> None:
    """Run the example."""
    ann = friend("Ann", "who loves rivers", *ANN)
    bob = friend("Bob", "who cooks and worries about the weather", *BOB)
    cat = friend("Cat", "who has a car, and a surprise for Bob's birthday in mind", *CAT)

    announcement = Msg("host", "Saturday is free. Where do you go, and who brings what?", "user")
    async with MsgHub([ann, bob, cat], announcement) as hub:
        await sequential_pipeline([ann, bob, cat])  # each hears those before it
        print("\n(Bob goes to look for his raincoat.)\n")
        hub.delete(bob)
        await sequential_pipeline([cat, ann])  # Bob does not hear this
        print("\n(Bob is back.)\n")
        hub.add(bob)
        await sequential_pipeline([bob])

    print()
    for agent in (ann, bob, cat):
        heard = await agent.memory.get_memory()
        knows = any("cake" in (msg.get_text_content() or "") for msg in heard)
        print(f"{agent.name} remembers {len(heard)} messages; knows of the cake: {knows}")
    thoughts = [msg for msg in await ann.memory.get_memory() if msg.has_content_blocks("thinking")]
    print(f"what Cat only thought is in Ann's memory: {bool(thoughts)}")


ANN: tuple[Line, ...] = (
    "The bend of the river, below the old mill! I bring blankets and lemonade.",
    "Count me in. I will bring candles, and say nothing.",
)
BOB: tuple[Line, ...] = (
    "If it does not rain. I make a quiche and bring an umbrella for everybody.",
    "Found it! What were you two whispering about?",
)
CAT: tuple[Line, ...] = (
    [
        {"type": "thinking", "thinking": "Bob must not know of the cake yet."},
        {"type": "text", "text": "I drive. Ten o'clock at the mill, then."},
    ],
    "Quick, while he is away: it is his birthday. I have ordered a cake.",
)


def friend(name: str, role: str, *lines: Line) -> ReActAgent:
    """Return an agent with its own memory."""
    play = PLAY.format(name=name, role=role)
    return ReActAgent(name, play, model_of(*lines), OpenAIMultiAgentFormatter())


def model_of(*lines: Line) -> ChatModelBase:
    """Return a scripted model, or a real one if ``MEMORYSPACE_MODEL_URL`` is set."""
    url = os.environ.get("MEMORYSPACE_MODEL_URL")
    if url is None:
        return ScriptedModel(*lines)
    from memoryspace.model import OpenAIChatModel

    name, key = os.environ["MEMORYSPACE_MODEL"], os.environ.get("MEMORYSPACE_MODEL_KEY", "none")
    return OpenAIChatModel(name, key, client_kwargs={"base_url": url})


if __name__ == "__main__":
    asyncio.run(main())
