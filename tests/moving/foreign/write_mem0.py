"""Writes memories with mem0: python write_mem0.py FOLDER. No model is asked (``infer=False``)."""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["MEM0_DIR"] = tempfile.mkdtemp()
os.environ["MEM0_TELEMETRY"] = "False"
os.environ.setdefault("OPENAI_API_KEY", "none")

import mem0
from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory


class Letters(EmbeddingBase):
    """Counts four letters: enough to be stored."""

    def embed(self, text, memory_action=None):
        return [float(text.lower().count(letter)) for letter in "aeio"]


def main(folder: Path) -> None:
    name = "mem0v" + mem0.__version__.split(".")[0]
    place = folder / name
    EmbedderFactory.create = classmethod(lambda cls, *rest, **more: Letters())
    memory = Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": str(place / "qdrant"),
                    "embedding_model_dims": 4,
                    "on_disk": True,
                },
            },
            "history_db_path": str(place / "history.db"),
        }
    )
    talk = [
        {"role": "user", "content": "I live in Oslo."},
        {"role": "assistant", "content": "Noted: Oslo. ✓"},
    ]
    memory.add(talk, user_id="ann", run_id="trip", metadata={"topic": "home"}, infer=False)
    memory.add("Likes green tea.", user_id="bob", infer=False)
    changed = memory.add("Works at the harbour.", user_id="bob", infer=False)["results"][0]["id"]
    memory.update(changed, data="Works at the airport.")
    gone = memory.add("Has a cat.", user_id="bob", infer=False)["results"][0]["id"]
    memory.delete(gone)
    try:
        found = memory.get_all(user_id="ann")
    except (TypeError, ValueError):
        found = memory.get_all(filters={"user_id": "ann"})
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False), "utf-8")


main(Path(sys.argv[1]))
