"""``ChatModel``: the protocol of chat models, with text in, text out, and token counts.

Any object with a matching ``name`` and ``complete`` is a chat model; no base class is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from ..errors import InvalidInput


class Completion(Struct, frozen=True):
    """An answer of a model. Token counts are ``None`` if the model does not report them."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers a conversation, as text."""

    @property
    def name(self) -> str:
        """The name of the model, stored as the author of what it derives."""

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Answer a conversation.

        Args:
            messages: Dicts with ``role`` and ``content``.
            schema: A JSON schema. The answer should then be one JSON document that matches it; the
                caller validates.

        Raises:
            ModelUnavailable: For a failure that may pass.
        """


def check_model(model: object) -> None:
    """Raise ``InvalidInput`` unless ``model`` is a chat model or None."""
    if model is not None and not isinstance(model, ChatModel):
        raise InvalidInput(
            f"model must be a chat model (with name and complete) or None, "
            f"got {type(model).__name__}"
        )
