"""``ask``: ask a chat model for a value of a given type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import fields
from msgspec.structs import replace as change

from ..errors import ModelFailed
from .calling import completed
from .contract import ChatModel, Completion
from .parsing import documents_in
from .schemas import closed
from .spending import Call, Spending, priced
from .structured import json_schema_of

T = TypeVar("T", bound=msgspec.Struct)
Messages = Sequence[Mapping[str, str]]

_AGAIN = """\
That cannot be used: {error}
Answer again, with one JSON document and nothing else. It must be of this JSON schema:
{schema}"""


async def ask(
    model: ChatModel,
    prompt_messages: Messages,
    answer: type[T],
    *,
    attempts: int = 3,
    spending: Spending | None = None,
    purpose: str = "asking",
) -> T:
    """Ask a model and return its answer as an ``answer``.

    If an answer is invalid, the model is told why and asked again. No error contains text of the
    model.

    Args:
        model: The chat model.
        prompt_messages: The conversation; see ``prompt_messages()``.
        answer: The type of the answer, a msgspec Struct.
        attempts: How often to ask.
        spending: Counts the calls and tokens.
        purpose: What the calls are counted as.

    Raises:
        ModelFailed: If every answer is invalid, or the model fails.
        ModelUnavailable: If the model cannot be reached.
    """
    account = spending if spending is not None else Spending()
    messages, schema = list(prompt_messages), schema_of(answer)
    trouble = msgspec.ValidationError("it was never asked")
    for _ in range(attempts):
        call, completion = await _completed(model, messages, schema, account, purpose)
        try:
            found = read_answer(completion.text, answer)
        except msgspec.ValidationError as error:
            account.add(change(call, is_failure=True))
            messages = [*prompt_messages, *_told(completion.text, error, schema)]
            trouble = error
        else:
            account.add(call)
            return found
    raise ModelFailed(
        f"model {model.name!r} gave {attempts} answers that are not a valid {answer.__name__}, "
        f"the last one {_place(trouble)}; try a model that follows JSON schemas better"
    )


def read_answer(text: str, answer: type[T]) -> T:
    """Return the first value of the type in a model's text; raise ``ValidationError`` if none."""
    trouble = msgspec.ValidationError("there is no JSON document in it")
    for number, document in enumerate(documents_in(text)):
        try:
            return msgspec.convert(_wrapped(document, answer), answer, strict=False)
        except msgspec.ValidationError as error:
            trouble = error if number == 0 else trouble  # the longest document was meant
    raise trouble


@cache
def schema_of(answer: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a JSON schema with an object at its root, closed throughout.

    Servers that guarantee a schema require this: no unknown members, no optional ones.
    """
    return closed(json_schema_of(answer))


async def _completed(
    model: ChatModel, messages: Messages, schema: dict[str, Any], account: Spending, purpose: str
) -> tuple[Call, Completion]:
    began = account.clock()
    try:
        completion = await completed(model, messages, schema=schema)
    except ModelFailed:
        seconds = account.clock() - began
        account.add(Call(purpose=purpose, model=model.name, seconds=seconds, is_failure=True))
        raise
    call = Call(purpose=purpose, model=model.name, seconds=account.clock() - began)
    return priced(call, completion), completion


def _told(text: str, error: msgspec.ValidationError, schema: dict[str, Any]) -> Messages:
    again = _AGAIN.format(error=error, schema=json.dumps(schema))
    return [{"role": "assistant", "content": text}, {"role": "user", "content": again}]


def _wrapped(document: Any, answer: type[msgspec.Struct]) -> Any:
    """Wrap a bare array in the answer's only member: models tend to forget the object."""
    members = fields(answer)
    if isinstance(document, list) and len(members) == 1:
        return {members[0].encode_name: document}
    return document


def _place(error: msgspec.ValidationError) -> str:
    """Return where an answer is invalid, without its content, which may quote a user."""
    _, found, place = str(error).rpartition(" - at ")
    return f"wrong at {place}" if found else "of another form"
