"""What this package asks of a chat model: text in, text out, and what it cost.

Anything with a ``name`` and a ``complete`` of this form is one; nothing is to be inherited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from ..errors import InvalidInput


class Completion(Struct, frozen=True):
    """An answer. Tokens are ``None`` where the model does not count them."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers a conversation."""

    @property
    def name(self) -> str:
        """Which model it is; kept as the author of what it derives."""

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Answer messages of ``role`` and ``content``.

        With a JSON ``schema`` the answer is to be one JSON document of that form, as far as the
        model can be made to; the caller checks. Raises ``ModelUnavailable`` for what may pass.
        """


def check_model(model: object) -> None:
    """Refuse what is neither a chat model nor None."""
    if model is not None and not isinstance(model, ChatModel):
        raise InvalidInput(
            f"model must be a chat model (with name and complete) or None, "
            f"got {type(model).__name__}"
        )
