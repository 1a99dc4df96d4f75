"""The fake Tablestore does what the real one promises, as far as the packages above it can tell."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from typing import Any

import pytest
from tablestore import (
    INF_MAX,
    INF_MIN,
    BatchGetRowRequest,
    BatchWriteRowRequest,
    BoolQuery,
    CapacityUnit,
    ColumnReturnType,
    ColumnsToGet,
    ComparatorType,
    Condition,
    DeleteRowItem,
    Direction,
    FieldSchema,
    FieldSort,
    FieldType,
    MatchQuery,
    OTSServiceError,
    PutRowItem,
    RangeQuery,
    ReservedThroughput,
    Row,
    RowExistenceExpectation,
    SearchIndexMeta,
    SearchQuery,
    SingleColumnCondition,
    Sort,
    SortOrder,
    TableInBatchGetRowItem,
    TableInBatchWriteRowItem,
    TableMeta,
    TableOptions,
    TermQuery,
)
from tablestore_for_agent_memory.base.base_knowledge_store import Document
from tablestore_for_agent_memory.base.filter import Filters
from tablestore_for_agent_memory.knowledge.async_knowledge_store import AsyncKnowledgeStore

from memoryspace.testing.tablestore import FakeTablestoreClient

IGNORE = Condition(RowExistenceExpectation.IGNORE)
EXISTS = Condition(RowExistenceExpectation.EXPECT_EXIST)
NEW = Condition(RowExistenceExpectation.EXPECT_NOT_EXIST)

_BLANK: dict[str, Any] = {}


def knowledge_on(client: FakeTablestoreClient) -> AsyncKnowledgeStore:
    return AsyncKnowledgeStore(
        client,
        2,
        enable_multi_tenant=True,
        table_name="knowledge",
        search_index_schema=[
            FieldSchema("topic", FieldType.KEYWORD),
            FieldSchema("n", FieldType.LONG),
        ],
    )


def knowledge(*, index_lag: bool = False) -> tuple[FakeTablestoreClient, AsyncKnowledgeStore]:
    """Return a client with the package's table in it; making it takes the package a second."""
    if not _BLANK:
        made = FakeTablestoreClient()
        asyncio.run(knowledge_on(made).init_table())
        _BLANK["client"] = made
    client = copy.deepcopy(_BLANK["client"])
    client.index_lag = index_lag
    return client, knowledge_on(client)


async def with_table(*, index_lag: bool = False) -> FakeTablestoreClient:
    client = FakeTablestoreClient(index_lag=index_lag)
    meta = TableMeta("t", [("name", "STRING"), ("n", "INTEGER")])
    await client.create_table(meta, TableOptions(), ReservedThroughput(CapacityUnit(0, 0)))
    return client


def key(name: str, n: int = 0) -> list[tuple[str, Any]]:
    return [("name", name), ("n", n)]


async def put(client: FakeTablestoreClient, name: str, n: int = 0, **columns: Any) -> None:
    await client.put_row("t", Row(key(name, n), list(columns.items())), IGNORE)


async def columns_of(client: FakeTablestoreClient, name: str, n: int = 0) -> Any:
    _, row, _ = await client.get_row("t", key(name, n))
    return None if row is None else {column[0]: column[1] for column in row.attribute_columns}


DOCUMENTS = [
    Document("1", "ann", "I like tennis and tea", [1.0, 0.0], {"topic": "sport", "n": 1}),
    Document("2", "ann", "tea in the morning", [0.6, 0.8], {"topic": "food", "n": 2}),
    Document("3", "ann", "我喜欢打网球", [0.0, 1.0], {"topic": "sport", "n": 3}),
    Document("4", "bob", "tea tea tea", [1.0, 0.0], {"topic": "food", "n": 4}),
]


def ids(response: Any) -> list[str]:
    return [hit.document.document_id for hit in response.hits]


def test_the_package_finds_by_words_by_vectors_and_by_filters() -> None:
    _, store = knowledge()

    async def use() -> None:
        for document in DOCUMENTS:
            await store.put_document(copy.deepcopy(document))
        assert set(ids(await store.full_text_search("tea TENNIS", tenant_id="ann"))) == {"1", "2"}
        assert ids(await store.full_text_search("tea tennis", tenant_id="ann"))[0] == "1"
        assert ids(await store.full_text_search("网球", tenant_id="ann")) == ["3"]
        assert ids(await store.full_text_search("coffee", tenant_id="ann")) == []
        assert ids(await store.vector_search([1.0, 0.1], 2, tenant_id="ann")) == ["1", "2"]
        sport = Filters.eq("topic", "sport")
        assert ids(await store.vector_search([1.0, 0.1], 2, "ann", sport)) == ["1", "3"]
        wanted = Filters.logical_and([Filters.gt("n", 1), Filters.lte("n", 3)])
        assert ids(await store.search_documents("ann", wanted)) == ["2", "3"]
        some = Filters.logical_or([Filters.In("n", [1]), Filters.not_in("topic", ["sport"])])
        assert ids(await store.search_documents("ann", some)) == ["1", "2"]
        assert ids(await store.search_documents("ann", Filters.logical_not([sport]))) == ["2"]
        phrase = Filters.text_match_phrase("text", "tea in")
        assert ids(await store.search_documents("ann", phrase)) == ["2"]

    asyncio.run(use())


def test_the_package_reads_back_what_it_wrote_and_deletes_by_tenant() -> None:
    client, store = knowledge()

    async def use() -> None:
        for document in DOCUMENTS:
            await store.put_document(copy.deepcopy(document))
        assert await store.get_document("1", "ann") == DOCUMENTS[0]
        assert await store.get_document("1", "bob") is None
        assert await store.get_documents(["4", "5"], "bob") == [DOCUMENTS[3], None]
        await store.update_document(Document("4", "bob", "coffee", None, {"n": 5}))
        found = await store.get_document("4", "bob")
        assert (found.text, found.metadata) == ("coffee", {"topic": "food", "n": 5})
        await store.delete_document_by_tenant("ann")
        assert [each.document_id async for each in await store.get_all_documents()] == ["4"]
        await store.delete_all_documents()
        assert client.tables["knowledge"].rows == {}

    asyncio.run(use())


def test_pages_lead_to_each_other_until_everything_was_seen() -> None:
    _, store = knowledge()

    async def use() -> None:
        for n in range(25):
            await store.put_document(Document(f"{n:02}", "ann", "tea", None, {"n": n}))
        seen, token = [], None
        while True:
            response = await store.search_documents("ann", limit=10, next_token=token)
            seen.append(ids(response))
            token = response.next_token
            if token is None:
                break
        assert [len(page) for page in seen] == [10, 10, 5]
        assert [each for page in seen for each in page] == [f"{n:02}" for n in range(25)]

    asyncio.run(use())


def test_a_lagging_index_sees_writes_and_deletions_only_when_it_settles() -> None:
    client, store = knowledge(index_lag=True)

    async def use() -> None:
        await store.put_document(Document("1", "ann", "tea"))
        await store.put_document(Document("2", "ann", "tea"))
        assert ids(await store.search_documents("ann")) == []
        assert (await store.get_document("1", "ann")).text == "tea"
        assert client.settle(1) == 1
        assert ids(await store.search_documents("ann")) == ["1"]
        await store.delete_document("1", "ann")
        assert client.settle(1) == 1
        assert ids(await store.search_documents("ann")) == ["1", "2"]
        client.settle()
        assert ids(await store.search_documents("ann")) == ["2"]
        assert client.settle() == 0

    asyncio.run(use())


async def test_a_write_happens_only_if_its_condition_holds() -> None:
    client = await with_table()
    with pytest.raises(OTSServiceError) as refused:
        await client.update_row("t", Row(key("a"), {"put": [("v", 1)]}), EXISTS)
    assert refused.value.get_error_code() == "OTSConditionCheckFail"
    await client.put_row("t", Row(key("a"), [("v", 1)]), NEW)
    for again in (NEW, _where("v", 2, is_lenient=False), _where("w", 1, is_lenient=False)):
        with pytest.raises(OTSServiceError):
            await client.put_row("t", Row(key("a"), [("v", 9)]), again)
        with pytest.raises(OTSServiceError):
            await client.delete_row("t", Row(key("a")), again)
    assert await columns_of(client, "a") == {"v": 1}
    await client.update_row(
        "t", Row(key("a"), {"put": [("v", 2)]}), _where("v", 1, is_lenient=False)
    )
    await client.update_row(
        "t", Row(key("a"), {"put": [("u", 3)]}), _where("w", 1, is_lenient=True)
    )
    await client.update_row("t", Row(key("a"), {"delete_all": ["v"]}), EXISTS)
    assert await columns_of(client, "a") == {"u": 3}
    await client.delete_row("t", Row(key("a")), EXISTS)
    assert await columns_of(client, "a") is None


def _where(name: str, value: int, *, is_lenient: bool) -> Condition:
    column = SingleColumnCondition(name, value, ComparatorType.EQUAL, is_lenient)
    return Condition(RowExistenceExpectation.IGNORE, column)


async def test_ranges_go_up_and_down_and_end_where_they_are_told() -> None:
    client = await with_table()
    for n in (5, 1, 3, 2, 4):
        await put(client, "a", n, v=n)
    await put(client, "b", 0)

    async def read(direction: str, start: Any, end: Any, limit: int | None = None) -> Any:
        _, onward, rows, _ = await client.get_range("t", direction, start, end, None, limit)
        return [row.primary_key[1][1] for row in rows], onward

    everything = [("name", INF_MIN), ("n", INF_MIN)], [("name", INF_MAX), ("n", INF_MAX)]
    assert await read(Direction.FORWARD, *everything) == ([1, 2, 3, 4, 5, 0], None)
    assert await read(Direction.BACKWARD, *everything[::-1]) == ([0, 5, 4, 3, 2, 1], None)
    assert await read(Direction.FORWARD, key("a", 2), key("a", 4)) == ([2, 3], None)
    assert await read(Direction.BACKWARD, key("a", 4), key("a", 2)) == ([4, 3], None)
    assert await read(Direction.FORWARD, key("a", 2), key("b"), 2) == ([2, 3], key("a", 4))


async def test_a_batch_is_not_all_or_nothing() -> None:
    client = await with_table()
    await put(client, "a", 1)
    items = [PutRowItem(Row(key("a", n), [("v", n)]), NEW) for n in range(3)]
    request = BatchWriteRowRequest()
    request.add(TableInBatchWriteRowItem("t", items))
    done, failed = (await client.batch_write_row(request)).get_put()
    assert (len(done), [each.index for each in failed]) == (2, [1])
    client.fail_rows(1)
    gone = [DeleteRowItem(Row(key("a", n)), IGNORE) for n in range(3)]
    request = BatchWriteRowRequest()
    request.add(TableInBatchWriteRowItem("t", gone))
    _, failed = (await client.batch_write_row(request)).get_delete()
    assert [each.error_code for each in failed] == ["OTSServerBusy"]
    reading = BatchGetRowRequest()
    reading.add(TableInBatchGetRowItem("t", [key("a", n) for n in range(3)]))
    items_read = (await client.batch_get_row(reading)).get_result_by_table("t")
    assert [each.row is not None for each in items_read] == [True, False, False]


async def test_what_the_service_refuses_is_refused() -> None:
    client = await with_table()
    too_many = BatchWriteRowRequest()
    rows = [PutRowItem(Row(key("a", n), [("v", n)]), IGNORE) for n in range(201)]
    too_many.add(TableInBatchWriteRowItem("t", rows))
    with pytest.raises(OTSServiceError, match="too large"):
        await client.batch_write_row(too_many)
    for bad in ({"v": {"a": 1}}, {"v": None}, {"v": [1]}, {"v": "x" * (2 * 1024 * 1024 + 1)}):
        with pytest.raises(OTSServiceError):
            await put(client, "a", **bad)
    for name, n in (("x" * 1025, 0), ("a", "0"), (1, 0), (INF_MIN, 0)):
        with pytest.raises(OTSServiceError):
            await put(client, name, n)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(OTSServiceError, match="does not exist"):
        await client.get_row("other", key("a"))
    with pytest.raises(OTSServiceError, match="PK name"):
        await client.get_row("t", [("name", "a")])
    assert client.tables["t"].rows == {}


async def test_a_search_sorts_and_refuses_fields_that_are_not_indexed() -> None:
    client = await with_table()
    for n in range(4):
        await put(client, "a", n, text="tea", rank=-n)
    fields = [
        FieldSchema("text", FieldType.TEXT),
        FieldSchema("rank", FieldType.LONG),
        FieldSchema("name", FieldType.KEYWORD),
    ]
    await client.create_search_index("t", "i", SearchIndexMeta(fields))
    assert await client.list_search_index("t") == [("t", "i")]

    async def found(query: Any, **options: Any) -> list[int]:
        shown = ColumnsToGet(["rank"], ColumnReturnType.SPECIFIED)
        response = await client.search("t", "i", SearchQuery(query, **options), shown)
        return [hit.row[1][0][1] for hit in response.search_hits]

    down = Sort([FieldSort("rank", SortOrder.DESC)])
    assert await found(MatchQuery("text", "tea"), sort=down, limit=3) == [0, -1, -2]
    low = RangeQuery("rank", range_from=-2, range_to=0, include_lower=False)
    assert await found(BoolQuery(must_queries=[low, TermQuery("name", "a")])) == [-1]
    for wrong in (TermQuery("absent", 1), MatchQuery("rank", "tea"), MatchQuery("absent", "tea")):
        with pytest.raises(OTSServiceError, match="not indexed"):
            await found(wrong)
    with pytest.raises(OTSServiceError, match="limit"):
        await found(MatchQuery("text", "tea"), limit=1001)


async def test_failures_come_when_they_were_ordered() -> None:
    client = await with_table()
    client.fail(on="put_row", skip=1)
    await put(client, "a")
    with pytest.raises(OTSServiceError, match="not available"):
        await put(client, "b")
    await put(client, "c")
    client.fail(2, error=OSError("gone"))
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            await client.list_table()
    client.fail(on="put_row", after=True)
    with pytest.raises(OTSServiceError):
        await put(client, "d")
    assert [await columns_of(client, name) for name in "abcd"] == [{}, None, {}, {}]
    client.fail(100)
    client.heal()
    assert await client.list_table() == ["t"]


async def test_closing_is_noted_and_calls_are_counted() -> None:
    client = await with_table()
    await put(client, "a")
    assert client.calls == {"create_table": 1, "put_row": 1}
    assert not client.is_closed
    await client.close()
    assert client.is_closed


async def test_tables_go_with_their_indexes() -> None:
    client = await with_table()
    await client.create_search_index("t", "i", SearchIndexMeta([FieldSchema("n", FieldType.LONG)]))
    with pytest.raises(OTSServiceError, match="search indexes"):
        await client.delete_table("t")
    await client.delete_search_index("t", "i")
    described = await client.describe_table("t")
    assert described.table_meta.schema_of_primary_key == [("name", "STRING"), ("n", "INTEGER")]
    await client.create_secondary_index("t", None, False)
    await client.delete_table("t")
    assert await client.list_table() == []


def test_the_other_test_tools_do_not_need_tablestore() -> None:
    code = (
        "import sys; sys.modules.update(tablestore=None, tablestore_for_agent_memory=None)\n"
        "import memoryspace.testing, memoryspace.service\n"
        "print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"
