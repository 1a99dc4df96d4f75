import logging

import pytest

from memoryspace.events import Event, EventStream
from memoryspace.testing import ManualClock, capture


def test_an_event_carries_its_name_time_and_facts() -> None:
    clock = ManualClock(100.0)
    events = EventStream(clock=clock)
    with capture(events) as seen:
        events.emit("append", count=2, user="alice")
        clock.advance(5)
        events.emit("evict")
    assert seen == [
        Event("append", 100.0, {"count": 2, "user": "alice"}),
        Event("evict", 105.0, {}),
    ]


def test_a_fact_may_be_called_name() -> None:
    events = EventStream()
    with capture(events) as seen:
        events.emit("read", name="notes", self="x")
    assert seen[0].name == "read"
    assert seen[0].data == {"name": "notes", "self": "x"}


def test_every_listener_hears_in_the_order_of_subscribing() -> None:
    events = EventStream()
    heard: list[str] = []
    events.subscribe(lambda event: heard.append(f"first {event.name}"))
    events.subscribe(lambda event: heard.append(f"second {event.name}"))
    events.emit("a")
    events.emit("b")
    assert heard == ["first a", "second a", "first b", "second b"]


def test_listening_ends_with_unsubscribing() -> None:
    events = EventStream()
    left: list[Event] = []
    stayed: list[Event] = []
    unsubscribe = events.subscribe(left.append)
    events.subscribe(stayed.append)
    events.emit("a")
    unsubscribe()
    unsubscribe()
    events.emit("b")
    assert [event.name for event in left] == ["a"]
    assert [event.name for event in stayed] == ["a", "b"]


def test_a_listener_may_unsubscribe_while_it_is_told() -> None:
    events = EventStream()
    heard: list[str] = []

    def once(event: Event) -> None:
        heard.append(event.name)
        unsubscribe()

    unsubscribe = events.subscribe(once)
    with capture(events) as seen:
        events.emit("a")
        events.emit("b")
    assert heard == ["a"]
    assert [event.name for event in seen] == ["a", "b"]


def test_a_failing_listener_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    events = EventStream()

    def fail(event: Event) -> None:
        raise OSError("disk full")

    events.subscribe(fail)
    with capture(events) as seen, caplog.at_level(logging.ERROR, "memoryspace.events"):
        events.emit("append")
        events.emit("evict")
    assert [event.name for event in seen] == ["append", "evict"]
    assert len(caplog.records) == 2
    assert "append" in caplog.text
    assert "disk full" in caplog.text


def test_what_must_stop_the_program_is_not_swallowed() -> None:
    events = EventStream()

    def interrupt(event: Event) -> None:
        raise KeyboardInterrupt

    events.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        events.emit("append")


def test_without_a_listener_nobody_looks_at_the_clock() -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(0.0)
        return 0.0

    events = EventStream(clock=clock)
    events.emit("append", count=1)
    assert looks == []
    with capture(events):
        events.emit("append", count=1)
    assert looks == [0.0]


def test_capture_stops_listening_even_after_an_error() -> None:
    events = EventStream()
    seen: list[Event] = []

    def emit_and_fail() -> None:
        with capture(events) as captured:
            events.emit("inside")
            seen.extend(captured)
            raise LookupError

    with pytest.raises(LookupError):
        emit_and_fail()
    with capture(events) as later:
        events.emit("outside")
    assert [event.name for event in seen] == ["inside"]
    assert [event.name for event in later] == ["outside"]


def test_events_are_frozen() -> None:
    event = Event("append", 1.0, {})
    with pytest.raises(AttributeError):
        event.name = "evict"  # type: ignore[misc]
    assert event.name == "append"


def test_a_listener_subscribed_twice_hears_twice_until_each_is_ended() -> None:
    stream, heard = EventStream(), []
    first, second = stream.subscribe(heard.append), stream.subscribe(heard.append)
    stream.emit("a")
    first()
    stream.emit("b")
    second()
    stream.emit("c")
    assert [event.name for event in heard] == ["a", "a", "b"]
