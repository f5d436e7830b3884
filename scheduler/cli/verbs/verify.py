"""`schedctl verify`: whether a request is signed as a source wants it, and why not; offline."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scheduler.cli.complete import complete_source
from scheduler.cli.sheet import line
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.times import took, typed
from scheduler.cli.verb import verb
from scheduler.cli.verbs.check import jobs_file
from scheduler.core.errors import NotFound
from scheduler.core.event import NewEvent
from scheduler.core.preset import Answer
from scheduler.core.signature import Accepted, Diagnosis, Headers, Incoming, Rejected
from scheduler.core.stamp import to_text
from scheduler.core.value_object import value_object

if TYPE_CHECKING:
    from scheduler.web.reception import Reception

_SIGN, _LABEL = 2, 13
"""Columns on the left."""
_HEADER = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]+):(.*)", re.DOTALL)


@verb(
    "schedctl verify stripe --header @headers.txt --body @body.json",
    "schedctl verify own --header 'X-Signature: 5257…' --body @body.json",
    "schedctl verify stripe --header @headers.txt --body @body.json --at 14:05",
)
@click.argument("source", shell_complete=complete_source)
@click.option("--config", "file", metavar="FILE", help="The jobs.yaml (default: SCHEDULER_CONFIG, else jobs.yaml).")
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="One of its headers; @FILE: all.")
@click.option("--body", required=True, metavar="@FILE", help="Its body, byte by byte: @FILE, @- for stdin, or a text.")
@click.option("--query", default="", metavar="TEXT", help="What stood behind the ? of the address, if it is signed.")
@click.option("--url", metavar="URL", help="The address as registered, instead of what the source says.")
@click.option("--at", metavar="INSTANT", help="When it came (default: now); older than `tolerance` is refused.")
def verify(
    surface: Surface,
    source: str,
    file: str | None,
    headers: tuple[str, ...],
    body: str,
    query: str,
    url: str | None,
    at: str | None,
) -> int:
    """Says whether a request is signed as SOURCE wants it, and if not why: which bytes were signed, what would have
    been right. And whether it is an event that the source would take.

    It judges as the daemon does, with the secrets that this environment gives; nothing is stored or sent. Exit 1 if
    the signature is not valid."""
    name = jobs_file(surface, file)
    came = surface.now() if at is None else typed(at, surface.now(), surface.zone)
    reception = _reception(surface, name, source)
    fields = [pair for header in headers for pair in _fields(header)]
    registered = reception.source.url if url is None else url
    incoming = Incoming(Headers.of(fields), _bytes("--body", body), registered, query)
    found = _judged(reception, incoming, came)
    data = found.data()
    if not surface.structured(data, ["valid" if found.valid else str(data["reason"])]):
        _tell(surface, found, data)
        if found.suggested_at is not None:
            again = ["verify", source, *(["--config", file] if file else []), *_repeated("--header", headers)]
            surface.then(command_line(*again, "--body", body, "--at", to_text(found.suggested_at)))
        elif found.refused is not None:
            surface.then(shlex.join(["schedctl", "show", source, "--file", name]))
    return 0 if found.valid else 1


@value_object
class _Judged:
    source: str
    answer: NewEvent | Answer | Rejected
    diagnosis: Diagnosis
    unreadable: tuple[str, ...]
    came: datetime

    @property
    def valid(self) -> bool:
        """Whether it is signed; a body that is no event is another matter."""
        return isinstance(self.diagnosis.verdict, Accepted)

    @property
    def refused(self) -> Rejected | None:
        return self.answer if isinstance(self.answer, Rejected) else None

    @property
    def suggested_at(self) -> datetime | None:
        """When the request would be in time, if its time is all that is wrong."""
        verdict = self.diagnosis.verdict
        late = isinstance(verdict, Rejected) and verdict.reason.startswith("timestamp_too_")
        return verdict.signed_at if late else None

    def data(self) -> dict[str, Any]:
        answer, verdict, refused = self.answer, self.diagnosis.verdict, self.refused
        event = answer if isinstance(answer, NewEvent) else None
        difference, signed_at = verdict.difference, verdict.signed_at
        return {
            "valid": self.valid,
            "reason": None if self.valid or refused is None else str(refused.reason),
            "why": None if self.valid or refused is None else refused.why,
            "taken": refused is None,
            "refused": None if refused is None else {"reason": str(refused.reason), "why": refused.why},
            "source": self.source,
            "scheme": self.diagnosis.scheme,
            "secret": getattr(verdict, "secret_name", None) or None,
            "signed_at": None if signed_at is None else to_text(signed_at),
            "difference_s": None if difference is None else difference.total_seconds(),
            "covered": [asdict(one) for one in self.diagnosis.covered],
            "findings": [asdict(one) for one in self.diagnosis.findings],
            "unreadable_secrets": list(self.unreadable),
            "handshake": isinstance(answer, Answer),
            "event": None if event is None else _event(event),
        }


def _event(event: NewEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "type": event.type,
        "occurred_at": None if event.occurred_at is None else to_text(event.occurred_at),
        "subject": event.subject,
        "problems": list(event.problems),
    }


def _reception(surface: Surface, file: str, source: str) -> Reception:
    from scheduler.config.load import load_sources
    from scheduler.config.problem import ConfigError
    from scheduler.signatures.registry import build
    from scheduler.web.reception import Reception

    sources, problems = load_sources(file, environ=surface.environ)
    if source not in sources:
        if problems:
            raise ConfigError([one for one in problems if one.path[:2] == ("sources", source)] or problems)
        there = f"it has {', '.join(sources)}" if sources else "write one: schedctl init source NAME"
        raise NotFound(f"{file} has no source `{source}`", hint=there)
    return Reception(sources[source], build, surface.environ)


def _judged(reception: Reception, incoming: Incoming, came: datetime) -> _Judged:
    from scheduler.signatures.diagnosis import diagnose

    source, secrets = reception.source, reception.secrets
    answer = reception.judge(incoming, came)
    diagnosis = diagnose(reception.scheme, incoming, secrets.now(), tolerance=source.tolerance, now=came)
    return _Judged(source.name, answer, diagnosis, secrets.problems, came)


def _tell(surface: Surface, found: _Judged, data: dict[str, Any]) -> None:
    if found.valid:
        by = f"signed with {data['secret']}" if data["secret"] else "unsigned: everybody who reaches it may send"
        line(surface, "✓", f"valid, {by}", _SIGN)
        if found.refused is not None:
            why = f"no event that it would take: {found.refused.reason}: {found.refused.why}"
            line(surface, "✗", why, _SIGN)
    else:
        line(surface, "✗", f"{data['reason']}: {data['why']}", _SIGN)
    for label, text in _details(surface, found, data):
        line(surface, f"  {label}", text, _LABEL)


def _details(surface: Surface, found: _Judged, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if data["signed_at"] is not None:
        yield "its time", surface.when(data["signed_at"]) + _apart(data["difference_s"])
    for one in found.diagnosis.covered:
        more = "…" if one.length > len(one.beginning) else ""
        yield "signed", f"{one.what}: {one.length} bytes, {one.beginning}{more}"
    for said in found.diagnosis.findings:
        yield said.about, said.what
    for why in found.unreadable:
        if why not in (data["why"] or ""):
            yield "unread", why
    event = data["event"]
    if event is not None:
        yield "id", event["id"]
        yield "type", event["type"] or "(nothing)"
        yield "subject", event["subject"] or "(nothing)"
        yield "happened", surface.when(event["occurred_at"])
        for problem in event["problems"]:
            yield "problem", problem
    elif data["handshake"]:
        yield "handshake", "answered, and not stored: it only asks whether somebody is there"


def _apart(difference: float | None) -> str:
    if not difference:
        return ""
    return f", {took(abs(difference))} {'before it came' if difference > 0 else 'after it came'}"


def _fields(header: str) -> list[tuple[bytes, bytes]]:
    """Name and value of one header, or of all lines of a file; the first line of a request is passed over."""
    if header.startswith("@"):
        lines = _bytes("--header", header).splitlines()
        found = [_HEADER.fullmatch(one) for one in lines]
        return [(one[1], one[2]) for one in found if one is not None]
    one = _HEADER.fullmatch(os.fsencode(header))
    if one is None:
        raise click.UsageError(f"--header: `{header[:60]}` is no header; write --header 'Name: value'")
    return [(one[1], one[2])]


def _bytes(option: str, text: str) -> bytes:
    if not text.startswith("@"):
        return os.fsencode(text)
    if text == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{option}: {text[1:]} cannot be read: {error.strerror}") from None


def _repeated(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]
