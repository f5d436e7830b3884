"""Building what schemes are asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from scheduler.core.signature import Headers, Incoming, LiveSecret, Refusal, Rejected, Scheme, Signed, Verdict
from scheduler.signatures.registry import build

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
TOLERANCE = timedelta(minutes=5)
URL = "https://hooks.example.com/webhooks/source?a=1"


@dataclass(frozen=True)
class Sample:
    """How one scheme is tried out. `other`: a secret of the right form that did not sign."""

    kind: str
    secret: str
    other: str
    body: bytes = b'{"id": "evt_1", "type": "payment.failed"}'
    altered: bytes = b'{"id": "evt_1", "type": "payment.passed"}'
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    content_type: str = "application/json"
    signs_body: bool = True

    @property
    def scheme(self) -> Scheme:
        return build(self.kind, self.options)


def incoming(
    signed: Signed, *, body: bytes | None = None, url: str = URL, extra: Iterable[tuple[str, str]] = ()
) -> Incoming:
    """The request that the signed one becomes on the wire."""
    headers = Headers.of([*((name, value) for name, value in signed.headers.items()), *extra])
    query = url.partition("?")[2]
    asked = "&".join(one for one in (query, signed.query) if one)
    return Incoming(headers, signed.body if body is None else body, url, asked)


def secrets(*values: str) -> list[LiveSecret]:
    return [LiveSecret(f"env KEY_{index}", one) for index, one in enumerate(values)]


def verify(scheme: Scheme, request: Incoming, *values: str, now: datetime = NOW) -> Verdict:
    return scheme.verify(request, secrets(*values), tolerance=TOLERANCE, now=now)


def refused(found: object, *reasons: Refusal) -> Rejected:
    assert isinstance(found, Rejected), found
    assert found.reason in (reasons or tuple(Refusal)), found
    assert found.why
    return found
