"""What every signature scheme guarantees, over all that are found."""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.document import document_of
from scheduler.core.errors import InvalidInput
from scheduler.core.event_fields import EventFacts, FieldReader
from scheduler.core.handshakes import Handshakes
from scheduler.core.signature import Accepted, Headers, Incoming, LiveSecret, Refusal, Rejected, Signed
from scheduler.signatures.diagnosis import diagnose
from scheduler.signatures.registry import build, discover, options, presets
from tests.signatures.requests import NOW, TOLERANCE, URL, Sample, incoming, secrets, verify
from tests.signatures.samples import SAMPLES, public

MICROSECOND = timedelta(microseconds=1)

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


def of(wanted: Callable[[Sample], bool] = lambda sample: True) -> Any:
    """A fixture of the samples that something is promised of."""

    def chosen(request: pytest.FixtureRequest) -> Sample:
        return SAMPLES[request.param]

    return pytest.fixture(params=sorted(name for name, one in SAMPLES.items() if wanted(one)))(chosen)


sample = of()
keyed = of(lambda one: one.scheme.needs_secret)
covering = of(lambda one: one.signs_body)
addressed = of(lambda one: one.scheme.needs_url)
compared = of(lambda one: one.scheme.needs_secret and not one.secret.startswith("whsk_"))


def signed(sample: Sample) -> Signed:
    return sample.scheme.sign(sample.body, LiveSecret("the signer", sample.secret), now=NOW, url=URL)


def refused(found: object, *reasons: Refusal) -> Rejected:
    assert isinstance(found, Rejected), found
    assert found.reason in (reasons or tuple(Refusal)), found
    assert found.why
    return found


def test_every_scheme_that_is_found_is_tried() -> None:
    assert {one.kind for one in SAMPLES.values()} == set(discover())
    assert all(kind == make.kind for kind, make in discover().items())


def test_round_trip(sample: Sample) -> None:
    found = verify(sample.scheme, incoming(signed(sample)), sample.secret)
    assert isinstance(found, Accepted), found
    if sample.scheme.needs_secret:
        assert (found.secret, found.secret_name) == (0, "env KEY_0")
    if sample.scheme.signs_time:
        assert found.signed_at is not None
        assert timedelta() <= NOW - found.signed_at < timedelta(seconds=1)
        assert found.difference == NOW - found.signed_at
    else:
        assert (found.signed_at, found.difference) == (None, None)


def test_signing_again_gives_the_same(sample: Sample) -> None:
    assert signed(sample) == signed(sample)


def test_the_clock_of_the_machine_has_no_part(sample: Sample) -> None:
    with freeze_time("1999-01-01"):
        assert isinstance(verify(sample.scheme, incoming(signed(sample)), sample.secret), Accepted)


def test_wrong_key(keyed: Sample) -> None:
    found = verify(keyed.scheme, incoming(signed(keyed)), keyed.other, keyed.other)
    assert "env KEY_0, env KEY_1" in refused(found, Refusal.SIGNATURE_MISMATCH).why


def test_altered_body(covering: Sample) -> None:
    request = incoming(signed(covering))
    other = covering.scheme.sign(covering.altered, LiveSecret("forger", covering.other), now=NOW, url=URL)
    forged = dataclasses.replace(
        request, body=other.body if covering.kind != "adyen" else _with_signature_of(request, other)
    )
    refused(verify(covering.scheme, forged, covering.secret), Refusal.SIGNATURE_MISMATCH, Refusal.BODY_MISMATCH)


def _with_signature_of(request: Incoming, other: Signed) -> bytes:
    start = request.body.index(b"hmacSignature")
    end = other.body.index(b"hmacSignature")
    return other.body[:end] + request.body[start:]


def test_body_that_is_cut_or_empty(covering: Sample) -> None:
    for body in (b"", signed(covering).body[:-1], signed(covering).body + b"x"):
        refused(verify(covering.scheme, incoming(signed(covering), body=body), covering.secret))


@pytest.mark.parametrize("side", [1, -1])
def test_times_on_both_sides(sample: Sample, side: int) -> None:
    request = incoming(signed(sample))
    for away in (timedelta(), TOLERANCE - MICROSECOND, TOLERANCE):
        assert isinstance(verify(sample.scheme, request, sample.secret, now=NOW + side * away), Accepted), away
    for away in (TOLERANCE + MICROSECOND, timedelta(days=1), timedelta(days=10_000)):
        found = verify(sample.scheme, request, sample.secret, now=NOW + side * away)
        if not sample.scheme.signs_time:
            assert isinstance(found, Accepted)
            continue
        why = refused(found, Refusal.TIMESTAMP_TOO_OLD if side > 0 else Refusal.TIMESTAMP_TOO_NEW)
        assert why.difference == side * away
        assert why.signed_at == NOW


def test_a_time_is_only_judged_of_what_was_signed(keyed: Sample) -> None:
    late = NOW + timedelta(days=1)
    why = refused(verify(keyed.scheme, incoming(signed(keyed)), keyed.other, now=late), Refusal.SIGNATURE_MISMATCH)
    claimed = (NOW, timedelta(days=1)) if keyed.scheme.signs_time else (None, None)
    assert (why.signed_at, why.difference) == claimed


def test_any_live_secret_will_do(keyed: Sample) -> None:
    scheme = keyed.scheme
    live = [keyed.other, keyed.secret]
    for order in (live, live[::-1]):
        found = verify(scheme, incoming(signed(keyed)), *order)
        assert isinstance(found, Accepted)
        assert found.secret == order.index(keyed.secret)
        assert found.secret_name == f"env KEY_{found.secret}"


def test_without_a_secret_everything_is_refused(keyed: Sample) -> None:
    refused(verify(keyed.scheme, incoming(signed(keyed))), Refusal.SECRET_MISSING)


@pytest.mark.parametrize("empty", ["", "\ud800"])
def test_a_secret_that_cannot_be_one_never_matches(keyed: Sample, empty: str) -> None:
    scheme = keyed.scheme
    refused(verify(scheme, incoming(signed(keyed)), empty), Refusal.SECRET_UNUSABLE)
    assert isinstance(verify(scheme, incoming(signed(keyed)), empty, keyed.secret), Accepted)
    with pytest.raises(InvalidInput):
        scheme.sign(keyed.body, LiveSecret("s", empty), now=NOW, url=URL)


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


def test_address_that_is_not_said(addressed: Sample) -> None:
    refused(verify(addressed.scheme, incoming(signed(addressed), url=""), addressed.secret), Refusal.URL_MISSING)
    refused(
        verify(addressed.scheme, incoming(signed(addressed), url="https://other.example.com/"), addressed.secret),
        Refusal.SIGNATURE_MISMATCH,
        Refusal.BODY_MISMATCH,
    )
    with pytest.raises(InvalidInput):
        addressed.scheme.sign(addressed.body, LiveSecret("s", addressed.secret), now=NOW)


def test_codes_are_compared_in_constant_time(compared: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        calls.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    verify(compared.scheme, incoming(signed(compared)), compared.other)
    assert calls
    assert all(len(one) == len(other) for one, other in calls)
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: False)
    refused(verify(compared.scheme, incoming(signed(compared)), compared.secret))


def test_no_secret_is_shown(sample: Sample) -> None:
    request = incoming(signed(sample))
    live = secrets(sample.other, sample.secret + " ", "")
    shown = [repr(live), str(live[0]), repr(request), repr(signed(sample)), repr(sample.scheme)]
    for now in (NOW, NOW + timedelta(days=1)):
        for order in (live, [LiveSecret("right", sample.secret)]):
            verdict = sample.scheme.verify(request, order, tolerance=TOLERANCE, now=now)
            found = diagnose(sample.scheme, request, order, tolerance=TOLERANCE, now=now)
            shown += [repr(verdict), str(verdict), repr(found), str(found)]
    for text in shown:
        assert sample.secret not in text
        assert sample.other not in text


def test_verdicts_do_not_change(sample: Sample) -> None:
    for value in (verify(sample.scheme, incoming(signed(sample)), sample.secret), sample.scheme, signed(sample)):
        name = next(iter(dataclasses.fields(value)), None)  # type: ignore[arg-type]
        if name is not None:
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, name.name, None)


def test_public_key_is_enough_to_verify() -> None:
    sample = SAMPLES["standard with Ed25519"]
    found = verify(sample.scheme, incoming(signed(sample)), public(sample.secret))
    assert isinstance(found, Accepted)
    with pytest.raises(InvalidInput, match="cannot sign"):
        sample.scheme.sign(b"", LiveSecret("s", public(sample.secret)), now=NOW)


def test_options_are_checked(sample: Sample) -> None:
    with pytest.raises(InvalidInput, match="no option"):
        build(sample.kind, {**sample.options, "colour": "red"})
    for name, default in options(sample.kind).items():
        if default is None:
            with pytest.raises(InvalidInput, match=f"needs the option {name}"):
                build(sample.kind, {one: value for one, value in sample.options.items() if one != name})


def test_presets_need_no_options() -> None:
    assert set(presets()) == set(discover()) - {"hmac", "none"}
    for kind, preset in presets().items():
        assert build(kind, {}).kind == kind
        assert preset.event.id
        assert preset.keep > max(preset.retries_for or timedelta(), preset.looks_back or timedelta())
        assert 200 <= preset.answer.status < 300


@pytest.mark.parametrize("kind", sorted(presets()))
def test_example_of_a_provider_is_understood(kind: str) -> None:
    sample, preset = SAMPLES[kind], presets()[kind]
    assert preset.example is not None
    ids = set()
    for name in ("4711abc", "4712abc"):
        body, headers = preset.example.filled(name, NOW)
        made = sample.scheme.sign(body, LiveSecret("s", sample.secret), now=NOW, url=URL, delivery=name)
        request = incoming(made, extra=headers.items())
        assert isinstance(verify(sample.scheme, request, sample.secret), Accepted)
        document = document_of(request.body, request.headers.get("content-type") or "")
        facts = FieldReader(preset.event).read(document, request.headers)
        assert isinstance(facts, EventFacts)
        assert name in facts.id
        assert facts.type
        assert not facts.problems
        assert (facts.occurred_at == NOW) == bool(preset.event.occurred_at)
        assert Handshakes(preset.handshakes).answer(document, request.headers) is None
        ids.add(facts.id)
    assert len(ids) == 2


def test_scheme_that_there_is_not() -> None:
    with pytest.raises(InvalidInput, match="no signature scheme"):
        build("md5", {})


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


def _all_requests(sample: Sample) -> Iterator[Incoming]:
    yield incoming(signed(sample))
    yield Incoming(Headers(), b"")


def test_diagnosis_gives_the_verdict_and_what_was_signed(sample: Sample) -> None:
    for request in _all_requests(sample):
        found = diagnose(sample.scheme, request, secrets(sample.secret), tolerance=TOLERANCE, now=NOW)
        assert found.verdict == verify(sample.scheme, request, sample.secret)
        assert found.scheme == sample.kind
        if isinstance(found.verdict, Accepted):
            assert not found.findings
            assert bool(found.covered) == sample.signs_body
