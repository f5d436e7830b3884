"""`twilio`: X-Twilio-Signature, base64 HMAC-SHA1 with the auth token, over the address that was called. Behind the
address stand the form's fields, sorted, each name and value; other bodies are hashed into the query (`bodySHA256`).
Twilio signs the address with or without its port: both are tried. A body that neither covers is refused.

Source: https://www.twilio.com/docs/usage/webhooks/webhooks-security
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar
from urllib.parse import parse_qs, parse_qsl, urlsplit

from scheduler.core.errors import InvalidInput
from scheduler.core.preset import Answer, EventFields, Example, Preset
from scheduler.core.signature import Incoming, LiveSecret, Refusal, Signed, SignedText
from scheduler.signatures.common.mac import SIZES, Claim, MacScheme
from scheduler.signatures.common.reading import Unreadable, codes, encoded, values
from scheduler.signatures.common.verdict import same

_HEADER, _HASH, _FORM = "X-Twilio-Signature", "bodySHA256", "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000
_MESSAGE = "(MessageSid || SmsSid)"
_SENT = "(MessageStatus || SmsStatus || 'received')"
# What somebody said or keyed in is a question to the callee, not an event: one call may have many of them that look
# alike. Without an id they are refused.
_STATE = "(CallStatus && !Digits && !SpeechResult && CallStatus)"


def _by_kind(message: str, transcription: str, recording: str, call: str) -> str:
    """The first that the form is of. A transcription names its recording and its call as well, a recording its call."""
    return (
        f"{_MESSAGE} && {message} || TranscriptionSid && {transcription} || "
        f"RecordingSid && RecordingStatus && {recording} || CallSid && {_STATE} && {call}"
    )


@dataclass(frozen=True, slots=True)
class Twilio(MacScheme):
    kind: ClassVar[str] = "twilio"
    preset: ClassVar[Preset | None] = Preset(
        title="Twilio",
        event=EventFields(
            # Each has one sid through all of its states.
            id=_by_kind(
                f"join(':', [{_MESSAGE}, {_SENT}])",
                "join(':', [TranscriptionSid, TranscriptionStatus || 'received'])",
                "join(':', [RecordingSid, RecordingStatus])",
                f"join(':', [CallSid, {_STATE}])",
            ),
            type=_by_kind(
                f"join('.', ['message', {_SENT}])",
                "join('.', ['transcription', TranscriptionStatus || 'received'])",
                "join('.', ['recording', RecordingStatus])",
                f"join('.', ['call', {_STATE}])",
            ),
            subject=f"{_MESSAGE} || CallSid",
        ),
        answer=Answer(200, "<Response/>", "text/xml"),
        retries_for=timedelta(hours=4),
        documentation="https://www.twilio.com/docs/usage/webhooks",
        example=Example("MessageSid=SM$id&MessageStatus=delivered&From=%2B15550100&To=%2B15550101"),
    )

    @property
    def needs_url(self) -> bool:
        return True

    @property
    def algorithm_name(self) -> str:
        return "sha1"

    def _claim(self, request: Incoming) -> Claim:
        items = [one for one in values(request.headers, _HEADER) if one]
        return Claim(codes(items, "base64", SIZES["sha1"], f"the header {_HEADER}"))

    def _texts(self, request: Incoming, claim: Claim) -> tuple[SignedText, ...]:
        if not request.url:
            raise Unreadable(Refusal.URL_MISSING, "the provider signs the address, and the source does not say its url")
        hashes = parse_qs(request.query or _query(request.url), encoding="latin-1").get(_HASH, [])
        if hashes:
            actual = hashlib.sha256(request.body).hexdigest().encode("ascii")
            if not same(actual, hashes[0].lower().encode("utf-8", "replace")):
                raise Unreadable(Refusal.BODY_MISMATCH, f"the query's {_HASH} is of another body")
            fields = b""
        elif request.body and _FORM not in (request.headers.get("content-type") or "").lower():
            raise Unreadable(
                Refusal.BODY_UNSIGNED, f"the body is no form and the query has no {_HASH}: nothing signs it"
            )
        else:
            fields = _fields(request.body)
        what = "{url}" if hashes else "{url}{sorted fields of the form}"
        return tuple(
            SignedText(what, url.encode("utf-8", "replace") + fields) for url in _addresses(request.url, request.query)
        )

    def sign(self, body: bytes, secret: LiveSecret, *, now: datetime, url: str = "", delivery: str = "") -> Signed:
        key = self._signing_key(secret)
        if not url:
            raise InvalidInput("the provider signs the address, and the source does not say its url", hint="write url:")
        form = not body.lstrip().startswith((b"{", b"["))
        query = "" if form else f"{_HASH}={hashlib.sha256(body).hexdigest()}"
        called = f"{url}{'&' if '?' in url else '?'}{query}" if query else url
        try:
            text = called.encode("utf-8", "replace") + (_fields(body) if form else b"")
        except Unreadable as error:
            raise InvalidInput(error.rejected.why, hint="send JSON, or a form as Twilio does") from None
        headers = {
            _HEADER: encoded(self._code(key, text), "base64"),
            "Content-Type": _FORM if form else "application/json",
        }
        return Signed(headers, body, query)


def _fields(body: bytes) -> bytes:
    """Sorted by name, then value; the same pair counts once."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MOST_FIELDS,
            errors="surrogateescape",
        )
    except ValueError:
        why = f"the form is not ASCII, or has more than {_MOST_FIELDS} fields"
        raise Unreadable(Refusal.BODY_MALFORMED, why) from None
    return b"".join((name + value).encode("utf-8", "surrogateescape") for name, value in sorted(set(pairs)))


def _addresses(url: str, query: str) -> list[str]:
    called = f"{url.partition('?')[0]}?{query}" if query else url
    try:
        parts = urlsplit(called)
        port = parts.port
    except ValueError:
        return [called]
    host = parts.netloc.removesuffix(f":{port}")
    usual = 443 if parts.scheme == "https" else 80
    without = parts._replace(netloc=host).geturl()
    with_port = parts._replace(netloc=f"{host}:{port or usual}").geturl()
    return list(dict.fromkeys((called, without, with_port)))


def _query(url: str) -> str:
    return url.partition("?")[2].partition("#")[0]
