"""Writes memories with ReMe 0.2: python write_reme.py FOLDER. No model is asked."""

import sys
from pathlib import Path

from flowllm.core.vector_store.local_vector_store import LocalVectorStore
from reme_ai.schema.memory import PersonalMemory, TaskMemory


class Letters:
    """Counts four letters: enough to be stored."""

    dimensions = 4

    def get_node_embeddings(self, nodes):
        for node in nodes if isinstance(nodes, list) else [nodes]:
            node.vector = [float(node.content.count(letter)) for letter in "aeio"]
        return nodes


def main(folder: Path) -> None:
    place = folder / "reme"
    for old in place.glob("*.jsonl"):
        old.unlink()
    store = LocalVectorStore(store_dir=str(place), embedding_model=Letters())
    home = PersonalMemory(
        workspace_id="ann",
        content="Lives in Oslo. 🏠",
        when_to_use="where does she live",
        target="ann",
        time_created="2026-01-02 03:04:05",
        time_modified="2026-01-02 03:04:05",
    )
    task = TaskMemory(
        workspace_id="shop", content="Ask for the size first.", when_to_use="selling shoes"
    )
    for memory in (home, task):
        store.insert([memory.to_vector_node()], workspace_id=memory.workspace_id)


main(Path(sys.argv[1]))
