"""What requests may hold and what answers look like, also for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=1_000_000)]
Id = Annotated[str, Field(min_length=1, max_length=255)]
Mark = Id
Question = Annotated[str, Field(min_length=1, max_length=20_000)]
Time = Annotated[float | str, Field(description="Seconds since the epoch, or ISO text.")]
Relevance = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[int, Field(ge=1, le=1000)]
Tokens = Annotated[int, Field(ge=100, le=1_000_000)]
Filters = Annotated[
    dict[str, Any],
    Field(
        description="Conditions: role, name, marks, without, since, until, as_of, metadata, "
        "and AND, OR, NOT with lists of conditions."
    ),
]


class Request(BaseModel):
    """A body of a request; unknown members are refused."""

    model_config = ConfigDict(extra="forbid")


class Said(BaseModel):
    """A message; it may have further members, which are stored with it."""

    model_config = ConfigDict(extra="allow")

    role: str = "user"
    content: str | list[Any] | None = None
    id: str | None = None
    name: str | None = None


class Sent(Request):
    """A message in the form in which a client has it, so that it comes back the same."""

    form: Literal["message", "msg", "dict", "text"]
    body: Any


Messages = Text | Sent | Said | list[Text | Sent | Said]


class Add(Request):
    """Messages to remember."""

    messages: Messages = Field(
        examples=["I moved to Oslo last week."], description="Texts said by the user, or messages."
    )
    session: Id | None = None
    marks: list[Mark] = []
    when: Time | None = Field(default=None, description="When it was said, if not now.")


class Search(Request):
    """A question to the memory."""

    question: Question = Field(examples=["Where do I live?"])
    limit: Limit = 10
    session: Id | None = None
    kind: str | list[str] | None = None
    filters: Filters | None = None
    min_relevance: Relevance | None = None
    when: Time | None = None
    explain: bool = True


class ContextRequest(Request):
    """A question whose context goes into a prompt."""

    question: Question = Field(examples=["What should I cook for her?"])
    max_tokens: Tokens | None = None
    session: Id | None = None
    filters: Filters | None = None
    min_relevance: Relevance | None = None
    when: Time | None = None


class WhyNotRequest(Request):
    """A question, and the memory that its answer lacks."""

    question: Question
    memory_id: Id
    limit: Limit = 10
    session: Id | None = None
    filters: Filters | None = None
    when: Time | None = None


class Change(Request):
    """What to change of a memory; what is left out stays."""

    message: Text | Sent | Said | None = None
    metadata: dict[str, Any] | None = None
    importance: Annotated[float, Field(ge=0, le=1)] | None = None
    marks: list[Mark] | None = None


class Ids(Request):
    """Ids of memories."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=1000)]
    session: Id | None = None


class Query(Request):
    """Which memories to list."""

    session: Id | None = None
    kind: str | list[str] = "memory"
    limit: Limit = 50
    newest: bool = True
    cursor: Annotated[str, Field(max_length=2000)] | None = None
    filters: Filters | None = None


class Used(Request):
    """Which memories of a recall helped."""

    used: Annotated[list[Id], Field(max_length=1000)]


class SessionAdd(Request):
    """Messages for a conversation."""

    messages: Messages
    marks: list[Mark] = []


class SessionMark(Request):
    """A mark to put on messages, or to take off."""

    mark: Mark
    ids: Annotated[list[Id], Field(max_length=10_000)] | None = None
    remove: bool = False


class Handle(Request):
    """What left the context, by its handle."""

    handle: Id


class At(Request):
    """A moment of the memory space."""

    moment: int | str = Field(description="The number of a change, or a time as ISO text.")


class Collect(Request):
    """Whether to collect garbage, or only to say what would be freed."""

    explain: bool = False


class NewKey(Request):
    """A key to make."""

    name: Annotated[str, Field(max_length=200)] = ""
    scopes: list[Literal["read", "write", "admin"]] = ["read", "write"]
    users: list[Id] | None = Field(default=None, description="Whose memory; null for everybody's.")
    expires_at: Annotated[float, Field(allow_inf_nan=False)] | None = None


class Rotate(Request):
    """How a key is replaced."""

    keep_seconds: Annotated[float, Field(ge=0, le=30 * 86400)] = 0.0


class QuotaRequest(Request):
    """What a tenant may store; 0 stands for no limit."""

    max_bytes: Annotated[int, Field(ge=0)] = 0
    max_records: Annotated[int, Field(ge=0)] = 0


# -- answers: they describe what is sent; nothing is converted by them ---------------------------


class ProblemOut(BaseModel):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str


class ReceiptOut(BaseModel):
    """What happened to every message."""

    ids: list[str]
    new: list[str]
    known: list[str]
    held_back: dict[str, str]
    is_durable: bool | None
    is_indexed: bool
    derived: list[str]
    pending: list[str]
    failed: list[str]
    is_settled: bool


class MemoryOut(BaseModel):
    """A memory."""

    model_config = ConfigDict(extra="allow")

    id: str
    user_id: str
    session_id: str
    text: Any
    kind: str
    version: int
    created_at: Any
    updated_at: Any
    marks: list[str]


class MemoriesOut(BaseModel):
    """Memories in order."""

    memories: list[MemoryOut]
    cursor: str | None


class HitOut(BaseModel):
    """A memory that was found."""

    model_config = ConfigDict(extra="allow")

    memory: MemoryOut
    score: float
    holds: bool
    facts: list[MemoryOut]
    superseded_by: str | None
    by_meaning: bool


class SearchOut(BaseModel):
    """What a search found, best first."""

    question: Any
    recall_id: str
    hits: list[HitOut]


class ContextOut(BaseModel):
    """The text for a prompt."""

    text: Any
    ids: list[str]
    tokens: int
    recall_id: str
    left_out: int


class DeletedOut(BaseModel):
    """What was deleted."""

    raw: list[str]
    derived: list[str]
    versions: int


class ErasedOut(BaseModel):
    """What an erasure deleted, and what was found left."""

    deleted: DeletedOut
    left: dict[str, Any]


class AnyOut(BaseModel):
    """An answer with members of its own."""

    model_config = ConfigDict(extra="allow")


class ItemsOut(BaseModel):
    """A list."""

    items: list[Any]
    cursor: str | None = None


class KeyOut(BaseModel):
    """What is known of a key."""

    id: str
    name: str
    scopes: list[str]
    users: list[str] | None
    created_at: float
    expires_at: float | None
    revoked_at: float | None


class IssuedKeyOut(BaseModel):
    """A new key, shown this once."""

    key: str
    info: KeyOut
