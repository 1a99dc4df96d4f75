"""``Watching``: what sees everything that a server does: the live feed, the metrics, the log."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from .feed import Feed
from .metrics import Metrics
from .serving import Serving

logger = logging.getLogger("memoryspace.server.requests")


class Watching:
    """The live feed and the metrics of a server, and a line in the log for every request.

    A line has the route and never the address: that may hold ids. What users said is in neither.
    """

    def __init__(self, serving: Serving) -> None:
        self.feed = Feed(serving.events)
        self.metrics = Metrics(serving)

    def close(self) -> None:
        """Stop watching, and end all streams."""
        self.feed.close()
        self.metrics.close()

    def ended(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Note the end of a request."""
        route = getattr(scope.get("route"), "path", "") if status != 404 else ""
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.request_seconds.labels(route).observe(seconds)
        state = scope["state"]
        caller = state.get("caller")
        logger.info(
            "%s %s %d",
            method,
            route or "?",
            status,
            extra={
                "request_id": state["request_id"],
                "method": method,
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 2),
                "key": None if caller is None else caller.key,
            },
        )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
