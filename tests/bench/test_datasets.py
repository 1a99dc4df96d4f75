from __future__ import annotations

import dataclasses
import gzip
import json

import pytest

from memoryspace.errors import CorruptData, InvalidInput
from memoryspace.evaluation import (
    load_beam,
    load_cmrc,
    load_hotpot_own,
    load_hotpot_pool,
    load_locomo,
    load_longmemeval,
)

MAY_8_2023 = 1683504000.0  # midnight, UTC
HOUR = 3600.0


@pytest.fixture
def write(tmp_path):
    def _write(*lines, name="set.jsonl.gz"):
        path = tmp_path / name
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_bytes(gzip.compress(text.encode()))
        return path

    return _write


def talk(*qa):
    turns = [
        {"dia_id": "D1:1", "speaker": "Ann", "text": "Look!", "image_caption": "a red kite"},
        {"dia_id": "D1:2", "speaker": "Bob", "text": "Nice one."},
    ]
    session = {"session": "session_1", "datetime": "1:56 pm on 8 May, 2023", "turns": turns}
    return {"id": "talk-1", "sessions": [session], "qa": list(qa)}


def asked(question, evidence, category=4):
    names = {4: "single-hop", 5: "adversarial"}
    return {
        "question": question,
        "evidence": evidence,
        "category": category,
        "category_name": names[category],
    }


def test_locomo_turns_carry_speaker_session_time_and_caption(write):
    (corpus,) = load_locomo(write(talk()))
    first, second = corpus.items
    assert (first.id, first.text, first.speaker) == ("D1:1", "Look! [a red kite]", "Ann")
    assert (second.id, second.text, second.speaker) == ("D1:2", "Nice one.", "Bob")
    assert {item.session for item in corpus.items} == {"session_1"}
    assert first.time == MAY_8_2023 + 13 * HOUR + 56 * 60
    assert (corpus.name, corpus.gold) == ("talk-1", "item")


def test_locomo_captions_can_be_left_out(write):
    (corpus,) = load_locomo(write(talk()), captions=False)
    assert corpus.items[0].text == "Look!"


def test_locomo_evidence_may_hold_several_ids_in_one_string(write):
    (corpus,) = load_locomo(write(talk(asked("What?", ["D1:1; D1:2", "D1:9"]))))
    (question,) = corpus.questions
    assert question.gold == {"D1:1", "D1:2", "D1:9"}
    assert (question.id, question.category) == ("talk-1:0", "single-hop")


def test_locomo_leaves_out_adversarial_questions_unless_asked_and_those_without_evidence(write):
    path = write(
        talk(asked("a", ["D1:1"], 5), asked("b", []), asked("c", ["D1:2"]), asked("d", [" "]))
    )
    assert [q.text for q in load_locomo(path)[0].questions] == ["c"]
    assert [q.text for q in load_locomo(path, adversarial=True)[0].questions] == ["a", "c"]
    assert load_locomo(path)[0].questions[0].id == "talk-1:2"  # its place in the file


def haystack_question(**changes):
    question = {
        "id": "q1",
        "type": "multi-session",
        "abstention": False,
        "question": "Which?",
        "question_date": "2023/05/08 (Mon) 01:00",
        "answer_session_ids": ["s1"],
        "haystack": [["s2", "2023-05-08T00:00:00"], ["s1", "2023/05/07 (Sun) 23:00"]],
    }
    return {**question, **changes}


def chat_session(id):
    turns = [{"role": "user", "content": f"Hi {id}"}, {"role": "assistant", "content": "Hello"}]
    return {"id": id, "turns": turns}


def test_longmemeval_has_a_haystack_per_question_in_the_order_of_dates(write):
    sessions = write(chat_session("s1"), chat_session("s2"), chat_session("s3"), name="s.gz")
    (corpus,) = load_longmemeval(write(haystack_question()), sessions)
    assert [item.id for item in corpus.items] == ["s1#0", "s1#1", "s2#0", "s2#1"]
    assert [item.session for item in corpus.items] == ["s1", "s1", "s2", "s2"]
    assert [item.role for item in corpus.items[:2]] == ["user", "assistant"]
    assert [item.time for item in corpus.items[1:3]] == [MAY_8_2023 - HOUR, MAY_8_2023]
    (question,) = corpus.questions
    assert (question.gold, question.time) == ({"s1"}, MAY_8_2023 + HOUR)
    assert corpus.gold == "session"


def test_longmemeval_skips_abstention_unless_asked(write):
    sessions = write(chat_session("s1"), chat_session("s2"), name="s.gz")
    questions = write(haystack_question(abstention=True))
    assert load_longmemeval(questions, sessions) == ()
    assert len(load_longmemeval(questions, sessions, abstention=True)) == 1


def test_a_haystack_session_that_is_in_no_file_is_an_error_that_names_it(write):
    with pytest.raises(CorruptData, match=r"'s1'.*'q1'"):
        load_longmemeval(write(haystack_question()), write(chat_session("s2"), name="s.gz"))


def hop(id, paragraphs, supporting):
    return {
        "id": id,
        "question": f"{id}?",
        "type": "bridge",
        "supporting": [[title, 0] for title in supporting],
        "paragraphs": [{"title": title, "sentences": parts} for title, parts in paragraphs],
    }


def test_hotpot_pool_holds_each_paragraph_once_and_tells_namesakes_apart(write):
    path = write(
        hop("q1", [("A", ["One.", " Two."]), ("B", ["b"])], ["A", "B"]),
        hop("q2", [("B", ["b"]), ("A", ["Other."])], ["A", "A"]),
        hop("q3", [("C", ["c"])], ["C"]),
    )
    (corpus,) = load_hotpot_pool(path, first=2)
    assert [(item.id, item.title, item.text) for item in corpus.items] == [
        ("A", "A", "One. Two."),
        ("B", "B", "b"),
        ("A #2", "A", "Other."),
    ]
    assert [question.gold for question in corpus.questions] == [{"A", "B"}, {"A #2"}]


def test_hotpot_own_is_a_corpus_per_question(write):
    path = write(hop("q1", [("A", ["a"]), ("B", ["b"])], ["B"]), hop("q2", [("A", ["x"])], ["A"]))
    first, second = load_hotpot_own(path)
    assert ([item.id for item in first.items], first.questions[0].gold) == (["A", "B"], {"B"})
    assert [item.text for item in second.items] == ["x"]


def test_hotpot_evidence_without_its_paragraph_is_an_error(write):
    with pytest.raises(CorruptData, match=r"line 1 .*'Z'"):
        load_hotpot_own(write(hop("q1", [("A", ["a"])], ["Z"])))


def test_beam_messages_inherit_the_date_and_questions_without_evidence_are_left_out(write):
    messages = [
        {"id": 0, "batch": 1, "role": "user", "content": "a"},
        {"id": 1, "batch": 1, "role": "user", "time": "May-08-2023", "content": "b"},
        {"id": 2, "batch": 2, "role": "assistant", "content": "c"},
    ]
    questions = [
        {"category": "abstention", "question": "?", "source_message_ids": []},
        {"category": "temporal", "question": "!", "source_message_ids": [0, 2]},
    ]
    (corpus,) = load_beam(write({"id": "chat", "messages": messages, "questions": questions}))
    assert [item.time for item in corpus.items] == [None, MAY_8_2023, MAY_8_2023]
    assert [item.session for item in corpus.items] == ["1", "1", "2"]
    assert [(q.id, q.gold) for q in corpus.questions] == [("chat:1", {"0", "2"})]


def test_cmrc_is_one_pool_with_the_paragraph_as_gold(write):
    (corpus,) = load_cmrc(
        write(
            {
                "id": "P1",
                "title": "长城",
                "context": "很长。",
                "qas": [{"id": "Q1", "question": "?"}],
            },
            {"id": "P2", "title": "黄河", "context": "很黄。", "qas": []},
        )
    )
    assert [(item.id, item.title, item.text) for item in corpus.items][1] == (
        "P2",
        "黄河",
        "很黄。",
    )
    assert [(q.id, q.gold) for q in corpus.questions] == [("Q1", {"P1"})]


def test_values_are_frozen(write):
    (corpus,) = load_locomo(write(talk()))
    for value in (corpus, corpus.items[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.id = "other"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"no data set at .*nowhere\.gz"):
        load_beam(tmp_path / "nowhere.gz")


def test_a_malformed_line_is_named_by_its_number_in_the_file(write):
    with pytest.raises(CorruptData, match=r"line 3 of .*malformed"):
        load_locomo(write(talk(), "", "{not json"))
    with pytest.raises(CorruptData, match=r"line 1 .*sessions"):
        load_locomo(write({"id": "x", "qa": []}))


def test_a_plain_file_is_read_like_a_packed_one(tmp_path, write):
    packed = write(talk())
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    assert load_locomo(plain) == load_locomo(packed)
    assert load_locomo(tmp_path / "plain.jsonl.gz") == load_locomo(packed)  # where it is unpacked


def test_a_file_that_is_not_gzip_or_is_cut_off_says_so(tmp_path, write):
    plain = tmp_path / "not-packed.jsonl.gz"
    plain.write_text("{}")
    cut = write(talk())
    cut.write_bytes(cut.read_bytes()[:-12])
    for path in (plain, cut):
        with pytest.raises(CorruptData, match="does not unpack"):
            load_locomo(path)


def test_an_unknown_date_is_shown(write):
    line = talk()
    line["sessions"][0]["datetime"] = "yesterday"
    with pytest.raises(CorruptData, match="'yesterday'"):
        load_locomo(write(line))
