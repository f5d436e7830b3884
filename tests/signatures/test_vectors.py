"""Published signatures, and requests that well-known receivers judge wrongly: each with the reason of its refusal."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from scheduler.core.signature import Accepted, Headers, Incoming, LiveSecret, Rejected
from scheduler.signatures.diagnosis import diagnose
from scheduler.signatures.registry import build

VECTORS = {one["id"]: one for one in json.loads((Path(__file__).parent / "vectors.json").read_text())["vectors"]}
KINDS = {"standard-webhooks": "standard", "standard-webhooks-ed25519": "standard", "adyen-standard": "adyen"}
TOLERANCE = timedelta(seconds=300)

REASONS = {
    "sw-2": "signature_mismatch",
    "sw-6": "timestamp_too_old",
    "sw-8a": "signature_malformed",
    "sw-8c": "signature_malformed",
    "sw-8e": "signature_malformed",
    "sw-8g": "signature_malformed",
    "sw-9b": "timestamp_malformed",
    "sw-9d": "timestamp_malformed",
    "sw-9f": "timestamp_malformed",
    "sw-9h": "timestamp_malformed",
    "stripe-3": "signature_unsupported",
    "stripe-5": "timestamp_too_old",
    "stripe-8": "signature_mismatch",
    "gh-3": "signature_mismatch",
    "slack-2": "signature_mismatch",
}
"""Why each invalid vector is refused."""

HINTS = {
    "stripe-8": ("secret", "begins or ends with blanks"),
    "gh-3": ("body", "as compact JSON"),
}
"""What the operator is told of those whose mistake can be found out."""


def _request(vector: dict[str, Any]) -> Incoming:
    headers = dict(vector.get("headers", {}))
    body = vector.get("body", "").encode("utf-8")
    if "form" in vector:
        body = urlencode(vector["form"]).encode("ascii")
        headers["content-type"] = "application/x-www-form-urlencoded"
    if "signing_string" in vector:
        body = _notification(vector["signing_string"], vector["signature"])
    url = vector.get("url", "")
    return Incoming(Headers.of(headers.items()), body, url, url.partition("?")[2])


def _notification(text: str, signature: str) -> bytes:
    psp, original, account, reference, value, currency, code, success = text.split(":")
    item = {
        "pspReference": psp,
        "originalReference": original,
        "merchantAccountCode": account,
        "merchantReference": reference,
        "amount": {"value": int(value), "currency": currency},
        "eventCode": code,
        "success": success,
        "additionalData": {"hmacSignature": signature},
    }
    return json.dumps({"live": "false", "notificationItems": [{"NotificationRequestItem": item}]}).encode()


def _given(vector: dict[str, Any]) -> dict[str, Any]:
    now = datetime.fromtimestamp(vector.get("now", 0), UTC)
    secret = LiveSecret("env SECRET", vector.get("secret") or vector["public_key"])
    return {"secrets": [secret], "tolerance": TOLERANCE, "now": now}


def test_there_is_a_reason_for_every_vector_that_is_refused() -> None:
    assert set(REASONS) == {name for name, one in VECTORS.items() if not one["valid"]}
    assert len(VECTORS) == 26


@pytest.mark.parametrize("name", VECTORS)
def test_vector(name: str) -> None:
    vector = VECTORS[name]
    scheme = build(KINDS.get(vector["scheme"], vector["scheme"]), {})
    verdict = scheme.verify(_request(vector), **_given(vector))
    if vector["valid"]:
        assert isinstance(verdict, Accepted), verdict
        assert (verdict.secret, verdict.secret_name) == (0, "env SECRET")
    else:
        assert isinstance(verdict, Rejected)
        assert verdict.reason == REASONS[name]
    found = diagnose(scheme, _request(vector), **_given(vector)).findings
    if name in HINTS:
        about, words = HINTS[name]
        assert any(one.about == about and words in one.what for one in found), found
    elif name != "sw-2":
        assert not [one for one in found if one.about != "scheme"], found


@pytest.mark.parametrize("name", [name for name, one in VECTORS.items() if one["valid"] and one.get("now")])
@pytest.mark.parametrize(("seconds", "reason"), [(301, "timestamp_too_old"), (-301, "timestamp_too_new")])
def test_vector_out_of_time(name: str, seconds: int, reason: str) -> None:
    vector = VECTORS[name]
    scheme = build(KINDS.get(vector["scheme"], vector["scheme"]), {})
    given = _given(vector)
    given["now"] += timedelta(seconds=seconds)
    verdict = scheme.verify(_request(vector), **given)
    assert isinstance(verdict, Rejected)
    assert verdict.reason == reason
    assert verdict.difference == timedelta(seconds=seconds)


@pytest.mark.parametrize("name", [name for name, one in VECTORS.items() if one["valid"] and "body" in one])
def test_vector_with_another_byte(name: str) -> None:
    vector = VECTORS[name]
    scheme = build(KINDS.get(vector["scheme"], vector["scheme"]), {})
    request = _request(vector)
    changed = replace(request, body=request.body + b" ")
    verdict = scheme.verify(changed, **_given(vector))
    assert isinstance(verdict, Rejected)
    assert verdict.reason == "signature_mismatch"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            b'{"id":"evt_1","amount":1.10,"name":"Jos\\u00e9","esc":"\\u001B[0m","big":12345678901234567890,"z":1,"a":2}',
            "d4017c2b81c14dce8199d0fd327c84b53b337a7650d82f1c5f0cda8adb1ee5f4",
        ),
        ('{"text":"deploy 🚀 done"}'.encode(), "c9a4ec107b26698bf60001340ef366f47323177782084dba7d4ddb1f8ab30e3e"),
    ],
    ids=["numbers and escapes", "emoji"],
)
def test_the_bytes_as_they_came_are_signed(body: bytes, code: str) -> None:
    request = Incoming(Headers.of([("X-Signature", f"sha256={code}")]), body)
    scheme = build("hmac", {"header": "x-signature", "prefix": "sha256="})
    found = scheme.verify(request, [LiveSecret("s", "whsec_test")], tolerance=TOLERANCE, now=datetime.now(UTC))
    assert isinstance(found, Accepted)


@pytest.mark.parametrize(("live", "which"), [(["whsec_test"], 0), (["whsec_old"], 0), (["neither", "whsec_old"], 1)])
def test_two_signatures_while_a_secret_is_replaced(live: list[str], which: int) -> None:
    header = (
        "t=1772438400,v1=d0e5e4792b32fd118caca06a5bfcfbe8477584570c6eda4a200b73feebc41bb9,"
        "v1=8f45db36b635e9658308577c3c324373c1ea7e63f2efe99175e45b1b1cec861d"
    )
    request = Incoming(Headers.of([("Stripe-Signature", header)]), '{"text":"deploy 🚀 done"}'.encode())
    now = datetime.fromtimestamp(1772438400, UTC)
    secrets = [LiveSecret(f"s{index}", one) for index, one in enumerate(live)]
    found = build("stripe", {}).verify(request, secrets, tolerance=TOLERANCE, now=now)
    assert isinstance(found, Accepted)
    assert found.secret == which
    assert isinstance(build("stripe", {}).verify(request, secrets[:-1], tolerance=TOLERANCE, now=now), Rejected)
