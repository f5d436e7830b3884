"""The seam around webhook signatures: what a scheme is asked, and what it answers.

Schemes are pure: the request, the live secrets, the tolerance and `now` go in, a verdict comes out, whatever bytes a
stranger sent. No value here shows a secret in its repr.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Protocol

from .preset import Preset


class Refusal(StrEnum):
    """Why a request was refused; programs may rely on the words. The signature is judged before the time:
    TIMESTAMP_TOO_OLD and TIMESTAMP_TOO_NEW mean that one of the secrets did sign it."""

    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_MALFORMED = "signature_malformed"
    SIGNATURE_UNSUPPORTED = "signature_unsupported"
    """Well-formed, but of no version that these secrets can check."""
    SIGNATURE_MISMATCH = "signature_mismatch"
    TIMESTAMP_MISSING = "timestamp_missing"
    TIMESTAMP_MALFORMED = "timestamp_malformed"
    TIMESTAMP_TOO_OLD = "timestamp_too_old"
    TIMESTAMP_TOO_NEW = "timestamp_too_new"
    ID_MISSING = "id_missing"
    ID_MALFORMED = "id_malformed"
    HEADER_REPEATED = "header_repeated"
    """One that must be unambiguous came with several values."""
    BODY_MALFORMED = "body_malformed"
    """The signature lies in the body, or covers what is read from it, and it cannot be read."""
    BODY_UNSIGNED = "body_unsigned"
    """The signature says nothing about the body."""
    BODY_MISMATCH = "body_mismatch"
    """The signed hash is of another body."""
    EVENT_ID_MISSING = "event_id_missing"
    """Signed, but nothing tells this event from another: every one would be a duplicate of the first."""
    EVENT_ID_MALFORMED = "event_id_malformed"
    URL_MISSING = "url_missing"
    """The scheme signs the address as it was registered, and the source does not say it."""
    SECRET_MISSING = "secret_missing"  # noqa: S105  # a word, not a secret
    SECRET_UNUSABLE = "secret_unusable"  # noqa: S105
    """No secret has the form that the scheme needs."""


@dataclass(frozen=True, slots=True)
class Headers:
    """A request's header fields in their order: names in lower case, values without blanks around them. Each character
    is one byte as it came (Latin-1), so that nothing is lost and nothing raises; a text that somebody typed stands for
    its UTF-8. The repr shows none: a provider may send the secret itself."""

    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @staticmethod
    def of(fields: Iterable[tuple[str | bytes, str | bytes]]) -> Headers:
        return Headers(tuple((_text(name).lower(), _text(value).strip(" \t")) for name, value in fields))

    @staticmethod
    def raw(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Of a server that gives names in lower case."""
        return Headers(
            tuple([(name.decode("latin-1"), value.decode("latin-1").strip(" \t")) for name, value in fields])
        )

    def all(self, name: str) -> tuple[str, ...]:
        """The values of every field of this name, in any case."""
        wanted = name.lower()
        return tuple([value for one, value in self.fields if one == wanted])

    def get(self, name: str) -> str | None:
        """The value of the first field of this name."""
        wanted = name.lower()
        for one, value in self.fields:
            if one == wanted:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it came. `body`: the bytes on the wire; `url`: the address as registered with the provider ("" = not
    said); `query`: the raw query string with which it was called."""

    headers: Headers
    body: bytes = field(repr=False)
    url: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class LiveSecret:
    """A secret that may have signed. `name` says which one it is, to people."""

    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Accepted:
    """One of the secrets signed this request, and its time (if the scheme signs one) is within the tolerance. `secret`
    is its place in the list (None: the scheme needs none). `difference`: our clock minus the signed time."""

    secret: int | None
    secret_name: str
    signed_at: datetime | None = None
    difference: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """`why` is a sentence for the operator; it quotes nothing that came with the request but times. `signed_at` is
    what the request claims, whether somebody signed it or not; `difference`: our clock minus that."""

    reason: Refusal
    why: str
    signed_at: datetime | None = None
    difference: timedelta | None = None


Verdict = Accepted | Rejected


@dataclass(frozen=True, slots=True)
class SignedText:
    """Bytes over which a signature may have been made. `what` describes them: `{timestamp}.{body}`."""

    what: str
    text: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that would have made the signature right. `about`: `body secret url option scheme`; `what`: a sentence
    with the remedy."""

    about: str
    what: str


@dataclass(frozen=True, slots=True)
class Covered:
    """What was signed as this side sees it: a description, its length in bytes, and how it begins (escaped ASCII)."""

    what: str
    length: int
    beginning: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`covered` is empty if the request could not be read, or if the scheme signs nothing of it."""

    scheme: str
    verdict: Verdict
    covered: tuple[Covered, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Signed:
    """What makes a request authentic: header fields to add, the body to send (most schemes leave it as it is), and what
    to append to the query."""

    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    query: str = ""


class Scheme(Protocol):
    """One way of signing. Instances are frozen dataclasses; their fields are the options below `signature`."""

    kind: ClassVar[str]
    """The word in jobs.yaml."""
    preset: ClassVar[Preset | None]
    """None: a scheme only, of no particular provider."""

    @property
    def signs_time(self) -> bool: ...

    @property
    def needs_url(self) -> bool:
        """Whether the source must say the address that is registered with the provider."""
        ...

    @property
    def needs_secret(self) -> bool: ...

    def verify(
        self, request: Incoming, secrets: Sequence[LiveSecret], *, tolerance: timedelta, now: datetime
    ) -> Verdict:
        """Never raises. Compares in constant time. A time exactly `tolerance` away is within it, on either side."""
        ...

    def sign(self, body: bytes, secret: LiveSecret, *, now: datetime, url: str = "", delivery: str = "") -> Signed:
        """Signs as the provider does. `delivery`: its id, for schemes that sign one ("" = made from the body).
        InvalidInput for a secret or address that cannot be used."""
        ...


class Explaining(Scheme, Protocol):
    """A scheme that computes codes, so that it can be told which other bytes or keys would have given the one sent."""

    def texts(self, request: Incoming) -> tuple[SignedText, ...]:
        """What was signed, as far as the request can be read; empty if it cannot."""
        ...

    def signed_by(self, request: Incoming, keys: Sequence[bytes]) -> int | None:
        """Which of these raw keys signed the request; the time is not looked at."""
        ...

    def raw_key(self, secret: LiveSecret) -> bytes | None:
        """The secret as the scheme uses it; None if it has not the form that the scheme needs, or is no such key."""
        ...

    def neighbours(self) -> Iterable[tuple[str, Scheme]]:
        """This scheme with one of its options written differently, each with that option in words."""
        ...


def _text(value: str | bytes) -> str:
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return raw.decode("latin-1")
