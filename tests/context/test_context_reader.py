"""The model's tools: reading archived pages and searching their lines."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexts import said, step
from memoryspace.context import Compactor, FileArchive, Kind, Limits, PageReader, Parcel, RAMArchive
from memoryspace.context.reader import Pattern
from memoryspace.context.rendering import LONGEST_LINE, count_lines, dump, lines_of, shown
from memoryspace.errors import InvalidInput, NotSerializable
from memoryspace.message import Msg


def reader_of(*texts: str, kind: Kind = "text") -> tuple[PageReader, list[str]]:
    archive = RAMArchive()
    kept = archive.put([Parcel(text, kind, f"m{at}") for at, text in enumerate(texts)])
    return PageReader(archive), [each.handle for each in kept]


LOG = "\n".join(f"{number} bottles" for number in range(1, 101))


async def test_a_range_of_lines_is_read_with_their_numbers() -> None:
    reader, (handle,) = reader_of(LOG)
    response = await reader.read_memory(handle, 10, 12)
    assert response.text.split("\n") == [
        f"[{handle}: lines 10 to 12 of 100]",
        "10: 10 bottles",
        "11: 11 bottles",
        "12: 12 bottles",
        f'[to read on: read_memory("{handle}", 13)]',
    ]
    assert response.metadata == {"first_line": 10, "last_line": 12, "lines": 100}


async def test_the_end_says_nothing_of_reading_on() -> None:
    reader, (handle,) = reader_of(LOG)
    response = await reader.read_memory(handle, 99, 500)
    assert response.text.endswith("99: 99 bottles\n100: 100 bottles")
    assert "only 100 lines" in (await reader.read_memory(handle, 101)).text


async def test_reading_on_and_on_reads_everything() -> None:
    archive = RAMArchive()
    data = "\n".join(["x" * 5000, "short", "", "y" * 2500, "z" * LONGEST_LINE])
    (kept,) = archive.put([Parcel(data, "text", "m1")])
    reader = PageReader(archive, max_characters=3000)
    read: list[str] = []
    line = 1
    while line <= kept.lines:
        response = await reader.read_memory(kept.handle, line)
        assert len(response.text) < 3000 + LONGEST_LINE + 200
        assert response.metadata is not None
        shown_lines = response.text.split("\n")[1:]
        count = response.metadata["last_line"] - line + 1
        read += [each.partition(": ")[2] for each in shown_lines[:count]]
        line = response.metadata["last_line"] + 1
    assert read == lines_of(data)
    assert "".join(read) == data.replace("\n", "")


async def test_messages_are_read_as_text_without_the_data_of_pictures() -> None:
    compactor = Compactor(Limits(budget=60, keep_recent=0))
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 5000}
    picture = Msg("ann", [{"type": "image", "source": source}], "user")  # type: ignore[list-item,typeddict-item]
    history = [picture, *step(1, "42 found", path="a.py"), said("thanks"), said("bye")]
    done = await compactor.compact(history)
    handle = next(loss.handle for loss in done.report.losses if loss.what == "messages")
    text = (await PageReader(compactor.archive).read_memory(handle)).text
    assert "(image/png, 5,000 characters of data)" in text
    assert '(calls look) {"path": "a.py"}' in text
    assert "(result of look) 42 found" in text
    assert picture.id in text
    assert "AAAA" not in text


@pytest.mark.parametrize(
    ("handle", "first", "last", "told"),
    [
        ("nonsense", 1, None, "hexadecimal"),
        ("0" * 16, 1, None, "nothing is archived under"),
        ("../../etc/passwd", 1, None, "hexadecimal"),
        (None, 1, None, "hexadecimal"),
        ("HANDLE", 0, None, "first_line must be"),
        ("HANDLE", "1", None, "first_line must be"),
        ("HANDLE", True, None, "first_line must be"),
        ("HANDLE", 5, 4, "last_line must be at least first_line"),
    ],
)
async def test_a_wrong_request_is_answered_not_raised(
    handle: str, first: int, last: int | None, told: str
) -> None:
    reader, (known,) = reader_of(LOG)
    response = await reader.read_memory(known if handle == "HANDLE" else handle, first, last)
    assert told in response.text
    assert response.text.startswith("Error reading memory")
    assert response.metadata is not None
    assert response.metadata["success"] is False


async def test_spaces_around_a_handle_do_no_harm() -> None:
    reader, (handle,) = reader_of("here")
    assert "1: here" in (await reader.read_memory(f" {handle}\n")).text


async def test_a_failing_disk_is_told_without_its_words() -> None:
    class Broken(RAMArchive):
        def get(self, handle: str) -> Parcel:
            raise OSError("/secret/path")

        def list(self) -> list:  # type: ignore[type-arg]
            raise OSError("/secret/path")

    reader = PageReader(Broken())
    for response in (await reader.read_memory("0" * 16), await reader.search_memory("x")):
        assert "OSError" in response.text
        assert "secret" not in response.text


async def test_no_session_reads_another_ones(tmp_path: object) -> None:
    ann, bob = (FileArchive(str(tmp_path), user, "s") for user in ("ann", "bob"))
    (kept,) = ann.put([Parcel("the code is 1234", "text", "m1")])
    reader = PageReader(bob)
    assert "nothing is archived" in (await reader.read_memory(kept.handle)).text
    assert "1234" not in (await reader.search_memory("code")).text
    assert "1234" in (await PageReader(ann).search_memory("code")).text


# -- searching -------------------------------------------------------------------------------------


async def test_lines_are_found_with_where_they_are() -> None:
    reader, (one, two) = reader_of("first\nThe Error is here\nlast", "no\nan ERROR again")
    text = (await reader.search_memory("error")).text
    assert text.split("\n") == [f"{one} line 2: The Error is here", f"{two} line 2: an ERROR again"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("bottle", True), ("BOTTLE", True), ("bottles|cups", True), ("cups|plates", False),
        ("7*bottles", True), ("bottles*7", False), ("b*t*l*s", True), ("*bottles*", True),
        ("77 bottles", True), ("77  bottles", False), (".*", False), ("bottle[s]", False),
    ],
)  # fmt: skip
async def test_patterns_are_words_with_two_signs(pattern: str, found: bool) -> None:
    reader, _ = reader_of(LOG)
    response = await reader.search_memory(pattern)
    assert ("bottles" in response.text) == found


@pytest.mark.parametrize("pattern", ["", "*", "|", " | * ", "a|" * 60, "x" * 1001, None, 5])
async def test_a_pattern_of_nothing_or_of_too_much_is_refused(pattern: str) -> None:
    reader, _ = reader_of(LOG)
    response = await reader.search_memory(pattern)
    assert response.text.startswith("Error searching memory: a pattern")
    with pytest.raises(InvalidInput):
        Pattern(pattern)


async def test_the_rest_is_counted() -> None:
    reader, (handle,) = reader_of(LOG)
    text = (await reader.search_memory("bottles", limit=3)).text
    assert text.startswith(f"{handle} line 1: 1 bottles\n")
    assert text.endswith("\n[97 more lines match]")
    assert "limit must be" in (await reader.search_memory("bottles", limit=0)).text


async def test_the_same_line_kept_twice_is_told_once() -> None:
    reader, _ = reader_of("alpha beta", "alpha beta\ngamma")
    text = (await reader.search_memory("alpha")).text
    assert text.count("alpha") == 1


async def test_a_find_in_an_endless_line_names_the_piece_that_can_be_read() -> None:
    reader, (handle,) = reader_of("a\n" + "x" * 5300 + "needle" + "y" * 3000)
    found = (await reader.search_memory("needle")).text
    assert found.startswith(f"{handle} line 7: ")
    page = (await reader.read_memory(handle, 7, 7)).text
    assert "needle" in page


async def test_messages_of_the_memory_can_be_searched_and_read_too() -> None:
    left = [said("the launch is on Friday", id="m-7")]

    async def messages() -> Sequence[Msg]:
        return left

    reader = PageReader(RAMArchive(), messages)
    assert "m-7 line 2: the launch is on Friday" in (await reader.search_memory("launch")).text
    assert "the launch is on Friday" in (await reader.read_memory("m-7")).text
    assert "hexadecimal" in (await reader.read_memory("m-8")).text


@pytest.mark.parametrize(
    "pattern", ["a*" * 400 + "b", "*a" * 400 + "*b", "|".join(["a*a*a*b"] * 40), "a" * 999 + "b"]
)
def test_a_pattern_that_a_backtracking_matcher_would_never_finish_is_answered(pattern: str) -> None:
    line = "a" * 100_000
    assert list(Pattern(pattern).find_in(line)) == []
    assert list(Pattern(pattern).find_in(f"b{line}c\nx")) == []


@given(st.text(max_size=3000), st.text("ab \n", max_size=4000))
def test_the_lines_of_a_text_are_all_of_it(one: str, other: str) -> None:
    for text in (one, other, other.replace(" ", "") * 3):
        lines = lines_of(text)
        assert len(lines) == count_lines(text)
        assert "".join(lines) == text.replace("\n", "")
        assert max(map(len, lines)) <= LONGEST_LINE


@given(st.text(max_size=300), st.text(min_size=1, max_size=3))
def test_what_is_found_is_there_and_what_is_there_is_found(text: str, word: str) -> None:
    if "|" in word or "*" in word or not word.strip() or "\n" in word:
        return
    wanted = word.strip().casefold()
    found = [each.line for each in Pattern(word).find_in(text)]
    assert found == [line for line in text.split("\n") if wanted in line.casefold()]


def test_keys_that_json_would_change_are_refused() -> None:
    with pytest.raises(NotSerializable):
        dump([{"a": {1: 2}}])
    with pytest.raises(NotSerializable):
        dump(object())
    assert shown("blocks", dump([{"type": "file", "name": "a"}])) == '{"type": "file", "name": "a"}'


def test_every_argument_of_a_tool_is_explained_to_the_model() -> None:
    for tool in PageReader(RAMArchive()).tools:
        assert tool.__doc__ is not None
        for name in signature(tool).parameters:
            assert f"{name} (`" in tool.__doc__
