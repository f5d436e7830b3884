"""Why a request was refused, for its operator: which bytes were signed, and what would have been right instead.

It tries the signature against other bodies, keys, addresses and schemes, some hundred codes in all: for `verify` and
for requests that were kept, not for each that comes. Nobody outside may see the answer: it tells a forger what to
change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

from scheduler.core.signature import (
    Accepted,
    Covered,
    Diagnosis,
    Explaining,
    Finding,
    Incoming,
    LiveSecret,
    Refusal,
    Scheme,
    Verdict,
)
from scheduler.signatures.common.variants import addresses, bodies, keys
from scheduler.signatures.registry import discover

_TIMES = (Refusal.TIMESTAMP_TOO_OLD, Refusal.TIMESTAMP_TOO_NEW)
_SHOWN = 48


def diagnose(
    scheme: Scheme, request: Incoming, secrets: Sequence[LiveSecret], *, tolerance: timedelta, now: datetime
) -> Diagnosis:
    """Never raises. Findings only if the request is refused for its signature, not for its time."""
    verdict = scheme.verify(request, secrets, tolerance=tolerance, now=now)
    if not hasattr(scheme, "signed_by"):
        return Diagnosis(scheme.kind, verdict)
    asked = cast(Explaining, scheme)
    covered = tuple(Covered(one.what, len(one.text), _shown(one.text)) for one in asked.texts(request))
    if isinstance(verdict, Accepted) or verdict.reason in _TIMES:
        return Diagnosis(scheme.kind, verdict, covered)
    findings = (
        *_by_body(asked, request, secrets),
        *_by_secret(asked, request, secrets),
        *_by_address(asked, request, secrets),
        *_by_option(asked, request, secrets, now),
        *_by_scheme(scheme, request, secrets, verdict.reason, now),
    )
    return Diagnosis(scheme.kind, verdict, covered, findings)


def _by_body(scheme: Explaining, request: Incoming, secrets: Sequence[LiveSecret]) -> Iterator[Finding]:
    live = [(one.name, key) for one in secrets if (key := scheme.raw_key(one)) is not None]
    for what, body in bodies(request.body):
        which = scheme.signed_by(replace(request, body=body), [key for _, key in live])
        if which is not None:
            yield Finding(
                "body",
                f"the body was changed on its way here: {live[which][0]} signed it {what}. Something between the "
                "provider and this daemon reads and rewrites bodies: have it pass them on as they are",
            )
            return


def _by_secret(scheme: Explaining, request: Incoming, secrets: Sequence[LiveSecret]) -> Iterator[Finding]:
    for one in secrets:
        if one.value != one.value.strip():
            yield Finding("secret", f"{one.name} begins or ends with blanks or a newline: remove them")
        tried = list(keys(one.value))
        which = scheme.signed_by(request, [key for _, key in tried])
        if which is not None:
            yield Finding("secret", f"the signature is right with {one.name} {tried[which][0]}: correct the secret")


def _by_address(scheme: Explaining, request: Incoming, secrets: Sequence[LiveSecret]) -> Iterator[Finding]:
    if not scheme.needs_url or not request.url:
        return
    live = [key for one in secrets if (key := scheme.raw_key(one)) is not None]
    for url in addresses(request.url):
        if scheme.signed_by(replace(request, url=url), live) is not None:
            yield Finding("url", f"the provider signed another address: write url: {url}")
            return


def _by_option(
    scheme: Explaining, request: Incoming, secrets: Sequence[LiveSecret], now: datetime
) -> Iterator[Finding]:
    for what, other in scheme.neighbours():
        if _is_right(other.verify(request, secrets, tolerance=timedelta.max, now=now)):
            yield Finding("option", f"the signature is right with {what}: write that in the source")
            return


def _by_scheme(
    scheme: Scheme, request: Incoming, secrets: Sequence[LiveSecret], reason: Refusal, now: datetime
) -> Iterator[Finding]:
    for kind, make in sorted(discover().items()):
        if make.preset is None or kind == scheme.kind:
            continue
        verdict = make().verify(request, secrets, tolerance=timedelta.max, now=now)
        if _is_right(verdict):
            yield Finding("scheme", f"the signature is right as {kind}: write that as the source's preset or scheme")
        elif reason is Refusal.SIGNATURE_MISSING and _carries(verdict):
            yield Finding("scheme", f"the request carries a signature of {kind}: is the source one of {kind}'s?")


def _is_right(verdict: Verdict) -> bool:
    return isinstance(verdict, Accepted)


def _carries(verdict: Verdict) -> bool:
    return not isinstance(verdict, Accepted) and verdict.reason in (
        Refusal.SIGNATURE_MISMATCH,
        Refusal.SIGNATURE_UNSUPPORTED,
        Refusal.URL_MISSING,
    )


def _shown(text: bytes) -> str:
    return ascii(text[:_SHOWN])[2:-1]
