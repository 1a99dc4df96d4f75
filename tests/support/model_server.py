"""A provider on this machine: answers as told, streams events, breaks off, hangs, and listens."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

_PATIENCE = 20.0  # seconds until a test that went wrong is over


@dataclass(frozen=True)
class Reply:
    """What the server says: a JSON body, or events one after another."""

    body: Any = None
    status: int = 200
    events: Sequence[str] | None = None
    ending: Literal["whole", "cut", "hang"] = "whole"  # cut: hangs up within the answer
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Heard:
    """A request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Provider:
    """The replies still to be given, what was asked, and whether the other side has hung up."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)
        self.heard: list[Heard] = []
        self.was_asked = threading.Event()
        self.client_left = threading.Event()
        self.url = ""

    @property
    def asked(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.heard[-1].body


@contextmanager
def provider(*replies: Reply) -> Iterator[Provider]:
    """Serve the replies, one for each request, until the block ends."""
    served = Provider(replies)

    class Handler(_Handler):
        provider = served

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=[0.01])
    thread.start()
    served.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield served
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    provider: Provider
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.provider.heard.append(Heard(self.path, headers, body))
        self.provider.was_asked.set()
        reply = self.provider.replies.pop(0) if self.provider.replies else Reply({}, 418)
        try:
            self._say(reply)
        except ConnectionError:  # hung up while it was being told, not while it waited for more
            self.provider.client_left.set()
            self.close_connection = True

    def _say(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.events is None:
            self._say_whole(reply)
        else:
            self._say_events(reply)

    def _say_whole(self, reply: Reply) -> None:
        data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if reply.ending == "hang":
            self._wait_for_the_client_to_leave()
        self.wfile.write(data)

    def _say_events(self, reply: Reply) -> None:
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in reply.events or ():
            data = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        if reply.ending == "hang":
            self._wait_for_the_client_to_leave()
        if reply.ending == "whole":
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def _wait_for_the_client_to_leave(self) -> None:
        if self.rfile.read(1) == b"":
            self.provider.client_left.set()

    def log_message(self, *_: Any) -> None:
        pass


def openai_events(
    *deltas: dict[str, Any], finish: str | None = "stop", usage: Any = None
) -> list[str]:
    """Return a stream of OpenAI's: one event for each delta, the end, and the usage."""
    events = [_completion_chunk([{"index": 0, "delta": delta}]) for delta in deltas]
    if finish is not None:
        events.append(_completion_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
    if usage is not None:
        events.append(_completion_chunk([], usage))
    return [*(f"data: {event}\n\n" for event in events), *(["data: [DONE]\n\n"] if finish else [])]


def openai_answer(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    """Return an answer of OpenAI's that is not streamed."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def call_delta(
    index: int | None, id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    """Return a piece of a tool call as OpenAI streams it."""
    function = {"name": name, "arguments": arguments}
    given = {key: value for key, value in function.items() if value is not None}
    call: dict[str, Any] = {"index": index, "function": given}
    return {"tool_calls": [{**call, "id": id, "type": "function"} if id is not None else call]}


def anthropic_events(*blocks: Sequence[dict[str, Any]], is_whole: bool = True) -> list[str]:
    """Return a stream of Anthropic's: each block is how it starts, then its deltas."""
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**start, "usage": usage}}]
    for index, (first, *deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": first})
        events.extend(
            {"type": "content_block_delta", "index": index, "delta": each} for each in deltas
        )
        events.append({"type": "content_block_stop", "index": index})
    if is_whole:
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})
        events.append({"type": "message_stop"})
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]


def anthropic_answer(*content: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of Anthropic's that is not streamed."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 7},
    }


def _completion_chunk(choices: list[Any], usage: Any = None) -> str:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return json.dumps({**chunk, "choices": choices, "usage": usage})
