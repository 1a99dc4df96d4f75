"""The file formats of the data sets: typed rows, and a reader for JSON Lines."""

from __future__ import annotations

import gzip
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from ..errors import CorruptData, InvalidInput

Line = TypeVar("Line", bound=msgspec.Struct)

_DATES = (
    "%Y-%m-%dT%H:%M:%S",  # 2023-05-20T01:38:00
    "%Y/%m/%d (%a) %H:%M",  # 2023/05/20 (Sat) 02:21
    "%I:%M %p on %d %B, %Y",  # 1:56 pm on 8 May, 2023
    "%B-%d-%Y",  # March-15-2024
)


class Turn(msgspec.Struct, frozen=True):
    """LoCoMo: what one speaker says."""

    dia_id: str
    speaker: str
    text: str
    image_caption: str | None = None


class TalkSession(msgspec.Struct, frozen=True):
    """LoCoMo: one meeting."""

    session: str
    datetime: str
    turns: list[Turn]


class TalkQuestion(msgspec.Struct, frozen=True):
    """LoCoMo: a question and the turns that answer it."""

    question: str
    category: int
    category_name: str
    evidence: list[str]
    answer: str | int | float | None = None


class Talk(msgspec.Struct, frozen=True):
    """LoCoMo: a line."""

    id: str
    sessions: list[TalkSession]
    qa: list[TalkQuestion]


class ChatTurn(msgspec.Struct, frozen=True):
    """LongMemEval: a message."""

    role: str
    content: str


class ChatSession(msgspec.Struct, frozen=True):
    """LongMemEval: a line of the sessions."""

    id: str
    turns: list[ChatTurn]


class HaystackQuestion(msgspec.Struct, frozen=True):
    """LongMemEval: a line of the questions."""

    id: str
    type: str
    abstention: bool
    question: str
    question_date: str
    answer_session_ids: list[str]
    haystack: list[tuple[str, str]]
    answer: str | int | float | None = None


class Paragraph(msgspec.Struct, frozen=True):
    """HotpotQA: a paragraph in sentences."""

    title: str
    sentences: list[str]


class HopQuestion(msgspec.Struct, frozen=True):
    """HotpotQA: a line; every supporting title must be among the paragraphs."""

    id: str
    question: str
    type: str
    supporting: list[tuple[str, int]]
    paragraphs: list[Paragraph]
    answer: str | None = None

    def __post_init__(self) -> None:
        missing = {title for title, _ in self.supporting} - {one.title for one in self.paragraphs}
        if missing:
            raise ValueError(f"no paragraph has the supporting title {min(missing)!r}")


class Message(msgspec.Struct, frozen=True):
    """BEAM: a message."""

    id: int
    batch: int
    role: str
    content: str
    time: str | None = None


class ChatQuestion(msgspec.Struct, frozen=True):
    """BEAM: a probing question."""

    category: str
    question: str
    source_message_ids: list[int]
    answer: str | None = None
    rubric: list[str] = []


class LongChat(msgspec.Struct, frozen=True):
    """BEAM: a line."""

    id: str
    messages: list[Message]
    questions: list[ChatQuestion]


class PageQuestion(msgspec.Struct, frozen=True):
    """CMRC: a question on a paragraph."""

    id: str
    question: str
    answers: list[str] = []


class Page(msgspec.Struct, frozen=True):
    """CMRC: a line."""

    id: str
    title: str
    context: str
    qas: list[PageQuestion]


def read(path: str | Path, line_type: type[Line]) -> list[Line]:
    """Return the rows of a JSON Lines file, gzipped or plain; raise on a malformed line."""
    decoder = msgspec.json.Decoder(line_type)
    return [
        _decode(decoder, line, number, path)
        for number, line in enumerate(_lines(path), 1)
        if line.strip()
    ]


def seconds(date: str) -> float:
    """Return a date in any of the data sets' formats as seconds since the epoch."""
    for spelling in _DATES:
        try:
            return datetime.strptime(date, spelling).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    raise CorruptData(f"the date {date!r} is in none of the known spellings: check the data set")


def lacking(path: str | Path, what: str) -> CorruptData:
    """Return the error for a dangling reference."""
    return CorruptData(f"{path} lacks {what}: the two files must be of the same data set")


def _lines(path: str | Path) -> list[bytes]:
    try:
        content = _unpacked(Path(path))
    except FileNotFoundError:
        raise InvalidInput(f"there is no data set at {path}: pass the path of the file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptData(f"{path} does not unpack ({error}): fetch it again") from error
    return content.split(b"\n")


def _unpacked(path: Path) -> bytes:
    """Return the unpacked content of a file; a plain file may stand in for a gzipped one."""
    plain = path.with_suffix("")
    if path.suffix == ".gz" and not path.exists() and plain.exists():
        return plain.read_bytes()
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _decode(
    decoder: msgspec.json.Decoder[Line], line: bytes, number: int, path: str | Path
) -> Line:
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"line {number} of {path} is malformed: {error}") from error
