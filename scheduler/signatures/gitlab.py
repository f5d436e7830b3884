"""`gitlab`: X-Gitlab-Token is the secret itself; it says who sends, nothing about the body. A hook with a signing token
is `standard`.

Source: https://docs.gitlab.com/user/project/integrations/webhooks/
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from scheduler.core.errors import InvalidInput
from scheduler.core.preset import EventFields, Example, Preset
from scheduler.core.signature import Incoming, LiveSecret, Scheme, Signed, SignedText, Verdict
from scheduler.signatures.common.mac import literal
from scheduler.signatures.common.reading import Unreadable, values
from scheduler.signatures.common.verdict import accepted, any_same, mismatch, usable

_HEADER = "X-Gitlab-Token"


@dataclass(frozen=True, slots=True)
class GitLab:
    kind: ClassVar[str] = "gitlab"
    preset: ClassVar[Preset | None] = Preset(
        title="GitLab",
        # X-Gitlab-Event-UUID is shared by hooks that follow from one another, so it is no key.
        event=EventFields(
            id="header:Idempotency-Key", type="object_kind || event_name", subject="project.path_with_namespace"
        ),
        looks_back=timedelta(days=30),
        documentation="https://docs.gitlab.com/user/project/integrations/webhooks/",
        example=Example(
            '{"object_kind": "push", "ref": "refs/heads/main", "project": {"path_with_namespace": "example/project"}}',
            {"Idempotency-Key": "$id", "X-Gitlab-Event": "Push Hook"},
        ),
    )
    signs_time: ClassVar[bool] = False
    needs_url: ClassVar[bool] = False
    needs_secret: ClassVar[bool] = True

    def verify(
        self, request: Incoming, secrets: Sequence[LiveSecret], *, tolerance: timedelta, now: datetime
    ) -> Verdict:
        keys = [literal(one) for one in secrets]
        refused = usable(keys, secrets, "not empty")
        if refused is not None:
            return refused
        try:
            sent = _sent(request)
        except Unreadable as error:
            return error.rejected
        for which, key in enumerate(keys):
            if key is not None and any_same(_hashed(key), sent):
                return accepted(secrets, which, signed_at=None, tolerance=tolerance, now=now)
        return mismatch(secrets)

    def sign(self, body: bytes, secret: LiveSecret, *, now: datetime, url: str = "", delivery: str = "") -> Signed:
        if literal(secret) is None or not secret.value.isascii() or not secret.value.isprintable():
            raise InvalidInput(f"the secret {secret.name} cannot be sent", hint="it must be printable ASCII, not empty")
        return Signed({_HEADER: secret.value}, body)

    def texts(self, request: Incoming) -> tuple[SignedText, ...]:
        return ()

    def signed_by(self, request: Incoming, keys: Sequence[bytes]) -> int | None:
        try:
            sent = _sent(request)
        except Unreadable:
            return None
        return next((which for which, key in enumerate(keys) if any_same(_hashed(key), sent)), None)

    def raw_key(self, secret: LiveSecret) -> bytes | None:
        return literal(secret)

    def neighbours(self) -> Iterable[tuple[str, Scheme]]:
        return ()


def _sent(request: Incoming) -> tuple[bytes, ...]:
    return tuple(_hashed(one.encode("latin-1", "replace")) for one in values(request.headers, _HEADER) if one)


def _hashed(token: bytes) -> bytes:
    # Of equal length, so that the comparison does not tell the secret's.
    return hashlib.sha256(token).digest()
