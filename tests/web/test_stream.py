"""Streams: nothing is missed by who comes back, and who does not keep up is sent away."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from scheduler.core.access import Role
from scheduler.core.model import FailReason
from scheduler.core.notices import Bus
from scheduler.core.outcome import Failed
from scheduler.web import events
from scheduler.web.events import Event, Hub
from scheduler.web.stream import _whole
from tests.faces import Faces, Served
from tests.until import until

SECRETS: dict[tuple[str, int], str] = {}
"""Tokens of role `read`, by the address where they are good."""


@dataclass(frozen=True)
class Seen:
    id: str
    name: str
    data: Any


class Stream:
    """A client of Server-Sent Events."""

    def __init__(self, served: Served, path: str, last: str | None = None) -> None:
        assert served.server.address is not None
        self._connection = http.client.HTTPConnection(*served.server.address, timeout=20)
        headers = {"Authorization": f"Bearer {SECRETS[served.server.address]}"}
        headers |= {"Last-Event-ID": last} if last else {}
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self._connection.close()

    def next(self) -> Seen | None:
        """The next event; None when the stream is over."""
        fields: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode()
            if not line:
                return None
            if line == "\n":
                if "event" in fields:
                    return Seen(fields["id"], fields["event"], json.loads(fields["data"]))
                fields = {}
            elif not line.startswith(":"):
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value

    def until(self, name: str) -> list[Seen]:
        """All events up to the first one of that name."""
        seen = []
        while (event := self.next()) is not None:
            seen.append(event)
            if event.name == name:
                return seen
        raise AssertionError(f"the stream ended without {name}: {seen}")

    def rest(self) -> list[Seen]:
        return list(iter(self.next, None))


@pytest.fixture
def served(faces: Faces) -> Iterator[Served]:
    with faces.served() as found:
        yield known(found)


def known(served: Served) -> Served:
    assert served.server.address is not None
    SECRETS[served.server.address] = served.faces.gate.create("reader", Role.READ, author="test")[1]
    return served


def start(faces: Faces, job: str = "ticket", **how: Any) -> str:
    return faces.rig.desk.run_now(job, author="me", **how)[0].id


# ------------------------------------------------------------ everything


def test_what_happens_comes_as_it_happens(served: Served, faces: Faces) -> None:
    with Stream(served, "/v1/stream") as stream:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        opened = stream.next()
        assert opened is not None
        assert opened.name == "open"
        run = start(faces)
        planned = stream.until("run.planned")[-1]
        assert (planned.data["run_id"], planned.data["job"], planned.data["author"]) == (run, "ticket", "me")
        faces.rig.tick()
        faces.rig.finish()
        settled = stream.until("run.settled")[-1]
        assert settled.data["status"] == "COMPLETED"
        assert settled.data["finished_at"].endswith("Z")


@pytest.mark.parametrize("how", ["header", "query"])
def test_who_comes_back_gets_what_was_missed(served: Served, faces: Faces, how: str) -> None:
    with Stream(served, "/v1/stream?event=run.planned") as stream:
        stream.until("open")
        start(faces, payload=1, has_payload=True)
        last = stream.until("run.planned")[-1].id
    missed = [start(faces, payload=1, has_payload=True) for _ in range(3)]
    path = "/v1/stream?event=run" + (f"&after={last}" if how == "query" else "")
    with Stream(served, path, last if how == "header" else None) as stream:
        assert [stream.until("run.planned")[-1].data["run_id"] for _ in range(3)] == missed
        later = start(faces, payload=1, has_payload=True)
        assert stream.until("run.planned")[-1].data["run_id"] == later


@pytest.mark.parametrize("last", ["0000-1", "nonsense", "-", "{era}-999999", "{era}-x"])
def test_who_comes_back_from_elsewhere_is_told_to_load_anew(served: Served, faces: Faces, last: str) -> None:
    start(faces)
    with Stream(served, "/v1/stream", last.format(era=faces.hub.era)) as stream:
        reset = stream.next()
        assert reset is not None
        assert reset.name == "reset"
        faces.rig.bus.publish("job.paused", job="ticket")
        after = stream.until("job.paused")[-1]
        assert after.id.rpartition("-")[0] == reset.id.rpartition("-")[0] == faces.hub.era


def test_who_comes_back_too_late_is_told_so(served: Served, faces: Faces) -> None:
    faces.hub._kept = type(faces.hub._kept)(maxlen=5)
    for _ in range(10):
        faces.rig.bus.publish("test.made", job="ticket")
    with Stream(served, "/v1/stream", f"{faces.hub.era}-3") as stream:
        assert [stream.next().name for _ in range(2)] == ["reset", "test.made"]  # type: ignore[union-attr]
    number = faces.hub._number - 5
    with Stream(served, "/v1/stream", f"{faces.hub.era}-{number}") as stream:
        assert stream.next().name == "test.made"  # type: ignore[union-attr]


def test_only_what_somebody_wants(served: Served, faces: Faces) -> None:
    with Stream(served, "/v1/stream?job=ticket&event=run,job.paused") as stream:
        stream.until("open")
        for name, job in (
            ("run.made", "report"),
            ("config.loaded", "ticket"),
            ("runs.made", "ticket"),
            ("run.made", "ticket"),
            ("job.paused", "ticket"),
        ):
            faces.rig.bus.publish(name, job=job)
        assert [stream.next().name for _ in range(2)] == ["run.made", "job.paused"]  # type: ignore[union-attr]


def test_who_does_not_keep_up_is_dropped() -> None:
    async def listen() -> None:
        bus = Bus()
        hub = Hub(bus)
        with hub.listen(lambda event: True) as (slow, _, _), hub.listen(lambda event: True) as (quick, _, _):
            for _ in range(events.BEHIND):
                bus.publish("a")
            assert len(await quick.next(1)) == events.BEHIND
            bus.publish("a")
            assert slow.dropped
            assert await slow.next(1) == []
            assert not quick.dropped
            assert len(await quick.next(1)) == 1
        assert hub._listeners == set()

    asyncio.run(listen())


def test_a_listener_hears_from_any_thread_and_everything_once() -> None:
    async def listen() -> None:
        bus = Bus()
        hub = Hub(bus)
        with hub.listen(lambda event: True) as (listener, _, _):
            threads = [threading.Thread(target=lambda: [bus.publish("a") for _ in range(100)]) for _ in range(5)]
            for thread in threads:
                thread.start()
            heard: list[Event] = []
            while len(heard) < 500:
                heard += await listener.next(5)
            assert [event.number for event in heard] == list(range(1, 501))
            for thread in threads:
                thread.join()

    asyncio.run(listen())


def test_too_many_streams_are_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_LISTENERS", 1)
    with Stream(served, "/v1/stream") as one:
        one.until("open")
        with Stream(served, "/v1/stream") as two:
            assert two.answer.status == 503


def test_a_stream_ends_when_the_daemon_leaves_and_leaves_nobody_behind(faces: Faces) -> None:
    with faces.served() as served:
        known(served)
        stream = Stream(served, "/v1/stream")
        stream.until("open")
        run = Stream(served, f"/v1/runs/{start(faces)}/stream")
        run.until("run")
    assert {event.name for event in stream.rest()} <= {"run.planned"}
    assert run.rest() == []
    stream.__exit__()
    run.__exit__()
    assert faces.hub._listeners == set()


@pytest.mark.parametrize("what", ["everything", "a run"])
def test_a_stream_ends_with_the_token_that_opened_it(served: Served, faces: Faces, what: str) -> None:
    path = "/v1/stream" if what == "everything" else f"/v1/runs/{start(faces)}/stream"
    with Stream(served, path) as stream:
        stream.until("open" if what == "everything" else "run")
        faces.gate.revoke("reader", author="test")
        assert {event.name for event in stream.rest()} <= {"token.revoked"}


def test_who_hangs_up_is_forgotten(served: Served, faces: Faces) -> None:
    with Stream(served, "/v1/stream") as stream:
        stream.until("open")
    until(lambda: faces.hub._listeners == set())


# ------------------------------------------------------------ one run


def test_a_run_from_its_waiting_to_its_end(served: Served, faces: Faces) -> None:
    run = start(faces)
    with Stream(served, f"/v1/runs/{run[-8:]}/stream") as stream:
        waiting = stream.next()
        assert waiting is not None
        assert (waiting.name, waiting.data["status"]) == ("run", "PENDING")
        faces.live[run] = b"one\n"
        faces.rig.tick()
        assert [event.data.get("status") for event in stream.until("log")[:-1]][-1] == "RUNNING"
        faces.live[run] = b"one\ntwo \xf0\x9f\x8d"
        assert stream.until("log")[-1].data == {"attempt": 1, "offset": 8, "text": "two "}
        faces.live[run] = b"one\ntwo \xf0\x9f\x8d\xa3\n"
        assert stream.until("log")[-1].data["text"] == "🍣\n"
        del faces.live[run]
        faces.rig.finish()
        rest = stream.rest()
        assert [event.name for event in rest][-1] == "end"
        assert rest[-1].data == {"status": "COMPLETED"}
        assert rest[-2].data["status"] == "COMPLETED"


def test_all_attempts_one_after_the_other(served: Served, faces: Faces) -> None:
    run = start(faces)
    with Stream(served, f"/v1/runs/{run}/stream") as stream:
        stream.until("run")
        faces.rig.tick()
        faces.rig.finish(Failed(FailReason.EXIT, "exit 1", exit_code=1))
        first = stream.until("log")[-1]
        assert first.data == {"attempt": 1, "offset": 8, "text": "printed\n"}
        faces.rig.tick(minutes=2)
        faces.rig.finish()
        rest = stream.rest()
    logs = [event.data for event in rest if event.name == "log"]
    assert logs == [{"attempt": 2, "offset": 8, "text": "printed\n"}]
    with Stream(served, f"/v1/runs/{run}/stream", first.id) as again:
        assert [event.data for event in again.rest() if event.name == "log"] == logs
    with Stream(served, f"/v1/runs/{run}/stream", "1.3") as again:
        texts = [event.data["text"] for event in again.rest() if event.name == "log"]
    assert texts == ["nted\n", "printed\n"]


def test_long_output_comes_in_pieces_that_can_be_gone_on_from(served: Served, faces: Faces) -> None:
    run = start(faces)
    faces.rig.tick()
    text = "".join(f"{number:06} äöü\n" for number in range(20_000))
    faces.live[run] = text.encode()
    with Stream(served, f"/v1/runs/{run}/stream") as stream:
        pieces = [stream.until("log")[-1] for _ in range(3)]
    with Stream(served, f"/v1/runs/{run}/stream", pieces[1].id) as stream:
        third = stream.until("log")[-1]
    assert len(pieces[0].data["text"]) > 50_000
    assert third.data["text"].startswith(pieces[2].data["text"][:1000])
    assert int(pieces[2].id.partition(".")[2]) == sum(len(one.data["text"].encode()) for one in pieces)


@pytest.mark.parametrize(("last", "status"), [("x", 422), ("1", 422), ("1.-1", 422), ("7.0", 404), ("1.999999", 200)])
def test_a_wrong_place_is_told_before_the_stream_begins(served: Served, faces: Faces, last: str, status: int) -> None:
    run = start(faces)
    with Stream(served, f"/v1/runs/{run}/stream", last) as stream:
        assert stream.answer.status == status


def test_without_the_database_the_stream_goes_on(served: Served, faces: Faces) -> None:
    run = start(faces)
    with Stream(served, f"/v1/runs/{run}/stream") as stream:
        stream.until("run")
        faces.rig.store.away = True
        faces.rig.bus.publish("run.nothing", run=run)
        faces.rig.store.away = False
        faces.rig.tick()
        faces.rig.finish()
        assert stream.until("end")


@pytest.mark.parametrize(
    ("body", "length"),
    [
        (b"", 0),
        (b"abc", 3),
        ("ä".encode(), 2),
        ("ä".encode()[:1], 0),
        ("a€".encode()[:-1], 1),
        ("a€".encode()[:-2], 1),
        ("🍣".encode()[:3], 0),
        (b"\xff", 0),
        (b"\x80\x80\x80\x80\x80", 5),
        (b"a\xc3b", 3),
    ],
)
def test_characters_are_not_torn(body: bytes, length: int) -> None:
    assert _whole(body) == length
