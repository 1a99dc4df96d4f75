"""Writes chat histories with LangChain: python write_langchain.py FOLDER."""

import sys
from pathlib import Path

from langchain_community.chat_message_histories import (
    FileChatMessageHistory,
    SQLChatMessageHistory,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

MESSAGES = [
    SystemMessage("Be kind."),
    HumanMessage("I live in Oslo.", name="ann"),
    AIMessage(
        "",
        tool_calls=[{"id": "c1", "name": "weather", "args": {"in": "Oslo"}, "type": "tool_call"}],
    ),
    ToolMessage("rain", tool_call_id="c1"),
    AIMessage([{"type": "text", "text": "It rains. 🌧"}]),
]


def main(folder: Path) -> None:
    path = folder / "langchain-chat.json"
    path.unlink(missing_ok=True)
    FileChatMessageHistory(str(path)).add_messages(MESSAGES)
    database = folder / "langchain.db"
    database.unlink(missing_ok=True)
    SQLChatMessageHistory("chat-2", connection=f"sqlite:///{database}").add_messages(MESSAGES)


main(Path(sys.argv[1]))
