"""`hmac`: what its options mean, and which cannot be."""

from __future__ import annotations

import base64
import hmac

import pytest

from scheduler.core.errors import InvalidInput
from scheduler.core.signature import Accepted, Headers, Incoming
from scheduler.signatures.registry import build
from tests.signatures.requests import URL, refused, verify

BODY = b'{"id": 1}'


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"header": "X Signature"}, "name of a header"),
        ({"header": ""}, "name of a header"),
        ({"encoding": "base32"}, "encoding"),
        ({"algorithm": "md5"}, "algorithm"),
        ({"key": "rot13"}, "key"),
        ({"timestamp_unit": "m"}, "timestamp_unit"),
        ({"template": "{timestamp}", "timestamp": "header:X-Time"}, "lacks {body}"),
        ({"template": "{body}{nonce}"}, "{nonce}"),
        ({"template": "{timestamp}{body}"}, "timestamp is not written"),
        ({"timestamp": "header:X-Time"}, "not signed"),
        ({"id": "header:X-Id"}, "not signed"),
        ({"template": "{id}{body}", "id": "item:x"}, "not understood"),
        ({"template": "{timestamp}{body}", "timestamp": "X-Time"}, "not understood"),
        ({"template": "{timestamp}{body}", "timestamp": "header:"}, "not understood"),
        ({"template": "{timestamp}{body}", "timestamp": "item:t="}, "separator"),
    ],
)
def test_hmac_options_that_cannot_be(changes: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        build("hmac", {"header": "X-Signature", **changes})
    assert words in caught.value.reason
    assert caught.value.hint


def test_hmac_template_may_hold_other_words_and_the_address() -> None:
    scheme = build("hmac", {"header": "X-S", "template": "POST {url}\né{body}", "key": "base64"})
    secret = base64.b64encode(b"raw key").decode()
    code = hmac.digest(b"raw key", f"POST {URL}\né".encode() + BODY, "sha256").hex()
    request = Incoming(Headers.of([("X-S", code.upper())]), BODY, URL)
    assert isinstance(verify(scheme, request, secret), Accepted)
    assert refused(verify(scheme, request, "not base64!")).reason == "secret_unusable"


def test_hmac_id_that_holds_what_ends_it() -> None:
    options = {"header": "X-S", "id": "header:X-Id", "template": "{id}:{body}"}
    code = hmac.digest(b"secret", b"a:b:" + BODY, "sha256").hex()
    for name, body in (("a:b", BODY), ("a", b"b:" + BODY), ("a.b", b"")):
        request = Incoming(Headers.of([("X-S", code), ("X-Id", name)]), body)
        found = verify(build("hmac", options), request, "secret")
        if name == "a":
            assert isinstance(found, Accepted)
        else:
            assert refused(found).reason == ("id_malformed" if ":" in name else "signature_mismatch")
