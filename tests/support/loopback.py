"""A small HTTP server on this machine, for clients that post JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Mapping[str, str], bytes]  # status, headers, body


@contextmanager
def serving(answer: Callable[[Any], Answer], heard: list[dict[str, str]]) -> Iterator[str]:
    """Serve until the block ends; yield the address. ``heard`` takes path and headers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append({"path": self.path, **dict(self.headers)})
            status, headers, data = answer(body)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=[0.01])
    thread.start()
    yield f"http://127.0.0.1:{http.server_address[1]}/v1"
    http.shutdown()
    thread.join()
    http.server_close()
