"""The reception of one source: what becomes of a request that was sent to it. No I/O but secrets that are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduler.core.document import document_of
from scheduler.core.document import mistaken as mistaken_form
from scheduler.core.errors import InvalidInput
from scheduler.core.event import NewEvent, Reject, Via
from scheduler.core.event_fields import FieldReader
from scheduler.core.handshakes import Handshakes
from scheduler.core.model import Json
from scheduler.core.place import Place
from scheduler.core.preset import Answer, EventFields
from scheduler.core.signature import Accepted, Headers, Incoming, Refusal, Rejected, Scheme, Verdict
from scheduler.core.source import Source
from scheduler.web.bucket import Bucket
from scheduler.web.live_secrets import LiveSecrets

Build = Callable[[str, Mapping[str, Any]], Scheme]
"""Makes a signature scheme of its kind and options; InvalidInput if there is none."""

UNKEPT = frozenset({"authorization", "proxy-authorization", "cookie", "x-gitlab-token"})
"""Headers that are, or may be, somebody's secret: not kept with a refused request, unless the signature lies there."""
MANY = 3
"""Refused requests in a row that are worth a word: one or two may be a stranger's."""
_PLAIN = frozenset({"", "identity"})
OURS = (Refusal.SECRET_MISSING, Refusal.SECRET_UNUSABLE, Refusal.URL_MISSING)
"""Reasons that are ours to put right: the sender is asked to try again."""
_OUT_OF_TIME = (Refusal.TIMESTAMP_TOO_OLD, Refusal.TIMESTAMP_TOO_NEW)


class Reception:
    """Compiled once per source; any thread may use it. InvalidInput for a scheme or a place that there is not."""

    def __init__(self, source: Source, build: Build, environ: Mapping[str, str]) -> None:
        self.source = source
        self.secrets = LiveSecrets(source.secrets, environ)
        self.bucket = None if source.rate is None else Bucket(source.rate, source.burst)
        self.scheme = build(source.scheme, source.options)
        self._reader = FieldReader(source.event)
        self._handshakes = Handshakes(source.handshakes)
        self.refused: tuple[datetime, int, str] | None = None
        """Since when how many requests were refused, the last of them why, if none was taken since."""
        self.out_of_time: tuple[datetime, str] | None = None
        """When, and why, a request was refused that its sender did sign, if none was taken since."""
        self._kept = _header_names(source.event)
        self._signature = str(source.options.get("header", "")).lower()

    def judge(self, incoming: Incoming, now: datetime) -> NewEvent | Answer | Rejected:
        """The event that came, what to answer a handshake, or why the request is refused. Never raises."""
        found = self._judge(incoming, now, now)
        if not isinstance(found, Rejected):
            self.refused = self.out_of_time = None
            return found
        since, count, _ = self.refused or (now, 0, "")
        self.refused = (since, count + 1, found.why)
        if found.reason in _OUT_OF_TIME:
            self.out_of_time = (now, found.why)
        return found

    def trouble(self) -> list[tuple[datetime | None, str]]:
        """What keeps the source from taking what its sender signs: since when, and what it is."""
        self.secrets.now()
        found: list[tuple[datetime | None, str]] = [(None, problem) for problem in self.secrets.problems]
        if self.out_of_time is not None:
            found.append((self.out_of_time[0], f"a request was refused: {self.out_of_time[1]}"))
        elif self.refused is not None and self.refused[1] >= MANY:
            since, count, why = self.refused
            found.append((since, f"{count} requests were refused and none was taken since; the last: {why}"))
        return found

    def judge_again(self, reject: Reject, now: datetime) -> NewEvent | Rejected:
        """A kept request, with the secrets of today and the time at which it came."""
        incoming = Incoming(Headers(reject.headers), reject.body, self.source.url, reject.query)
        found = self._judge(incoming, reject.at, now)
        if isinstance(found, Answer):
            return Rejected(Refusal.EVENT_ID_MISSING, "it only asks whether somebody answers, and is no event")
        return found

    def reject(self, incoming: Incoming, refused: Rejected, now: datetime) -> Reject:
        """The request as it is kept."""
        headers = tuple(one for one in incoming.headers.fields if one[0] not in UNKEPT or one[0] == self._signature)
        return Reject(0, self.source.name, now, refused.reason, refused.why, headers, incoming.body, incoming.query)

    def _judge(self, incoming: Incoming, came: datetime, now: datetime) -> NewEvent | Answer | Rejected:
        verdict = self._verify(incoming, came)
        if isinstance(verdict, Rejected):
            return verdict
        content_type = incoming.headers.get("content-type") or ""
        document = _document(incoming, content_type)
        mistaken = mistaken_form(incoming.body, content_type)
        if isinstance(document, Rejected):
            return _with(document, mistaken)
        if self.source.handshakes:
            answer = self._handshakes.answer(document, incoming.headers)
            if answer is not None:
                return answer
        facts = self._reader.read(document, incoming.headers)
        if isinstance(facts, Rejected):
            return _with(facts, mistaken)
        kept = self._kept
        return NewEvent(
            self.source.name,
            facts.id,
            Via.WEBHOOK,
            now,
            incoming.body,
            facts.type,
            facts.subject,
            facts.occurred_at,
            content_type,
            tuple(one for one in incoming.headers.fields if one[0] in kept) if kept else (),
            vouched_by=verdict.secret_name,
            problems=(*facts.problems, mistaken) if mistaken else facts.problems,
        )

    def _verify(self, incoming: Incoming, came: datetime) -> Verdict:
        scheme, tolerance = self.scheme, self.source.tolerance
        verdict = scheme.verify(incoming, self.secrets.now(), tolerance=tolerance, now=came)
        if isinstance(verdict, Accepted):
            return verdict
        if self.secrets.changed():
            verdict = scheme.verify(incoming, self.secrets.now(), tolerance=tolerance, now=came)
        if isinstance(verdict, Rejected) and verdict.reason in OURS and self.secrets.problems:
            return Rejected(verdict.reason, "; ".join(self.secrets.problems))
        return verdict


class Receptions:
    """The receptions of all sources in force; one that did not change keeps its bucket and secrets."""

    def __init__(self, sources: Callable[[], Mapping[str, Source]], build: Build, environ: Mapping[str, str]) -> None:
        self._sources = sources
        self._build = build
        self._environ = environ
        self._known: dict[str, Reception] = {}

    def find(self, name: str) -> Reception | None:
        """None: there is no such source. InvalidInput if it cannot be compiled."""
        source = self._sources().get(name)
        if source is None:
            self._known.pop(name, None)
            return None
        known = self._known.get(name)
        if known is not None and known.source is source:
            return known
        if known is not None and known.source == source:
            known.source = source  # Of a newer configuration, in which nothing of it changed.
            return known
        made = self._known[name] = Reception(source, self._build, self._environ)
        return made

    def all(self) -> list[Reception]:
        """Those that can be compiled."""
        found: list[Reception] = []
        for name in list(self._sources()):
            with suppress(InvalidInput):
                one = self.find(name)
                if one is not None:
                    found.append(one)
        return found


def _document(incoming: Incoming, content_type: str) -> Json | Rejected:
    encoding = incoming.headers.get("content-encoding") or ""
    if encoding.lower() not in _PLAIN:
        return Rejected(Refusal.BODY_MALFORMED, "the body is compressed, which is not read")
    try:
        return document_of(incoming.body, content_type)
    except InvalidInput as error:
        return Rejected(Refusal.BODY_MALFORMED, str(error))


def _with(rejected: Rejected, mistaken: str) -> Rejected:
    return replace(rejected, why=f"{rejected.why}; {mistaken}") if mistaken else rejected


def _header_names(fields: EventFields) -> frozenset[str]:
    """The headers from which an event's fields are read."""
    texts = (fields.id, fields.type, fields.occurred_at, fields.subject)
    return frozenset(name.lower() for text in texts if text for name in Place.of(text).headers)
