"""Loaders for public data sets: items to remember, questions, and the ids that answer them.

Each loader reads JSON Lines (gzip) from the given paths and returns one ``Corpus`` per memory that
is searched on its own: a conversation, a question's haystack, a pool of paragraphs. Nothing is
downloaded. Questions without evidence are left out, because no ranking of them is right or wrong.
Dates without a time zone are read as UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import raw

_ADVERSARIAL = 5


@dataclass(frozen=True)
class Item:
    """One item to remember. ``time`` is in seconds since the epoch."""

    id: str
    text: str
    session: str | None = None
    speaker: str | None = None
    role: str | None = None
    time: float | None = None
    title: str | None = None


@dataclass(frozen=True)
class Question:
    """A question, when it is asked, and the ids that hold the evidence.

    ``answers`` are gold answers, any of which is correct; ``rubric`` describes a good answer. A
    data set may have neither.
    """

    id: str
    text: str
    gold: frozenset[str]
    category: str
    time: float | None = None
    answers: tuple[str, ...] = ()
    rubric: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """One memory: items in arrival order, and the questions asked of it.

    ``gold`` says what the gold ids refer to: items, or sessions of items.
    """

    name: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]
    gold: Literal["item", "session"] = "item"


def load_locomo(
    path: str | Path, *, captions: bool = True, adversarial: bool = False
) -> tuple[Corpus, ...]:
    """Load LoCoMo: turns of two speakers; categories 1 to 4, plus 5 if ``adversarial``.

    With ``captions``, the text of a turn ends with the caption of its image in brackets.
    """
    return tuple(
        Corpus(
            talk.id,
            tuple(_turns_of(talk, captions)),
            tuple(
                Question(
                    f"{talk.id}:{number}",
                    asked.question,
                    gold,
                    asked.category_name,
                    answers=_answers(asked.answer),
                )
                for number, asked in enumerate(talk.qa)
                if (gold := _evidence(asked.evidence))
                and (adversarial or asked.category != _ADVERSARIAL)
            ),
        )
        for talk in raw.read(path, raw.Talk)
    )


def load_longmemeval(
    questions_path: str | Path, sessions_path: str | Path, *, abstention: bool = False
) -> tuple[Corpus, ...]:
    """Load LongMemEval: a haystack of sessions per question; gold ids are sessions.

    Sessions are sorted by date. Questions that the haystack does not answer are left out, unless
    ``abstention`` is set.
    """
    sessions = {session.id: session for session in raw.read(sessions_path, raw.ChatSession)}
    return tuple(
        Corpus(
            asked.id,
            tuple(_haystack(asked, sessions, sessions_path)),
            (
                Question(
                    asked.id,
                    asked.question,
                    frozenset(asked.answer_session_ids),
                    asked.type,
                    raw.seconds(asked.question_date),
                    _answers(asked.answer),
                ),
            ),
            gold="session",
        )
        for asked in raw.read(questions_path, raw.HaystackQuestion)
        if asked.answer_session_ids and (abstention or not asked.abstention)
    )


def load_hotpot_pool(path: str | Path, *, first: int = 500) -> tuple[Corpus, ...]:
    """Load HotpotQA: the paragraphs of the first questions, pooled into one corpus."""
    asked = raw.read(path, raw.HopQuestion)[:first]
    items: dict[str, Item] = {}
    questions = [_hop_question(one, _add_paragraphs(items, one)) for one in asked]
    return (Corpus(f"hotpot-pool-{len(asked)}", tuple(items.values()), tuple(questions)),)


def load_hotpot_own(path: str | Path) -> tuple[Corpus, ...]:
    """Load HotpotQA with one corpus per question: its own paragraphs, usually ten."""

    def alone(asked: raw.HopQuestion) -> Corpus:
        items: dict[str, Item] = {}
        question = _hop_question(asked, _add_paragraphs(items, asked))
        return Corpus(asked.id, tuple(items.values()), (question,))

    return tuple(map(alone, raw.read(path, raw.HopQuestion)))


def load_beam(path: str | Path) -> tuple[Corpus, ...]:
    """Load BEAM: messages of one long chat; an undated message takes the date before it."""
    return tuple(
        Corpus(
            chat.id,
            tuple(_messages_of(chat)),
            tuple(
                Question(
                    f"{chat.id}:{number}",
                    asked.question,
                    frozenset(map(str, asked.source_message_ids)),
                    asked.category,
                    answers=_answers(asked.answer),
                    rubric=tuple(asked.rubric),
                )
                for number, asked in enumerate(chat.questions)
                if asked.source_message_ids
            ),
        )
        for chat in raw.read(path, raw.LongChat)
    )


def load_cmrc(path: str | Path) -> tuple[Corpus, ...]:
    """Load CMRC 2018: one pool of Chinese paragraphs; gold is the question's own paragraph."""
    pages = raw.read(path, raw.Page)
    items = tuple(Item(page.id, page.context, title=page.title) for page in pages)
    questions = tuple(
        Question(
            asked.id,
            asked.question,
            frozenset({page.id}),
            "paragraph",
            answers=tuple(asked.answers),
        )
        for page in pages
        for asked in page.qas
    )
    return (Corpus("cmrc", items, questions),)


def _turns_of(talk: raw.Talk, captions: bool) -> Iterator[Item]:
    for session in talk.sessions:
        time = raw.seconds(session.datetime)
        for turn in session.turns:
            caption = f" [{turn.image_caption}]" if captions and turn.image_caption else ""
            yield Item(
                turn.dia_id, turn.text + caption, session.session, speaker=turn.speaker, time=time
            )


def _answers(answer: str | float | None) -> tuple[str, ...]:
    """Return the gold answers as text; some years are stored as numbers."""
    return () if answer is None else (str(answer),)


def _evidence(entries: Iterable[str]) -> frozenset[str]:
    """Return the evidence ids; one entry may hold several: "D8:6; D9:17"."""
    return frozenset(id for entry in entries for id in entry.replace(";", " ").split())


def _haystack(
    asked: raw.HaystackQuestion, sessions: dict[str, raw.ChatSession], path: str | Path
) -> Iterator[Item]:
    dated = [(raw.seconds(date), id) for id, date in asked.haystack]
    for time, id in sorted(dated, key=lambda pair: pair[0]):
        if id not in sessions:
            raise raw.lacking(path, f"the session {id!r} of the question {asked.id!r}")
        for number, turn in enumerate(sessions[id].turns):
            yield Item(f"{id}#{number}", turn.content, id, role=turn.role, time=time)


def _add_paragraphs(items: dict[str, Item], asked: raw.HopQuestion) -> dict[str, str]:
    """Add paragraphs that are new; return the ids of the question's paragraphs by title.

    The title is the id. If two questions have different texts under one title, the second id gets a
    number.
    """
    ids: dict[str, str] = {}
    for paragraph in asked.paragraphs:
        text = "".join(paragraph.sentences).strip()
        id, number = paragraph.title, 1
        while id in items and items[id].text != text:
            number += 1
            id = f"{paragraph.title} #{number}"
        items.setdefault(id, Item(id, text, title=paragraph.title))
        ids[paragraph.title] = id
    return ids


def _hop_question(asked: raw.HopQuestion, ids: dict[str, str]) -> Question:
    gold = frozenset(ids[title] for title, _ in asked.supporting)
    return Question(asked.id, asked.question, gold, asked.type, answers=_answers(asked.answer))


def _messages_of(chat: raw.LongChat) -> Iterator[Item]:
    time: float | None = None
    for message in chat.messages:
        if message.time is not None:
            time = raw.seconds(message.time)
        yield Item(
            str(message.id), message.content, str(message.batch), role=message.role, time=time
        )
