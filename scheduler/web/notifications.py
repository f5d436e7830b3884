"""Who was told what by which channel, and whether a channel works."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from starlette.requests import Request

from scheduler.config.secrets import missing
from scheduler.core.access import Access
from scheduler.core.channel import Channel
from scheduler.core.errors import NotFound
from scheduler.core.notification import ChannelView, Fate, Sent
from scheduler.core.notification_queries import NotificationFilter
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.operation import Operation
from scheduler.web.parameters import Number, Text, Words
from scheduler.web.present import Shown, when
from scheduler.web.shapes import COUNT, FLAG, INSTANT, TEXT, many, record

CHANNEL = Text("channel", "Only by this channel.")
JOB = Text("job", "Only of this job.")
STATUS = Words("status", "Only those that are so.", tuple(fate.value for fate in Fate))
LIMIT = Number("limit", "So many of the newest.", 20, 1, 1000)


def notifications(request: Request) -> Answer:
    """The channels of the configuration in force and how each stands, and the newest notifications: `waiting` (since
    `created_at`; tried again at `next_attempt_at`), `sent`, or `failed` (tried for a day). `together`: how many went in
    one message."""
    backend = backend_of(request)
    which = NotificationFilter(
        CHANNEL.read(request), JOB.read(request), tuple(Fate(word) for word in STATUS.read(request))
    )
    with backend.readable.queries() as queries:
        views = {view.name: view for view in queries.channels()}
        found = queries.notifications(which, LIMIT.read(request))
    return Answer(
        {
            "channels": [channel_json(one, views.get(one.name)) for one in _channels(backend)],
            "notifications": [_notification_json(one) for one in found],
            "now": when(backend.now()),
        }
    )


def try_channel(request: Request) -> Answer:
    """Sends a message by this channel at once, and tells what the channel said to it. If it took it, what waits for it
    is sent, too."""
    backend = backend_of(request)
    name = request.path_params["channel"]
    known = [one.name for one in _channels(backend)]
    if name not in known:
        close = difflib.get_close_matches(name, known, 3)
        there = f"there are {', '.join(known)}" if known else "add it below `notify` in jobs.yaml"
        raise NotFound(f"no channel {name!r}", hint=f"did you mean {', '.join(close)}?" if close else there)
    answer = backend.try_channel(name)
    return Answer({"channel": name, "ok": answer.ok, "said": answer.said})


def channel_json(channel: Channel, view: ChannelView | None) -> Shown:
    standing = None if view is None else view.standing
    return {
        "name": channel.name,
        "kind": channel.kind,
        "waiting": 0 if view is None else view.waiting,
        "oldest_waiting_at": None if view is None else when(view.oldest),
        "last_sent_at": None if standing is None else when(standing.answered_at),
        "failing_since": None if standing is None else when(standing.failing_since),
        "error": unreadable(channel) or (None if standing is None else standing.error),
    }


def unreadable(channel: Channel) -> str | None:
    """Which of its secrets cannot be read here, and why."""
    problems = ((name, missing(secret)) for name, secret in channel.secrets.items())
    return next((f"{name}: {why}" for name, why in problems if why is not None), None)


def _channels(backend: Backend) -> Iterable[Channel]:
    configuration = backend.configuration()
    return () if configuration is None else configuration.channels.values()


def _notification_json(one: Sent) -> Shown:
    return {
        "id": one.id,
        "channel": one.channel,
        "kind": one.kind,
        "job": one.job,
        "run_id": one.run,
        "since": when(one.since),
        "created_at": when(one.created_at),
        "status": one.fate.value,
        "attempts": one.attempts,
        "next_attempt_at": when(one.next_at),
        "settled_at": when(one.settled_at),
        "error": one.error,
        "together": one.together,
    }


_CHANNEL = record(
    name=TEXT,
    kind=TEXT,
    waiting=COUNT,
    oldest_waiting_at=INSTANT,
    last_sent_at=INSTANT,
    failing_since=INSTANT,
    error=TEXT,
)
_NOTIFICATION = record(
    id=COUNT,
    channel=TEXT,
    kind=TEXT,
    job=TEXT,
    run_id=TEXT,
    since=INSTANT,
    created_at=INSTANT,
    status=TEXT,
    attempts=COUNT,
    next_attempt_at=INSTANT,
    settled_at=INSTANT,
    error=TEXT,
    together=COUNT,
)

operations = [
    Operation(
        "GET",
        "/v1/notifications",
        notifications,
        Access.READ,
        record(channels=many(_CHANNEL), notifications=many(_NOTIFICATION), now=INSTANT),
        query=(CHANNEL, JOB, STATUS, LIMIT),
    ),
    Operation(
        "POST",
        "/v1/channels/{channel}/test",
        try_channel,
        Access.OPERATE,
        record(channel=TEXT, ok=FLAG, said=TEXT),
    ),
]
