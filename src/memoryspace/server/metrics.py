"""Metrics for Prometheus: requests, operations, recall, and the memory space."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ..events import Event
from ..store.space import SpaceStore
from .serving import Serving

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_PAUSES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25)

# Gauges of the memory space: their names, the figures of ``stats`` they show, and what they say.
_SPACE = (
    ("memoryspace_heap_capacity_bytes", "heap_capacity", "Bytes that the heap has."),
    ("memoryspace_heap_used_bytes", "heap_used", "Bytes of the heap that are allocated."),
    ("memoryspace_heap_fragmentation_ratio", "fragmentation", "How scattered free bytes are."),
    ("memoryspace_objects", "objects", "Objects in the space."),
    ("memoryspace_cold_objects", "cold_items", "Objects in the cold tier."),
    ("memoryspace_journal_lsn", "last_lsn", "The number of the last change."),
)


class Metrics:
    """Counts what happens, and asks for the state of the memory when it is read."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "memoryspace_http_requests_total",
            "Requests by method, route and status.",
            ("method", "route", "status"),
            registry=registry,
        )
        self.request_seconds = Histogram(
            "memoryspace_http_request_seconds",
            "How long requests take.",
            ("route",),
            buckets=_FAST,
            registry=registry,
        )
        self._operations = Histogram(
            "memoryspace_operation_seconds",
            "How long operations of the store, the service, models and embedders take.",
            ("name",),
            buckets=_FAST,
            registry=registry,
        )
        self._failures = Counter(
            "memoryspace_operation_failures_total",
            "Operations that failed, by the name of the error.",
            ("name", "error"),
            registry=registry,
        )
        self._recalls = Counter(
            "memoryspace_recalls_total",
            "Searches and contexts, by whether they found something.",
            ("found",),
            registry=registry,
        )
        self._pauses = Histogram(
            "memoryspace_gc_pause_seconds",
            "The longest pause of each garbage collection.",
            buckets=_PAUSES,
            registry=registry,
        )
        self._freed = Counter(
            "memoryspace_gc_freed_total", "Objects freed by collections.", registry=registry
        )
        self._corrupt = Counter(
            "memoryspace_corrupt_records_total",
            "Records that could not be decoded.",
            registry=registry,
        )
        self._ready = Gauge("memoryspace_ready", "Whether the store answers.", registry=registry)
        self._space = {
            figure: Gauge(name, what, registry=registry) for name, figure, what in _SPACE
        }
        self._stop = serving.events.subscribe(self._hear, "operation", "gc_cycle", "record_corrupt")

    def close(self) -> None:
        """Stop listening."""
        self._stop()

    async def text(self) -> bytes:
        """Return all metrics in the text format."""
        self._ready.set(1 if await self._serving.memory.health() else 0)
        store = self._serving.memory.store
        if isinstance(store, SpaceStore):
            stats = await asyncio.to_thread(store.space.stats)
            for figure, gauge in self._space.items():
                if figure in stats:
                    gauge.set(stats[figure])
        return generate_latest(self._registry)

    def _hear(self, event: Event) -> None:
        data: dict[str, Any] = event.data
        if event.name == "operation":
            name = data["name"]
            self._operations.labels(name).observe(data["seconds"])
            if data["outcome"] == "failed":
                self._failures.labels(name, data["error"]).inc()
            if name == "service.search" and data["outcome"] == "done":
                found = "yes" if data["counts"].get("returned") else "no"
                self._recalls.labels(found).inc()
        elif event.name == "record_corrupt":
            self._corrupt.inc()
        else:
            self._pauses.observe(float(data.get("pause_duration", 0.0)))
            self._freed.inc(float(data.get("freed", 0)))
