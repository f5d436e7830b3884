"""What an operator is told about a request that was refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler.core.signature import Finding, Headers, Incoming, LiveSecret, Scheme
from scheduler.signatures.diagnosis import diagnose
from scheduler.signatures.registry import build
from tests.signatures.requests import NOW, TOLERANCE, URL, incoming, secrets
from tests.signatures.samples import SAMPLES

DOCUMENT = {"z": 1, "a": {"text": "José \x1b♥", "list": [1, 2.5, None]}}


def _findings(scheme: Scheme, request: Incoming, *live: str) -> list[Finding]:
    return list(diagnose(scheme, request, secrets(*live), tolerance=TOLERANCE, now=NOW).findings)


def _signed(kind: str, body: bytes, secret: str = "secret-of-this", url: str = URL) -> Incoming:
    return incoming(build(kind, {}).sign(body, LiveSecret("s", secret), now=NOW, url=url), url=url)


COMPACT = json.dumps(DOCUMENT, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("sent", "arrived", "words"),
    [
        (COMPACT, lambda one: json.dumps(json.loads(one)).encode(), "it as compact JSON. "),
        (json.dumps(DOCUMENT).encode(), lambda one: COMPACT, "as spaced JSON, other letters than ASCII escaped. "),
        (COMPACT.replace(b"\\u001b", b"\\u001B"), lambda one: COMPACT, "as compact JSON, escapes in capitals"),
        (
            json.dumps(DOCUMENT).replace("\\u001b", "\\u001B").replace("\\u00e9", "\\u00E9").encode(),
            lambda one: COMPACT,
            "escaped, escapes in capitals",
        ),
        (json.dumps(DOCUMENT, sort_keys=True).encode(), lambda one: COMPACT, "as spaced, sorted JSON"),
        (json.dumps(DOCUMENT, indent=2).encode(), lambda one: COMPACT, "as indented (2) JSON"),
        (COMPACT + b"\n", lambda one: one[:-1], "with a newline at its end"),
        (COMPACT + b"\r\n", lambda one: one[:-2], "with CR LF at its end"),
        (COMPACT, lambda one: one + b"\n", "without the newline at its end"),
        (COMPACT, lambda one: one + b"\r\n", "without the newline at its end"),
        (b"a\r\nb\r\nc", lambda one: one.replace(b"\r\n", b"\n"), "with CR LF as line ends"),
        (b"a\nb\nc", lambda one: one.replace(b"\n", b"\r\n"), "with LF as line ends"),
        (COMPACT, lambda one: b"\xef\xbb\xbf" + one, "without the byte order mark"),
    ],
)
@pytest.mark.parametrize("kind", ["github", "stripe", "square", "slack"])
def test_body_that_was_changed(kind: str, sent: bytes, arrived: Callable[[bytes], bytes], words: str) -> None:
    request = _signed(kind, sent)
    assert not _findings(build(kind, {}), request, "secret-of-this")
    found = _findings(build(kind, {}), replace(request, body=arrived(sent)), "other", "secret-of-this")
    assert [one.about for one in found] == ["body"]
    assert words in found[0].what
    assert "env KEY_1 signed" in found[0].what


KEY = base64.b64encode(b"k" * 24).decode()


@pytest.mark.parametrize(
    ("kind", "right", "written", "words"),
    [
        ("github", "secret", "secret\n", "without the blanks"),
        ("github", "secret", "'secret'", "without the quotes"),
        ("github", "secret", "sha256=secret", "without sha256= before it"),
        ("stripe", f"whsec_{KEY}", f" whsec_{KEY}", "without the blanks"),
        ("gitlab", "secret", '"secret"', "without the quotes"),
        ("standard", f"whsec_{KEY}", f"whsec_{KEY}\n", "without whsec_ before it, read as base64"),
        ("twilio", "secret", " secret ", "without the blanks"),
    ],
)
def test_secret_that_is_written_wrong(kind: str, right: str, written: str, words: str) -> None:
    found = [one for one in _findings(build(kind, {}), _signed(kind, b"a=1", right), written) if one.about == "secret"]
    assert words in found[-1].what
    assert "env KEY_0" in found[-1].what
    assert not _findings(build(kind, {}), _signed(kind, b"a=1", right), right)


def test_secret_that_is_used_in_another_encoding() -> None:
    scheme = build("hmac", {"header": "X-S"})
    other = build("hmac", {"header": "X-S", "key": "base64"})
    request = incoming(other.sign(b"body", LiveSecret("s", KEY), now=NOW))
    found = [one for one in _findings(scheme, request, KEY) if one.about == "secret"]
    assert "read as base64" in found[0].what
    literal = incoming(scheme.sign(b"body", LiveSecret("s", KEY), now=NOW))
    found = [one for one in _findings(other, literal, KEY) if one.about == "secret"]
    assert "as it is written" in found[0].what


def test_standard_secret_that_was_used_as_text() -> None:
    """What somebody does who signs with the characters of whsec_… instead of the bytes they stand for."""
    import hmac

    secret, stamp = f"whsec_{KEY}", str(int(NOW.timestamp()))
    code = base64.b64encode(hmac.digest(secret.encode(), f"m.{stamp}.body".encode(), "sha256")).decode()
    fields = {"webhook-id": "m", "webhook-timestamp": stamp, "webhook-signature": f"v1,{code}"}
    found = _findings(build("standard", {}), Incoming(Headers.of(fields.items()), b"body"), secret)
    assert [one.about for one in found] == ["secret"]
    assert "as it is written" in found[0].what


@pytest.mark.parametrize("kind", ["square", "twilio"])
@pytest.mark.parametrize(
    ("registered", "said"),
    [
        ("https://a.example/hook/", "https://a.example/hook"),
        ("https://a.example/hook", "https://a.example/hook/"),
        ("https://a.example/hook", "http://a.example/hook"),
        ("http://a.example/hook/", "https://a.example/hook"),
    ],
)
def test_address_that_is_written_wrong(kind: str, registered: str, said: str) -> None:
    request = replace(_signed(kind, b"a=1", url=registered), url=said)
    found = _findings(build(kind, {}), request, "secret-of-this")
    assert [one.about for one in found] == ["url"]
    assert found[0].what.endswith(f"write url: {registered}")


@pytest.mark.parametrize(
    ("right", "written", "words"),
    [
        ({"encoding": "base64"}, {}, "encoding: base64"),
        ({"algorithm": "sha512"}, {}, "algorithm: sha512"),
        ({"prefix": "sha256="}, {}, "prefix: sha256="),
        ({}, {"prefix": "sha256="}, "prefix: (empty)"),
    ],
)
def test_option_that_is_written_wrong(right: dict[str, str], written: dict[str, str], words: str) -> None:
    made = build("hmac", {"header": "X-S", **right}).sign(b"body", LiveSecret("s", "secret"), now=NOW)
    found = _findings(build("hmac", {"header": "X-S", **written}), incoming(made), "secret")
    assert [one.about for one in found] == ["option"]
    assert words in found[0].what


def test_request_of_another_scheme() -> None:
    found = _findings(build("github", {}), _signed("stripe", b"{}"), "secret-of-this")
    assert [one.about for one in found] == ["scheme"]
    assert "right as stripe" in found[0].what
    found = _findings(build("github", {}), _signed("stripe", b"{}"), "unknown")
    assert [one.what.startswith("the request carries a signature of stripe") for one in found] == [True]


def test_what_was_signed_is_described() -> None:
    sample = SAMPLES["stripe"]
    body = b'{"text": "\xff\n' + b"x" * 100 + b'"}'
    request = incoming(sample.scheme.sign(body, LiveSecret("s", sample.secret), now=NOW))
    (covered,) = diagnose(sample.scheme, request, secrets("wrong"), tolerance=TOLERANCE, now=NOW).covered
    assert covered.what == "{timestamp}.{body}"
    assert covered.length == len(body) + 11
    assert covered.beginning.startswith(f'{int(NOW.timestamp())}.{{"text": "\\xff\\nxxx')
    assert len(covered.beginning) < 80


def test_time_is_no_matter_of_bytes_and_keys() -> None:
    sample = SAMPLES["stripe"]
    request = incoming(sample.scheme.sign(b"{}", LiveSecret("s", sample.secret), now=NOW))
    found = diagnose(sample.scheme, request, secrets(sample.secret), tolerance=TOLERANCE, now=NOW + timedelta(days=1))
    assert found.covered
    assert not found.findings


def test_scheme_that_checks_nothing_has_nothing_to_explain() -> None:
    found = diagnose(build("none", {"trust": "network"}), Incoming(Headers(), b""), [], tolerance=TOLERANCE, now=NOW)
    assert (found.covered, found.findings) == ((), ())
