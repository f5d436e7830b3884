"""What every signature scheme guarantees, over all that are found."""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Iterator
from datetime import timedelta

import pytest
from freezegun import freeze_time

from scheduler.core.errors import InvalidInput
from scheduler.core.signature import Accepted, Headers, Incoming, LiveSecret, Refusal, Signed
from scheduler.signatures.diagnosis import diagnose
from scheduler.signatures.registry import discover
from tests.signatures.requests import NOW, TOLERANCE, URL, Sample, incoming, refused, secrets, verify
from tests.signatures.samples import SAMPLES, of, signed

MICROSECOND = timedelta(microseconds=1)

sample = of()
keyed = of(lambda one: one.scheme.needs_secret)
covering = of(lambda one: one.signs_body)
addressed = of(lambda one: one.scheme.needs_url)
compared = of(lambda one: one.scheme.needs_secret and not one.secret.startswith("whsk_"))


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
