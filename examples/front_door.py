"""A memory in a folder: remember, search, explain, keep a conversation, go back, forget.

Run it twice: the second run finds what the first one remembered.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp

from memoryspace import Memory


def main(folder: Path) -> None:
    """Walk through the door, in a folder."""
    with Memory(folder, user="ann") as memory:
        print("known from earlier runs:", len(memory.list()))
        receipt = memory.add(["I live in Rome.", "My sister Mia lives in Bergen."])
        print("safe:", receipt.is_durable, "· new:", len(receipt.new))

        before = memory.snapshot()
        memory.add("I moved to Oslo last week!")
        print(memory.search("Where do I live?"))
        print(memory.search("Where does my sister live?", limit=1))
        print(memory.context("Where do I live?", max_tokens=300, min_relevance=0.1))

        conversation = memory.session("trip")
        conversation.add([f"Day {day}: " + "we walked a lot. " * 20 for day in range(60)])
        shown = conversation.messages(max_tokens=1500)
        report = conversation.report()
        assert report is not None  # 60 long messages do not fit
        print(len(shown), "messages in", report.tokens_after, "tokens")

        print(memory.diff(before))
        memory.restore(before)
        print(memory.facts())
        print("nothing left:", memory.delete_user("ann").left.is_complete)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(mkdtemp()))
