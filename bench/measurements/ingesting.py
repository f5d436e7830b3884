"""How many webhooks per second are received, verified and durable before the answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from bench.measurement import Bar, Figures, Row
from bench.peers import webhooks as receivers
from bench.peers.trial import Trial, trial
from bench.session import DATABASES, Session, product
from bench.tools.jobs_file import job, jobs_file
from bench.tools.ledger import Ledger
from bench.tools.load import Load, pour
from bench.tools.percentiles import percentile
from bench.tools.services import answers
from bench.tools.waiting import until
from bench.tools.webhooks import free_port, source, webhooks

ORDER = 5.5
TITLE = "Webhooks of 700 bytes with a signature, 64 connections, durable before the answer"
STARLETTE, *_ = PEERS = tuple(peer.name for peer in receivers.PEERS)
BARS = (
    Bar(product("SQLite"), "webhooks/s", least=6000),
    Bar(product("SQLite"), "answer p99 ms", most=60),
    Bar(product("SQLite"), "webhooks/s", least=1.5, beside=STARLETTE),
    Bar(product("PostgreSQL"), "webhooks/s", least=4000),
)
CONNECTIONS = 64
_LIMIT = 20.0
"""Seconds of load at most."""


def run(session: Session) -> Iterator[Row]:
    yield from session.ours(lambda database: measure(session, database))
    for database in DATABASES:
        yield session.row(
            f"{product(database)}, a run of each",
            lambda database=database: measure(session, database, subscribed=True),  # type: ignore[misc]
        )
    yield from session.theirs(PEERS, lambda name: measure_peer(session, name))


def measure(session: Session, database: str, *, subscribed: bool = False) -> Figures:
    """As the peers: events are stored. `subscribed`: each makes a run too, of a job that is paused, so that only
    receiving is measured."""
    port, folder = free_port(), session.folder()
    text = jobs_file(
        [job("handle", on_event="sender", command=["/bin/true"])] if subscribed else [], sources=source(folder)
    )
    with session.daemon(text, database, WEBHOOK_LISTEN=f"127.0.0.1:{port}") as daemon:
        if subscribed:
            daemon.must("POST", "/v1/jobs/handle/pause", {"reason": "only receiving is measured"})
        warm, load = _load(session, port, "/webhooks/sender")
        with closing(Ledger(daemon.state, daemon.url)) as ledger:
            there = int(ledger.value("SELECT count(*) FROM events"))
            runs = ledger.runs()
    session.drop(folder)
    sent = _accepted(warm) + _accepted(load)
    if there != sent or runs != (sent if subscribed else 0):
        raise RuntimeError(f"{sent} were answered, {there} are in the database with {runs} runs")
    return _figures(load)


def measure_peer(session: Session, name: str) -> Figures:
    with trial(session, name, 0) as one:
        one.start("ingest")
        port = int((one.folder / receivers.PORT).read_text())
        until(lambda: answers(port) or not one.group.alive(), 30, f"it answers: {one.group.tail()}")
        warm, load = _load(session, port, receivers.PATH)
        sent = _accepted(warm) + _accepted(load)
        if one.peer.records and (there := _rows(one)) != sent:
            raise RuntimeError(f"{sent} were answered, {there} are in its database")
        return _figures(load)


def _load(session: Session, port: int, path: str) -> tuple[Load, Load]:
    """The warm-up, and what counts."""
    warm, count = session.size(2_000, 128), session.size(40_000, 500)
    requests = webhooks(path, 0, warm + count)
    first = pour(port, requests[:warm], CONNECTIONS, _LIMIT)
    return first, pour(port, requests[warm:], CONNECTIONS, _LIMIT)


def _rows(one: Trial) -> int:
    with closing(sqlite3.connect(one.folder / "inbox.db")) as inbox:
        found: int = inbox.execute("SELECT count(*) FROM inbox").fetchone()[0]
    return found


def _accepted(load: Load) -> int:
    if any(status // 100 != 2 for status in load.statuses) or not load.statuses:
        raise RuntimeError(f"answers {dict(load.statuses)}: {load.refusal}")
    return load.statuses.total()


def _figures(load: Load) -> Figures:
    return {
        "webhooks/s": load.statuses.total() / load.seconds,
        "answer p50 ms": percentile(load.waits, 0.5) * 1e3,
        "answer p99 ms": percentile(load.waits, 0.99) * 1e3,
    }
