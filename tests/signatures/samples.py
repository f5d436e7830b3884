"""At least one way to try out each scheme that is found."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scheduler.core.signature import LiveSecret, Signed
from tests.signatures.requests import NOW, URL, Sample

FORM = "application/x-www-form-urlencoded"


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _notification(success: str) -> bytes:
    item = {"pspReference": "8835", "eventCode": "AUTHORISATION", "success": success, "merchantAccountCode": "Shop"}
    return json.dumps({"notificationItems": [{"NotificationRequestItem": item}]}).encode()


def _private(seed: int) -> str:
    return f"whsk_{_base64(bytes([seed]) * 32)}"


def public(private: str) -> str:
    raw = Ed25519PrivateKey.from_private_bytes(base64.b64decode(private.removeprefix("whsk_"))).public_key()
    return f"whpk_{_base64(raw.public_bytes_raw())}"


def _sample(kind: str, **options: str) -> Sample:
    return Sample(kind, "a-secret-nobody-knows", "another-secret-entirely", options=options)


SAMPLES = {
    "adyen": Sample("adyen", "44782def" * 8, "55782def" * 8, _notification("true"), _notification("false")),
    "github": _sample("github"),
    "gitlab": Sample("gitlab", "a-token-nobody-knows", "another-token-entirely", signs_body=False),
    "hmac": _sample("hmac", header="X-Signature", prefix="sha256="),
    "hmac of an id and milliseconds": _sample(
        "hmac",
        header="X-Signature",
        encoding="base64",
        algorithm="sha512",
        timestamp="header:X-Time",
        timestamp_unit="ms",
        id="header:X-Id",
        template="{id}.{timestamp}.{body}",
    ),
    "hmac of a list": _sample(
        "hmac",
        header="Paddle-Signature",
        prefix="h1=",
        separator=";",
        timestamp="item:ts=",
        template="{timestamp}:{body}",
    ),
    "hmac with a key in hex": Sample("hmac", "aa" * 32, "bb" * 32, options={"header": "X-Mac", "key": "hex"}),
    "none": Sample("none", "unused-by-this", "nor-is-this-one", options={"trust": "network"}, signs_body=False),
    "shopify": _sample("shopify"),
    "slack": _sample("slack"),
    "square": _sample("square"),
    "standard": Sample("standard", f"whsec_{_base64(b'k' * 24)}", f"whsec_{_base64(b'o' * 24)}"),
    "standard with Ed25519": Sample("standard", _private(7), _private(8)),
    "stripe": _sample("stripe"),
    "twilio": Sample(
        "twilio",
        "a-token-nobody-knows",
        "another-token-entirely",
        urlencode({"MessageSid": "SM1", "MessageStatus": "sent", "Body": "é +&="}).encode(),
        urlencode({"MessageSid": "SM1", "MessageStatus": "read", "Body": "é +&="}).encode(),
    ),
    "twilio with JSON": _sample("twilio"),
}


def of(wanted: Callable[[Sample], bool] = lambda sample: True) -> Any:
    """A fixture of the samples that something is promised of."""

    def chosen(request: pytest.FixtureRequest) -> Sample:
        return SAMPLES[request.param]

    return pytest.fixture(params=sorted(name for name, one in SAMPLES.items() if wanted(one)))(chosen)


def signed(sample: Sample) -> Signed:
    return sample.scheme.sign(sample.body, LiveSecret("the signer", sample.secret), now=NOW, url=URL)
