"""What is particular to one scheme."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from scheduler.core.document import document_of
from scheduler.core.errors import InvalidInput
from scheduler.core.event_fields import EventFacts, FieldReader
from scheduler.core.signature import Accepted, Headers, Incoming, LiveSecret, Refusal, Rejected
from scheduler.signatures.common.reading import MOST
from scheduler.signatures.registry import build, presets
from tests.signatures.requests import NOW, incoming, refused, verify
from tests.signatures.samples import FORM, SAMPLES, public

BODY = b'{"id": 1}'


def _reason(found: object) -> str:
    return refused(found).reason


def _with(request: Incoming, **headers: str) -> Incoming:
    fields = {**dict(request.headers.fields), **{name.replace("_", "-"): value for name, value in headers.items()}}
    return replace(request, headers=Headers.of(fields.items()))


# Standard Webhooks


def _standard(**headers: str) -> tuple[Incoming, str]:
    sample = SAMPLES["standard"]
    made = sample.scheme.sign(BODY, LiveSecret("s", sample.secret), now=NOW, delivery="msg_1")
    return _with(incoming(made), **headers), sample.secret


def test_standard_headers_of_svix() -> None:
    request, secret = _standard()
    fields = [(name.replace("webhook-", "svix-"), value) for name, value in request.headers.fields]
    assert isinstance(verify(build("standard", {}), replace(request, headers=Headers.of(fields)), secret), Accepted)


def test_standard_families_are_not_mixed() -> None:
    request, secret = _standard()
    fields = [
        (name.replace("webhook-", "svix-") if name == "webhook-id" else name, value)
        for name, value in request.headers.fields
    ]
    assert _reason(verify(build("standard", {}), replace(request, headers=Headers.of(fields)), secret)) == "id_missing"


def test_standard_id_with_a_dot_cannot_shift_the_time_into_the_body() -> None:
    """`msg.1` at time T over B is signed like `msg` at time 1 over `T.B`."""
    key = b"k" * 24
    secret = f"whsec_{base64.b64encode(key).decode()}"
    stamp = str(int(NOW.timestamp()))
    code = base64.b64encode(hmac.digest(key, f"msg.1.{stamp}.body".encode(), "sha256")).decode()
    fields = {"webhook-id": "msg.1", "webhook-timestamp": stamp, "webhook-signature": f"v1,{code}"}
    request = Incoming(Headers.of(fields.items()), b"body")
    assert _reason(verify(build("standard", {}), request, secret)) == "id_malformed"
    with pytest.raises(InvalidInput):
        build("standard", {}).sign(BODY, LiveSecret("s", secret), now=NOW, delivery="msg.1")


@pytest.mark.parametrize("signed", ["webhook", "svix"])
def test_standard_id_that_nobody_signed_does_not_count(signed: str) -> None:
    """One request that somebody has seen could be sent again as a thousand events."""
    request, secret = _standard()
    other = "svix" if signed == "webhook" else "webhook"
    fields = [(name.replace("webhook", signed), value) for name, value in request.headers.fields]
    made = dict(fields)[f"{signed}-id"]
    both = replace(request, headers=Headers.of([*fields, (f"{other}-id", made)]))
    assert isinstance(verify(build("standard", {}), both, secret), Accepted)
    differ = replace(request, headers=Headers.of([*fields, (f"{other}-id", "evil-1")]))
    assert _reason(verify(build("standard", {}), differ, secret)) == "id_malformed"


def test_standard_secret_decides_which_signature_counts() -> None:
    scheme, (request, secret) = build("standard", {}), _standard()
    other = SAMPLES["standard with Ed25519"]
    asymmetric = incoming(other.scheme.sign(BODY, LiveSecret("s", other.secret), now=NOW, delivery="msg_1"))
    key = public(other.secret)
    assert _reason(verify(scheme, request, key)) == "signature_unsupported"
    assert _reason(verify(scheme, asymmetric, secret)) == "signature_unsupported"
    wrong = f"{request.headers.get('webhook-signature')} v1a,{base64.b64encode(bytes(64)).decode()}"
    assert _reason(verify(scheme, _with(request, webhook_signature=wrong), key)) == "signature_mismatch"
    both = f"{request.headers.get('webhook-signature')} {asymmetric.headers.get('webhook-signature')}"
    for live in (secret, key):
        assert isinstance(verify(scheme, _with(request, webhook_signature=both), live), Accepted)


@pytest.mark.parametrize("value", ["v2,AAAA", "v2,AAAA v9,BBBB"])
def test_standard_versions_that_nobody_knows(value: str) -> None:
    request, secret = _standard(webhook_signature=value)
    assert _reason(verify(build("standard", {}), request, secret)) == "signature_unsupported"


@pytest.mark.parametrize("secret", ["whsec_", "whsec_!!", "whpk_", "whpk_AAAA", "whsk_AAAA", "whpk_" + "A" * 86 + "=="])
def test_standard_secrets_of_the_wrong_form(secret: str) -> None:
    assert _reason(verify(build("standard", {}), _standard()[0], secret)) == "secret_unusable"


def test_standard_secret_may_lack_prefix_and_padding() -> None:
    key = b"k" * 25
    text = base64.b64encode(key).decode()
    request = incoming(build("standard", {}).sign(BODY, LiveSecret("s", f"whsec_{text}"), now=NOW))
    for secret in (text, text.rstrip("=")):
        assert isinstance(verify(build("standard", {}), request, secret), Accepted)


@pytest.mark.parametrize(("more", "right"), [(MOST - 1, True), (MOST, False)])
def test_number_of_signatures_is_bounded(more: int, right: bool) -> None:
    for kind, name, item, between in (
        ("standard", "webhook-signature", "v1," + base64.b64encode(bytes(32)).decode(), " "),
        ("stripe", "stripe-signature", "v1=" + "00" * 32, ","),
    ):
        sample = SAMPLES[kind]
        request = incoming(sample.scheme.sign(BODY, LiveSecret("s", sample.secret), now=NOW))
        value = between.join([*[item] * more, request.headers.get(name) or ""])
        headers = [(one, value if one == name else old) for one, old in request.headers.fields]
        found = verify(sample.scheme, replace(request, headers=Headers.of(headers)), sample.secret)
        assert isinstance(found, Accepted) if right else _reason(found) == "signature_malformed"


def test_public_key_is_enough_to_verify() -> None:
    sample = SAMPLES["standard with Ed25519"]
    found = verify(
        sample.scheme,
        incoming(sample.scheme.sign(sample.body, LiveSecret("s", sample.secret), now=NOW)),
        public(sample.secret),
    )
    assert isinstance(found, Accepted)
    with pytest.raises(InvalidInput, match="cannot sign"):
        sample.scheme.sign(b"", LiveSecret("s", public(sample.secret)), now=NOW)


# Stripe


def test_stripe_secret_is_used_as_it_is_written() -> None:
    secret = "whsec_" + base64.b64encode(b"x" * 24).decode()
    stamp = int(NOW.timestamp())
    code = hmac.digest(secret.encode(), f"{stamp}.".encode() + BODY, "sha256").hex()
    request = Incoming(Headers.of([("Stripe-Signature", f"t={stamp}, v1={code}, v0=00")]), BODY)
    assert isinstance(verify(build("stripe", {}), request, secret), Accepted)


def test_stripe_with_two_times() -> None:
    sample = SAMPLES["stripe"]
    request = incoming(sample.scheme.sign(BODY, LiveSecret("s", sample.secret), now=NOW))
    value = f"{request.headers.get('stripe-signature')},t=1"
    assert _reason(verify(sample.scheme, _with(request, stripe_signature=value), sample.secret)) == "header_repeated"


@pytest.mark.parametrize(
    ("value", "reason"),
    [("nonsense", "signature_malformed"), ("t=1", "signature_unsupported"), ("t=1,v1=zz", "signature_malformed")],
)
def test_stripe_header_that_is_no_signature(value: str, reason: str) -> None:
    request = Incoming(Headers.of([("Stripe-Signature", value)]), BODY)
    assert _reason(verify(build("stripe", {}), request, "whsec_x")) == reason


def test_stripe_without_a_time() -> None:
    sample = SAMPLES["stripe"]
    request = Incoming(Headers.of([("Stripe-Signature", "v1=" + "00" * 32)]), BODY)
    assert _reason(verify(sample.scheme, request, sample.secret)) == "timestamp_missing"


# GitHub


def test_github_older_signature_does_not_count() -> None:
    sample = SAMPLES["github"]
    code = hmac.digest(sample.secret.encode(), BODY, "sha1").hex()
    alone = Incoming(Headers.of([("X-Hub-Signature", f"sha1={code}")]), BODY)
    assert _reason(verify(sample.scheme, alone, sample.secret)) == "signature_missing"
    swapped = Incoming(Headers.of([("X-Hub-Signature-256", f"sha1={code}")]), BODY)
    assert _reason(verify(sample.scheme, swapped, sample.secret)) == "signature_unsupported"


# Twilio


def _twilio(url: str, fields: str, *, called: str = "", body: bytes = b"", content_type: str = FORM) -> Incoming:
    """`fields`: what stands behind the address in the signed text."""
    code = base64.b64encode(hmac.digest(b"token", (called or url).encode() + fields.encode(), "sha1")).decode()
    headers = Headers.of([("X-Twilio-Signature", code), ("Content-Type", content_type)])
    return Incoming(headers, body, url, (called or url).partition("?")[2])


@pytest.mark.parametrize(
    ("registered", "signed"),
    [
        ("https://a.example/x", "https://a.example:443/x"),
        ("https://a.example:443/x", "https://a.example/x"),
        ("http://a.example/x?b=1", "http://a.example:80/x?b=1"),
        ("https://a.example:8443/x", "https://a.example/x"),
        ("https://u:p@a.example:8443/x", "https://u:p@a.example/x"),
        ("https://[::1]:8443/x", "https://[::1]/x"),
        ("https://[::1]/x", "https://[::1]:443/x"),
    ],
)
def test_twilio_port_may_be_left_out_or_added(registered: str, signed: str) -> None:
    request = replace(_twilio(signed, ""), url=registered)
    assert isinstance(verify(build("twilio", {}), request, "token"), Accepted)


def test_twilio_query_is_the_one_that_was_called() -> None:
    request = _twilio("https://a.example/x", "", called="https://a.example/x?run=7")
    assert isinstance(verify(build("twilio", {}), request, "token"), Accepted)
    assert _reason(verify(build("twilio", {}), replace(request, query="run=8"), "token")) == "signature_mismatch"


def test_twilio_fields_are_sorted_and_each_counts_once() -> None:
    body = urlencode([("b", "2"), ("a", "x"), ("b", "1"), ("b", "2"), ("empty", ""), ("é", "ü +")]).encode()
    request = _twilio("https://a.example/x", "axb1b2emptyéü +", body=body)
    assert isinstance(verify(build("twilio", {}), request, "token"), Accepted)
    assert _reason(verify(build("twilio", {}), replace(request, body=body + b"&c"), "token")) == "signature_mismatch"


def _twilio_facts(form: str) -> EventFacts | Rejected:
    preset = presets()["twilio"]
    return FieldReader(preset.event).read(document_of(form.encode(), FORM), Headers())


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("MessageSid=SM1&Body=hi", ("SM1:received", "message.received", "SM1")),
        ("SmsSid=SM1&SmsStatus=sent", ("SM1:sent", "message.sent", "SM1")),
        ("CallSid=CA1&CallStatus=completed", ("CA1:completed", "call.completed", "CA1")),
        ("CallSid=CA1&RecordingSid=RE1&RecordingStatus=completed", ("RE1:completed", "recording.completed", "CA1")),
        (
            "CallSid=CA1&CallStatus=completed&RecordingSid=RE1&TranscriptionSid=TR1&TranscriptionStatus=failed",
            ("TR1:failed", "transcription.failed", "CA1"),
        ),
    ],
)
def test_twilio_events_have_ids_of_their_own(form: str, told: tuple[str, str, str]) -> None:
    found = _twilio_facts(form)
    assert isinstance(found, EventFacts)
    assert (found.id, found.type, found.subject) == told


@pytest.mark.parametrize("form", ["CallSid=CA1", "CallSid=CA1&CallStatus=in-progress&Digits=1", "From=%2B1"])
def test_twilio_forms_that_cannot_be_told_apart_are_refused(form: str) -> None:
    """They would pass for one event that came again and again."""
    assert not isinstance(_twilio_facts(form), EventFacts)


def test_twilio_form_that_cannot_be_signed() -> None:
    with pytest.raises(InvalidInput, match="not ASCII"):
        build("twilio", {}).sign("é=1".encode(), LiveSecret("it", "a-token"), now=NOW, url="https://example.com/")


@pytest.mark.parametrize("content_type", ["application/json", "", "text/plain"])
def test_twilio_body_that_nothing_signs(content_type: str) -> None:
    """Whoever has seen one request without fields could put any body behind its signature."""
    request = _twilio("https://a.example/x", "", body=b'{"a": 1}', content_type=content_type)
    assert _reason(verify(build("twilio", {}), request, "token")) == "body_unsigned"
    assert _reason(verify(build("twilio", {}), _with(request, content_type=FORM), "token")) == "signature_mismatch"


def test_twilio_hash_of_the_body() -> None:
    body = b'{"a": 1}'
    called = f"https://a.example/x?bodySHA256={hashlib.sha256(body).hexdigest()}"
    request = _twilio("https://a.example/x", "", called=called, body=body, content_type="application/json")
    assert isinstance(verify(build("twilio", {}), request, "token"), Accepted)
    assert _reason(verify(build("twilio", {}), replace(request, body=b"{}"), "token")) == "body_mismatch"


@pytest.mark.parametrize("body", [b"&".join(b"a%d=1" % index for index in range(1001)), b"a=\xe9"])
def test_twilio_form_that_is_not_read(body: bytes) -> None:
    request = _twilio("https://a.example/x", "", body=body)
    assert _reason(verify(build("twilio", {}), request, "token")) == "body_malformed"


# Adyen


def _adyen(changes: Mapping[str, object], count: int = 1) -> Incoming:
    sample = SAMPLES["adyen"]
    whole = json.loads(sample.scheme.sign(sample.body, LiveSecret("s", sample.secret), now=NOW).body)
    whole["notificationItems"][0]["NotificationRequestItem"].update(changes)
    whole["notificationItems"] *= count
    return Incoming(Headers(), json.dumps(whole).encode())


def test_adyen_truth_may_be_a_word() -> None:
    found = verify(SAMPLES["adyen"].scheme, _adyen({"success": True}), SAMPLES["adyen"].secret)
    assert isinstance(found, Accepted)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"success": "false"}, "signature_mismatch"),
        ({"amount": {"value": 1}}, "signature_mismatch"),
        ({"pspReference": ["8835"]}, "body_malformed"),
        ({"pspReference": 1.5}, "body_malformed"),
        ({"additionalData": {}}, "signature_missing"),
        ({"additionalData": {"hmacSignature": 7}}, "signature_malformed"),
        ({"additionalData": {"hmacSignature": "zz"}}, "signature_malformed"),
    ],
)
def test_adyen_fields(changes: Mapping[str, object], reason: str) -> None:
    assert _reason(verify(SAMPLES["adyen"].scheme, _adyen(changes), SAMPLES["adyen"].secret)) == reason


def test_adyen_second_notification_is_not_let_in_by_the_first() -> None:
    assert _reason(verify(SAMPLES["adyen"].scheme, _adyen({}, count=2), SAMPLES["adyen"].secret)) == "body_malformed"


# none, gitlab


@pytest.mark.parametrize("trust", ["", "yes", "Network"])
def test_nothing_is_checked_only_where_that_is_spelled_out(trust: str) -> None:
    with pytest.raises(InvalidInput, match="anybody"):
        build("none", {"trust": trust})


def test_gitlab_token_may_have_other_letters_than_ascii() -> None:
    request = Incoming(Headers.of([(b"X-Gitlab-Token", "pässwörd".encode())]), BODY)
    assert isinstance(verify(build("gitlab", {}), request, "pässwörd"), Accepted)
    with pytest.raises(InvalidInput, match="cannot be sent"):
        build("gitlab", {}).sign(BODY, LiveSecret("s", "a\nb"), now=NOW)


def test_time_in_milliseconds_where_seconds_are_meant() -> None:
    sample = SAMPLES["slack"]
    request = incoming(sample.scheme.sign(BODY, LiveSecret("s", sample.secret), now=NOW))
    stamp = f"{int(NOW.timestamp() * 1000)}"
    found = verify(sample.scheme, _with(request, x_slack_request_timestamp=stamp), sample.secret)
    assert isinstance(found, Rejected)
    assert found.reason == Refusal.TIMESTAMP_MALFORMED
    assert "milliseconds" in found.why


def test_how_far_out_of_time_is_said_so_that_it_reads_as_out_of_it() -> None:
    sample = SAMPLES["stripe"]
    request = incoming(sample.scheme.sign(BODY, LiveSecret("s", sample.secret), now=NOW))
    found = verify(sample.scheme, request, sample.secret, now=NOW + timedelta(minutes=5, milliseconds=1))
    assert isinstance(found, Rejected)
    assert "5m1s ago" in found.why
    assert "tolerance is 5m" in found.why
