"""Writes a store with LangGraph: python write_langgraph.py FOLDER."""

import sys
from pathlib import Path

from langgraph.store.sqlite import SqliteStore


def main(folder: Path) -> None:
    database = folder / "langgraph.db"
    database.unlink(missing_ok=True)
    with SqliteStore.from_conn_string(str(database)) as store:
        store.setup()
        store.put(("memories", "ann"), "m1", {"text": "Lives in Oslo.", "confidence": 0.9})
        store.put(
            ("memories", "ann"), "m2", {"kind": "Memory", "content": {"content": "Likes tea."}}
        )
        store.put(("bob", "prefs"), "theme", {"colour": "blau", "dark": True})


main(Path(sys.argv[1]))
