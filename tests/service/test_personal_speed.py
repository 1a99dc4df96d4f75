"""The second look takes short cuts; what it sees is what the plain way sees."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.retrieval import Entry, Recall
from memoryspace.retrieval.personal import currency, messages
from memoryspace.retrieval.personal.asking import PersonalQuestion
from memoryspace.retrieval.personal.clauses import MessageReading, read, telling_words
from memoryspace.retrieval.personal.cues import DATE, NUMBER, PLACE, tells_in
from memoryspace.retrieval.personal.matters import CHANGING, count, matters_in
from memoryspace.retrieval.personal.messages import Messages, ReadMessage
from memoryspace.retrieval.personal.people import USER, relations_asked
from memoryspace.retrieval.personal.signals import PersonalCandidates, Rarity, signals

PARTS = [
    "I moved to Leeds",
    "my sister Ann works in a bakery",
    "she lives in Porto",
    "if I won the lottery I would quit my job",
    "I no longer drink coffee",
    "our dog Rex is ill",
    "I started a new job as a nurse on 3 May",
    "he is called Tom",
    "imagine a cat in the flat",
    "我妹妹住在上海",
    "我换工作了",
    "I paid 20 euros for tea",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=4).map(". ".join)
QUESTIONS = [
    "Where do I live?",
    "What does my sister do for a living?",
    "Do I still drink coffee?",
    "Where does Ann live now?",
    "What is my job?",
    "我妹妹住在哪里",
    "What did you recommend?",
    "weather",
]


def message(text: str) -> ReadMessage:
    return ReadMessage(read(text), True, tells_in(text), len(text))


def asked(text: str, *, is_now: bool = False) -> PersonalQuestion:
    words = telling_words(text)
    return PersonalQuestion(
        words=words,
        matters=matters_in(text, words),
        people=relations_asked(text),
        of_assistant=" you " in text,
        of_user=" I " in text or "my" in text,
        is_present=True,
        is_now=is_now,
        is_former=False,
        past=(),
        wants=("place", "time", "number", "name"),
    )


def rarities(readings: Sequence[MessageReading]) -> dict[str, float]:
    """Count every word of every message."""
    counts = Counter(word for each in readings for word in each.words)
    most = math.log(1 + len(readings))
    return {word: math.log(1 + len(readings) / (1 + n)) / most for word, n in counts.items()}


def plain_fit(
    question: PersonalQuestion, reading: MessageReading, rarity: Mapping[str, float]
) -> tuple[float, float, float, float]:
    """Weigh every clause, whatever is asked."""
    if not reading.clauses:
        return 0.0, 0.0, 0.0, 0.0
    worth = {word: rarity.get(word, 1.0) for word in question.words}
    total, wanted = sum(worth.values()), max(1, count(question.matters))
    weights, matters, named = [], [], []
    for clause in reading.clauses:
        covered = sum(worth.get(word, 0.0) for word in clause.words) / total if total else 0.0
        matters.append(count(clause.matters & question.matters) / wanted)
        weights.append(covered + matters[-1] / 2 + 0.02)
        named.append(
            float(bool(question.people & clause.about))
            + 0.5 * float(bool(question.people & clause.names))
        )
    own = sum(
        weight if USER in clause.about else -weight
        for weight, clause in zip(weights, reading.clauses, strict=True)
    )
    telling = reading.clauses[int(np.argmax(weights))]
    return own / sum(weights), max(named), max(matters), float(telling.is_supposed)


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.sampled_from(QUESTIONS), st.booleans())
def test_what_a_question_does_not_ask_for_is_skipped_and_the_rest_is_the_same(
    texts: list[str], text: str, is_now: bool
) -> None:
    question, some = asked(text, is_now=is_now), [message(each) for each in texts]
    numbers = np.arange(len(some), dtype=np.float64)
    seen = PersonalCandidates(some, *([numbers] * 7))
    found = signals(question, seen, Rarity(some))
    known = rarities([each.reading for each in some])
    own, named, matter, supposed = np.array(
        [plain_fit(question, each.reading, known) for each in some]
    ).T
    expected = {
        "about the user": own * question.of_user_alone,
        "about who is asked for": named * bool(question.people),
        "same matter": matter,
        "only supposed": supposed,
        "tells a place": np.array([bool(PLACE.search(each)) for each in texts]),
        "tells a time": np.array([bool(DATE.search(each)) for each in texts]),
        "tells a number": np.array([bool(NUMBER.search(each)) for each in texts]),
        "tells a name": np.array([bool(each.reading.names) for each in some]),
        "tells a change": np.array([bool(each.reading.changes) for each in some]) * is_now,
        "newest": numbers * is_now,
    }
    for name, each in expected.items():
        np.testing.assert_allclose(
            found.get(name, np.zeros(len(some))), each.astype(np.float64), atol=1e-9, err_msg=name
        )


@given(TEXTS, TEXTS)
def test_what_two_messages_share_is_the_same_clause_by_clause(early: str, late: str) -> None:
    old, new = read(early), read(late)
    rarity = Rarity([message(early), message(late)])
    known = rarities([old, new])
    word = ended = matter = 0.0
    for after in new.clauses:
        for before in old.clauses:
            if after.changes:
                shared = max((known[each] for each in before.words & after.words), default=0.0)
                word = max(word, shared)
                ended = max(ended, shared if after.changes & currency._STRONG else 0.0)
                on = count(before.matters & after.matters & CHANGING)
                if currency._same(before, after):
                    matter = max(matter, min(on, 2) / 2)
    found = currency._in_clauses(old, new, rarity)
    assert found == pytest.approx((word, ended, matter))


def conversation() -> Recall:
    recall = Recall(embedder=None, personal=True)
    recall.add(
        Entry(str(number), text, session="one", role="user", time=1.7e9 + number)
        for number, text in enumerate(
            ["My sister Ann visited.", "It rained a lot.", "She lives in Porto now.", "Good bread."]
        )
    )
    return recall


def test_whom_she_means_does_not_depend_on_who_else_is_looked_at() -> None:
    recall = conversation()
    alone = Messages().at([2], recall.catalogue)[0]
    together = Messages().at([0, 1, 2, 3], recall.catalogue)[2]
    assert alone == together
    assert "sister" in alone.reading.clauses[0].about


def test_only_so_many_messages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_KEPT", 2)
    recall, kept = conversation(), Messages()
    first = kept.at([0, 1, 2], recall.catalogue)
    assert len(kept) == 2
    assert kept.at([0, 1, 2], recall.catalogue) == first  # read again


def test_a_message_that_changed_is_read_anew() -> None:
    recall = conversation()
    assert recall.search("Where does my sister live?")[0].id == "2"
    recall.add([Entry("2", "My brother lives in Oslo.", session="one", role="user", time=1.7e9)])
    assert recall.search("Where does my brother live?")[0].id == "2"
    assert recall._reader is not None
    read_anew = recall._reader.messages.at([2], recall.catalogue)[0]
    assert "brother" in read_anew.reading.names
