"""What the models on official SDKs have in common: clients, forms that are refused, streams."""

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
from .faults import FormRefused, broken_off, fault, no_answer
from .forms import ANSWER, FORCING, Form, Question, structured_answer
from .gathering import Gathering

T = TypeVar("T")
_ODD = (AttributeError, TypeError, IndexError, KeyError, ValueError)  # it is no completion


class SDKChatModel(ChatModelBase, Closing):
    """A chat model behind an official SDK, which also tries again what may pass.

    A client that is given is used as it is and never closed. Otherwise each event loop gets one of
    its own; ``close`` closes that of the running loop, and the model can be used again.
    With ``stream``, the request is made when the first response is asked for; leaving the stream,
    or being cancelled in it, hangs up. A form of request that a server refuses is not tried again.
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
        """Answer formatted messages; see ``ChatModelBase``. Nothing given is changed.

        With a ``structured_model`` the tools are not offered.
        """
        question = Question(messages, tools, tool_choice, structured_model)
        return self._streamed(question) if self.stream else await self._whole(question)

    async def close(self) -> None:
        """Close the running loop's client, unless it was given."""
        client = self._own.pop()
        if client is not None:
            await client.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r}, stream={self.stream})"

    @abstractmethod
    def _body(self, question: Question, form: Form) -> dict[str, Any]:
        """Return what the SDK is called with."""

    @abstractmethod
    async def _create(self, client: Any, body: dict[str, Any]) -> Any:
        """Call the SDK."""

    @abstractmethod
    def _take_whole(self, answer: Any, gathering: Gathering) -> None:
        """Take an answer that was not streamed."""

    @abstractmethod
    def _take_event(self, event: Any, gathering: Gathering) -> bool:
        """Take an event of a stream; tell whether it said anything new."""

    async def _whole(self, question: Question) -> ChatResponse:
        began = time.perf_counter()
        form, answer = await self._sent(question, is_stream=False)
        growing = _Growing(self._gathering(form), question, began)
        self._take(self._take_whole, answer, growing.gathering)
        return growing.last()

    async def _streamed(self, question: Question) -> AsyncGenerator[ChatResponse, None]:
        began = time.perf_counter()
        form, stream = await self._sent(question, is_stream=True)
        growing = _Growing(self._gathering(form), question, began)
        async with stream:
            events = aiter(stream)
            while (event := await self._next(events)) is not None:
                if self._take(self._take_event, event, growing.gathering):
                    yield growing.so_far()
        if not growing.gathering.is_complete:
            raise broken_off(self.model_name)
        yield growing.last()

    async def _sent(self, question: Question, is_stream: bool) -> tuple[Form, Any]:
        forms = self._forms_of(question)
        refused = None
        for form in forms[self._taken.get(forms, 0) :]:
            body = {**self._body(question, form), "stream": is_stream}
            try:
                answer = await self._posted(without_none(body))
            except FormRefused as error:
                refused = error
                continue
            self._taken[forms] = forms.index(form)
            return form, answer
        assert refused is not None  # there is always one form at least
        raise refused

    def _forms_of(self, question: Question) -> tuple[Form, ...]:
        if question.structured_model is not None:
            return self.structured_forms
        return FORCING if question.is_forced else (Form.FREE,)

    async def _posted(self, body: dict[str, Any]) -> Any:
        """Ask. Errors are raised outside the block that caught theirs, which may hold a prompt."""
        try:
            return await self._called(body)
        except UnicodeEncodeError:  # half of a surrogate pair; formatters mend it, others may not
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
        """Return the next event, None at the end."""
        try:
            return await anext(events)
        except StopAsyncIteration:
            return None
        except Exception as error:  # SDKs let through whatever their HTTP client raises
            trouble = fault(error, self.model_name, self._api_key, "broke off in the middle")
        raise trouble

    def _take(self, take: Callable[[Any, Gathering], T], said: Any, gathering: Gathering) -> T:
        try:
            return take(said, gathering)
        except _ODD:
            pass
        raise no_answer(self.model_name)

    def _gathering(self, form: Form) -> Gathering:
        answer = ANSWER if form is Form.TOOL else ""
        return Gathering(answer, reads_early=self.stream_tool_parsing)


class _Growing:
    """One answer as responses: the same id and the same hour, more and more content."""

    def __init__(self, gathering: Gathering, question: Question, began: float) -> None:
        self.gathering = gathering
        self._structured_model = question.structured_model
        self._began = began
        self._first = ChatResponse([])

    def so_far(self) -> ChatResponse:
        """Return what was said until now."""
        return self._response(self.gathering.content())

    def last(self) -> ChatResponse:
        """Return everything, with usage and the structured answer."""
        response = self._response(self.gathering.content(is_last=True))
        if self._structured_model is not None:
            response.metadata = structured_answer(self._structured_model, response.content)
        return response

    def _response(self, content: list[Any]) -> ChatResponse:
        known, first = self.gathering, self._first
        seconds = time.perf_counter() - self._began
        usage = ChatUsage(known.input_tokens or 0, known.output_tokens or 0, seconds)
        return ChatResponse(
            content,
            id=known.id or first.id,
            created_at=first.created_at,
            usage=usage if known.is_counted else None,
        )


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are to be sent."""
    return {name: value for name, value in options.items() if value is not None}


def call_options(create: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as an SDK's method takes them.

    Those it does not know go into the body as they are: other servers have more of them, and other
    versions of an SDK have others.
    """
    known, given = signature(create).parameters, without_none(options)
    others = {name: given.pop(name) for name in list(given) if name not in known}
    return {**given, "extra_body": {**others, **given.get("extra_body", {})}} if others else given


def client_options(
    client_kwargs: Mapping[str, Any] | None, client_args: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what an SDK's client is made with; ``client_args`` is the older name for it."""
    if client_kwargs is not None and client_args is not None:
        raise InvalidInput("client_args is the older name of client_kwargs; give only one of them")
    given = client_kwargs if client_kwargs is not None else client_args
    return dict(given) if given is not None else {}
