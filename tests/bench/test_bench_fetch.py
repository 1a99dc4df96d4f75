"""Public data are downloaded whole, checked, and put into the form that experiments read."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memoryspace.bench.command import main
from memoryspace.bench.harness.fetching import SOURCES, CannotFetch, Source, fetch
from memoryspace.bench.harness.forms import FORMS
from memoryspace.errors import CorruptData, InvalidInput
from memoryspace.evaluation import load_hotpot_own, load_locomo, load_longmemeval

FILES: dict[str, bytes] = {"/text": b"to be or not to be" * 1000}


@pytest.fixture
def address() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/away":
                self.send_response(302)
                self.send_header("Location", "file:///etc/hostname")
                self.end_headers()
                return
            if self.path == "/cut":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"half")
                return
            body = FILES.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=[0.01])
    thread.start()
    yield f"http://127.0.0.1:{http.server_address[1]}"
    http.shutdown()
    thread.join()
    http.server_close()


def source(url: str, content: bytes = FILES["/text"], form: str = "as it is") -> Source:
    return Source("a text", "free", url, hashlib.sha256(content).hexdigest(), "text.gz", form)


def test_a_file_is_fetched_and_checked(address: str, tmp_path: Path) -> None:
    said: list[str] = []
    (path,) = fetch(source(f"{address}/text", form="gzip"), tmp_path / "new", said.append)
    assert gzip.decompress(path.read_bytes()) == FILES["/text"]
    assert "free" in said[0]
    assert [each.name for each in path.parent.iterdir()] == ["text.gz"]


def test_a_wrong_checksum_writes_nothing(address: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptData, match=r"has the checksum .* Nothing was written"):
        fetch(source(f"{address}/text", b"something else"), tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_or_is_cut_is_said_clearly(address: str, tmp_path: Path) -> None:
    with pytest.raises(CannotFetch, match="status 404"):
        fetch(source(f"{address}/absent"), tmp_path, lambda _: None)
    with pytest.raises((CannotFetch, CorruptData)):
        fetch(source(f"{address}/cut"), tmp_path, lambda _: None)
    with pytest.raises(CannotFetch, match="could not be read"):
        fetch(source("http://127.0.0.1:1/text"), tmp_path, lambda _: None)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "text8.zip"])
def test_only_the_web_is_fetched(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="only http"):
        fetch(source(url), tmp_path, lambda _: None)


def test_a_server_cannot_lead_to_a_file(address: str, tmp_path: Path) -> None:
    with pytest.raises(CannotFetch):
        fetch(source(f"{address}/away"), tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_every_source_has_a_whole_checksum_and_a_known_form() -> None:
    assert {"text8", "enwik8", "shakespeare", "hotpot", "locomo", "longmemeval"} <= set(SOURCES)
    for each in SOURCES.values():
        assert len(bytes.fromhex(each.sha256)) == 32
        assert each.form in FORMS
        assert each.url.startswith(("http://", "https://"))
        assert each.licence


def test_the_command_says_where_the_file_is(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setitem(SOURCES, "shakespeare", source(f"{address}/text"))
    main(["fetch", "shakespeare", "--to", str(tmp_path)])
    assert capsys.readouterr().out.strip() == str(tmp_path / "text.gz")
    with pytest.raises(SystemExit):
        main(["fetch", "nonsense"])


# -- forms ---------------------------------------------------------------------------------------


def written(form: str, name: str, rows: Any, folder: Path) -> list[Path]:
    paths = []
    for each, data in FORMS[form](name, json.dumps(rows).encode()):
        (folder / each).write_bytes(data)
        paths.append(folder / each)
    return paths


def test_hotpotqa_reads_back(tmp_path: Path) -> None:
    row = {
        "_id": "q1",
        "question": "Who?",
        "answer": "Ann",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": [["A", 0]],
        "context": [["A", ["One.", " Two."]], ["B", ["Three."]]],
    }
    (path,) = written("hotpot", "hotpotqa.jsonl.gz", [row], tmp_path)
    (corpus,) = load_hotpot_own(path)
    assert corpus.questions[0].gold == {"A"}
    assert corpus.items[0].text == "One. Two."


def test_locomo_reads_back(tmp_path: Path) -> None:
    turn = {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello", "blip_caption": "a cat"}
    row = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "session_10": [{**turn, "dia_id": "D10:1"}],
            "session_10_date_time": "1:56 pm on 9 May, 2023",
            "session_2": [turn],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_3_date_time": "no session",
        },
        "qa": [{"question": "Who?", "answer": "Ann", "category": 4, "evidence": ["D1:1"]}],
    }
    (path,) = written("locomo", "locomo.jsonl.gz", [row], tmp_path)
    (corpus,) = load_locomo(path)
    assert [item.session for item in corpus.items] == ["2", "10"]
    assert corpus.items[0].text == "Hello [a cat]"
    assert corpus.questions[0].category == "single-hop"


def test_longmemeval_reads_back(tmp_path: Path) -> None:
    row = {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "How many?",
        "answer": 3,
        "question_date": "2023/05/20 (Sat) 02:21",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/01 (Mon) 02:21", "2023/05/02 (Tue) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "Hi"}], []],
        "answer_session_ids": ["s1"],
    }
    name = "longmemeval_s_questions.jsonl.gz"
    questions, sessions = written("longmemeval", name, [row], tmp_path)
    assert sessions.name == "longmemeval_s_sessions.jsonl.gz"
    (corpus,) = load_longmemeval(questions, sessions)
    assert corpus.questions[0].gold == {"s1"}
    assert corpus.items[0].text == "Hi"


def test_what_is_no_json_is_said_clearly(tmp_path: Path) -> None:
    with pytest.raises(CorruptData, match=r"hotpotqa\.jsonl\.gz is not valid JSON"):
        list(FORMS["hotpot"]("hotpotqa.jsonl.gz", b"<html>"))
