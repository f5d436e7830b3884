"""Headers of every kind, from anybody, to every scheme that is found."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.signature import Accepted, Headers, Incoming, LiveSecret, Refusal
from scheduler.signatures.diagnosis import diagnose
from tests.signatures.requests import NOW, TOLERANCE, URL, Sample, incoming, refused, secrets, verify
from tests.signatures.samples import SAMPLES, of, signed

MALFORMED = [
    "",
    " ",
    "\t",
    ",",
    ";",
    "=",
    "v1=",
    "v1",
    "v1,",
    "v1,,",
    "v1,a,b",
    "v0=",
    "sha256=",
    "sha256=zz",
    "sha256=abc",
    "sha256=" + "a" * 63,
    "sha256=" + "a" * 65,
    "sha1=" + "a" * 40,
    "t=,v1=",
    "t=1,t=2,v1=aa",
    "ts=1;h1=zz",
    "====",
    "AAAA",
    "A" * 43 + "=",
    "0",
    "-1",
    "+1",
    "1e9",
    "1.5",
    "NaN",
    "Infinity",
    "9" * 15,
    "9" * 16,
    "٣",
    "\x00",
    "é",
    "🚀",
    "%00",
    "a" * 20_000,
    "v1," * 5_000,
    "v1=aa," * 2_000,
]

sample = of()
keyed = of(lambda one: one.scheme.needs_secret)


def _fields(sample: Sample) -> list[str]:
    return [name for name in signed(sample).headers if name != "Content-Type"]


def _request(sample: Sample, headers: list[tuple[str, str]]) -> Incoming:
    return dataclasses.replace(incoming(signed(sample)), headers=Headers.of(headers))


def test_header_that_is_missing(keyed: Sample) -> None:
    for name in _fields(keyed):
        headers = [(one, value) for one, value in signed(keyed).headers.items() if one != name]
        why = refused(verify(keyed.scheme, _request(keyed, headers), keyed.secret))
        assert why.reason.endswith("_missing"), why


@pytest.mark.parametrize("value", MALFORMED, ids=lambda one: ascii(one)[:24])
def test_header_that_is_malformed(keyed: Sample, value: str) -> None:
    for name in _fields(keyed):
        headers = [(one, value if one == name else right) for one, right in signed(keyed).headers.items()]
        found = verify(keyed.scheme, _request(keyed, headers), keyed.secret)
        assert refused(found).reason not in (Refusal.SECRET_MISSING, Refusal.SECRET_UNUSABLE)


def test_every_character_counts(keyed: Sample) -> None:
    for name in _fields(keyed):
        right = signed(keyed).headers[name]
        for index, char in enumerate(right):
            wrong = right[:index] + ("1" if char == "0" else "0") + right[index + 1 :]
            headers = [(one, wrong if one == name else value) for one, value in signed(keyed).headers.items()]
            refused(verify(keyed.scheme, _request(keyed, headers), keyed.secret))


def test_names_of_headers_have_no_case(sample: Sample) -> None:
    for change in (str.lower, str.upper, str.title):
        headers = [(change(name), f" {value}\t") for name, value in signed(sample).headers.items()]
        assert isinstance(verify(sample.scheme, _request(sample, headers), sample.secret), Accepted)


def test_headers_may_be_bytes(sample: Sample) -> None:
    headers = Headers.of([(name.encode(), value.encode()) for name, value in signed(sample).headers.items()])
    request = dataclasses.replace(incoming(signed(sample)), headers=headers)
    assert isinstance(verify(sample.scheme, request, sample.secret), Accepted)


def test_header_that_comes_twice(sample: Sample) -> None:
    right = list(signed(sample).headers.items())
    assert isinstance(verify(sample.scheme, _request(sample, right + right), sample.secret), Accepted)


def test_signed_header_that_comes_with_two_values(keyed: Sample) -> None:
    other = keyed.scheme.sign(
        keyed.body, LiveSecret("s", keyed.secret), now=NOW + timedelta(seconds=9), url=URL, delivery="other"
    )
    for name in _fields(keyed):
        if name.lower().endswith(("time", "timestamp", "id")):
            headers = [*signed(keyed).headers.items(), (name, other.headers[name])]
            refused(verify(keyed.scheme, _request(keyed, headers), keyed.secret), Refusal.HEADER_REPEATED)


texts = st.one_of(st.sampled_from(MALFORMED), st.text(max_size=200), st.binary(max_size=200))


@st.composite
def strangers(draw: st.DrawFn) -> tuple[Sample, Incoming]:
    """Requests that begin as signed ones, with any part replaced."""
    sample = SAMPLES[draw(st.sampled_from(sorted(name for name, one in SAMPLES.items() if one.scheme.needs_secret)))]
    names = [*signed(sample).headers, "content-type", "X-Other"]
    chosen = draw(st.lists(st.tuples(st.sampled_from(names), texts), max_size=6))
    headers = Headers.of([*draw(st.sampled_from([(), tuple(signed(sample).headers.items())])), *chosen])
    body = draw(st.one_of(st.just(signed(sample).body), st.binary(max_size=200), st.sampled_from(_BODIES)))
    url = draw(st.one_of(st.just(URL), st.just(""), st.text(max_size=40)))
    query = draw(st.one_of(st.just(""), st.just(signed(sample).query), st.text(max_size=40)))
    return sample, Incoming(headers, body, url, query)


_BODIES = [
    b"[" * 5_000,
    b'{"notificationItems": []}',
    b'{"notificationItems": [{"NotificationRequestItem": 3}]}',
    b'{"notificationItems": [{"NotificationRequestItem": {"amount": [], "additionalData": {"hmacSignature": 1}}}]}',
    b'{"notificationItems": {"0": 1}}',
    b"&" * 3_000,
    b"a=%ff&b=%",
    b"\xff\xfe\x00",
    b'"\\ud800"',
    b"9" * 5_000,
    b"NaN",
]


@given(strangers())
def test_a_stranger_is_refused_and_raises_nothing(case: tuple[Sample, Incoming]) -> None:
    sample, request = case
    refused(verify(sample.scheme, request, sample.other))
    found = diagnose(sample.scheme, request, secrets(sample.other), tolerance=TOLERANCE, now=NOW)
    assert not [one for one in found.findings if one.about in ("body", "secret", "url")], found
