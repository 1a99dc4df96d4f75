"""``SDKChatModel``: the common part of models on official SDKs: clients, forms, streams."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from inspect import signature
from typing import Any, ClassVar, TypeVar

from ..errors import InvalidInput
from ..formatter.plain import plain_data
from ..http import check_key
from ..lifecycle import Closing
from ..loops import PerLoop
from .base import Answer, ChatModelBase, ChatResponse, ChatUsage, StructuredModel, ToolChoice
from .builder import ResponseBuilder
from .faults import FormRefused, broken_off, fault, no_answer
from .forms import ANSWER, FORCING, Form, ModelRequest, structured_answer

T = TypeVar("T")
_ODD = (
    AttributeError,
    TypeError,
    IndexError,
    KeyError,
    ValueError,
)  # raised for a response that is not a completion


class SDKChatModel(ChatModelBase, Closing):
    """A chat model behind an official SDK, which also retries transient failures.

    A client that is passed in is used as it is and never closed. Otherwise each event loop gets its
    own client; ``close`` closes that of the running loop, and the model can be used again. With
    ``stream``, the request is made when the first response is read; leaving the stream, or being
    cancelled in it, closes the connection. A form of request that a server rejects is not used
    again.
    """

    structured_forms: ClassVar[tuple[Form, ...]] = (Form.TOOL, Form.WORDS)
    sdk_error: ClassVar[type[Exception]]

    def __init__(
        self,
        model_name: str,
        stream: bool,
        *,
        api_key: str | None,
        client: Any,
        make_client: Callable[[], Any],
        stream_tool_parsing: bool,
        generate_kwargs: Mapping[str, Any] | None,
    ) -> None:
        check_key(api_key)
        super().__init__(model_name, stream)
        self.generate_kwargs = dict(generate_kwargs) if generate_kwargs is not None else {}
        self.stream_tool_parsing = stream_tool_parsing
        self._api_key = api_key
        self._given = client
        self._own = PerLoop(make_client)
        self._taken: dict[tuple[Form, ...], int] = {}

    async def __call__(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        tool_choice: ToolChoice | None = None,
        structured_model: StructuredModel | None = None,
    ) -> Answer:
        """Answer formatted messages; see ``ChatModelBase``. The arguments are not changed.

        With a ``structured_model``, tools are not offered.
        """
        request = ModelRequest(messages, tools, tool_choice, structured_model)
        return self._streamed(request) if self.stream else await self._whole(request)

    async def close(self) -> None:
        """Close the running loop's client, unless it was passed in."""
        client = self._own.pop()
        if client is not None:
            await client.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r}, stream={self.stream})"

    @abstractmethod
    def _body(self, request: ModelRequest, form: Form) -> dict[str, Any]:
        """Return the arguments of the SDK call."""

    @abstractmethod
    async def _create(self, client: Any, body: dict[str, Any]) -> Any:
        """Call the SDK."""

    @abstractmethod
    def _take_whole(self, answer: Any, builder: ResponseBuilder) -> None:
        """Add an answer that was not streamed."""

    @abstractmethod
    def _take_event(self, event: Any, builder: ResponseBuilder) -> bool:
        """Add an event of a stream; return whether it has new content."""

    async def _whole(self, request: ModelRequest) -> ChatResponse:
        began = time.perf_counter()
        form, answer = await self._sent(request, is_stream=False)
        growing = _Growing(self._builder(form), request, began)
        self._take(self._take_whole, answer, growing.builder)
        return growing.last()

    async def _streamed(self, request: ModelRequest) -> AsyncGenerator[ChatResponse, None]:
        began = time.perf_counter()
        form, stream = await self._sent(request, is_stream=True)
        growing = _Growing(self._builder(form), request, began)
        async with stream:
            events = aiter(stream)
            while (event := await self._next(events)) is not None:
                if self._take(self._take_event, event, growing.builder):
                    yield growing.so_far()
        if not growing.builder.is_complete:
            raise broken_off(self.model_name)
        yield growing.last()

    async def _sent(self, request: ModelRequest, is_stream: bool) -> tuple[Form, Any]:
        forms = self._forms_of(request)
        refused = None
        for form in forms[self._taken.get(forms, 0) :]:
            body = {**self._body(request, form), "stream": is_stream}
            try:
                answer = await self._posted(without_none(body))
            except FormRefused as error:
                refused = error
                continue
            self._taken[forms] = forms.index(form)
            return form, answer
        assert refused is not None  # there is at least one form
        raise refused

    def _forms_of(self, request: ModelRequest) -> tuple[Form, ...]:
        if request.structured_model is not None:
            return self.structured_forms
        return FORCING if request.is_forced else (Form.FREE,)

    async def _posted(self, body: dict[str, Any]) -> Any:
        """Send a request. Errors are raised without their cause, which may contain the prompt."""
        try:
            return await self._called(body)
        except UnicodeEncodeError:  # a lone surrogate, which formatters replace but others may not
            pass
        return await self._called(plain_data(body))

    async def _called(self, body: dict[str, Any]) -> Any:
        try:
            client = self._given if self._given is not None else self._own.get()
            return await self._create(client, body)
        except self.sdk_error as error:
            trouble = fault(error, self.model_name, self._api_key)
        except json.JSONDecodeError:
            trouble = no_answer(self.model_name)
        raise trouble

    async def _next(self, events: AsyncIterator[Any]) -> Any:
        """Return the next event, or None at the end."""
        try:
            return await anext(events)
        except StopAsyncIteration:
            return None
        except Exception as error:  # SDKs let through whatever their HTTP client raises
            trouble = fault(error, self.model_name, self._api_key, "broke off in the middle")
        raise trouble

    def _take(
        self, take: Callable[[Any, ResponseBuilder], T], said: Any, builder: ResponseBuilder
    ) -> T:
        try:
            return take(said, builder)
        except _ODD:
            pass
        raise no_answer(self.model_name)

    def _builder(self, form: Form) -> ResponseBuilder:
        answer = ANSWER if form is Form.TOOL else ""
        return ResponseBuilder(answer, reads_early=self.stream_tool_parsing)


class _Growing:
    """One answer as a series of responses with the same id and time, and growing content."""

    def __init__(self, builder: ResponseBuilder, request: ModelRequest, began: float) -> None:
        self.builder = builder
        self._structured_model = request.structured_model
        self._began = began
        self._first = ChatResponse([])

    def so_far(self) -> ChatResponse:
        """Return the answer so far."""
        return self._response(self.builder.content())

    def last(self) -> ChatResponse:
        """Return the complete answer, with usage and the structured answer."""
        response = self._response(self.builder.content(is_last=True))
        if self._structured_model is not None:
            response.metadata = structured_answer(self._structured_model, response.content)
        return response

    def _response(self, content: list[Any]) -> ChatResponse:
        known, first = self.builder, self._first
        seconds = time.perf_counter() - self._began
        usage = ChatUsage(known.input_tokens or 0, known.output_tokens or 0, seconds)
        return ChatResponse(
            content,
            id=known.id or first.id,
            created_at=first.created_at,
            usage=usage if known.is_counted else None,
        )


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def call_options(create: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as an SDK's method takes them.

    Unknown options go into the body: other servers and other versions of an SDK may have them.
    """
    known, given = signature(create).parameters, without_none(options)
    others = {name: given.pop(name) for name in list(given) if name not in known}
    return {**given, "extra_body": {**others, **given.get("extra_body", {})}} if others else given


def client_options(
    client_kwargs: Mapping[str, Any] | None, client_args: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the options of an SDK's client; ``client_args`` is the older name."""
    if client_kwargs is not None and client_args is not None:
        raise InvalidInput("client_args is the older name of client_kwargs; pass only one of them")
    given = client_kwargs if client_kwargs is not None else client_args
    return dict(given) if given is not None else {}
