"""Recall: search messages by words, speaker and time in two languages, with explanations."""

from datetime import UTC, datetime

from memoryspace.retrieval import Entry, Only, Recall


def at(day: str) -> float:
    """Return a date as seconds since the epoch."""
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


TALK = [
    Entry("1", "How was your weekend?", session="may", speaker="Ann", time=at("2023-05-08")),
    Entry("2", "I adopted a puppy yesterday!", session="may", speaker="Bob", time=at("2023-05-08")),
    Entry("3", "What is it called?", session="may", speaker="Ann", time=at("2023-05-08")),
    Entry("4", "Rex. My son chose it.", session="may", speaker="Bob", time=at("2023-05-08")),
    Entry(
        "5", "I start a new job on Monday.", session="june", speaker="Ann", time=at("2023-06-09")
    ),
    Entry("6", "我下个月去北京出差。", session="june", speaker="李雷", time=at("2023-06-09")),
]


def main() -> None:
    """Run the example."""
    recall = Recall(embedder=None)
    recall.add(TALK)
    now = at("2023-06-10")
    for question in (
        "What did Bob adopt?",
        "What happened on 7 May 2023?",
        "Who starts a new job?",
        "谁要去北京?",
    ):
        for hit in recall.search(question, 1, now=now, explain=True):
            signals = {} if hit.why is None else hit.why.signals
            strongest = sorted(signals, key=lambda name: -signals[name])[:3]
            print(f"{question} -> {hit.entry.text} ({', '.join(strongest)})")
    print(recall.why_not("puppy", "2", only=Only(session="june"), now=now).detail)


if __name__ == "__main__":
    main()
