"""`standard`: Standard Webhooks, which Svix, Clerk, Resend, OpenAI, GitLab's signing tokens and others speak.

`webhook-signature` (or `svix-…`) is a list of `v1,<base64 HMAC-SHA256>` and `v1a,<base64 Ed25519>` over
`{webhook-id}.{webhook-timestamp}.{body}`. A secret is `whsec_` and base64, or for v1a a public key `whpk_` (to sign:
`whsk_`). The kind of the secret decides which signatures count: a weaker one never stands in for another.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from scheduler.core.errors import InvalidInput
from scheduler.core.preset import EventFields, Example, Preset
from scheduler.core.signature import Incoming, LiveSecret, Refusal, Rejected, Signed, SignedText
from scheduler.signatures.common.ed25519 import public_of, sign, signed
from scheduler.signatures.common.mac import Claim, Key, MacScheme, PublicKey
from scheduler.signatures.common.reading import MOST, Unreadable, decoded, instant, single, values, written
from scheduler.signatures.common.recipe import binary, delivery_id
from scheduler.signatures.common.verdict import mismatch

_FAMILIES = ("webhook", "svix")
_MAC, _ASYMMETRIC = 32, 64
_LENGTHS = {"whpk": (32,), "whsk": (32, 64)}


@dataclass(frozen=True, slots=True)
class Standard(MacScheme):
    kind: ClassVar[str] = "standard"
    preset: ClassVar[Preset | None] = Preset(
        title="Standard Webhooks",
        event=EventFields(id="header:webhook-id || header:svix-id", type="type", occurred_at="timestamp"),
        # The specification's schedule: ten attempts in 75 h 35 m.
        retries_for=timedelta(hours=75, minutes=35, seconds=5),
        documentation="https://www.standardwebhooks.com",
        example=Example('{"type": "user.created", "timestamp": "$instant", "data": {"id": "$id"}}'),
    )
    secret_form: ClassVar[str] = "whsec_ and base64, or a public key: whpk_ and base64"  # noqa: S105

    @property
    def signs_time(self) -> bool:
        return True

    def _key(self, secret: LiveSecret) -> Key | None:
        head, mark, rest = secret.value.partition("_")
        if mark and head in _LENGTHS:
            raw = binary(rest, "base64")
            if raw is None or len(raw) not in _LENGTHS[head]:
                return None
            return PublicKey(raw if head == "whpk" else public_of(raw))
        return binary(rest if head == "whsec" else secret.value, "base64")

    def _claim(self, request: Incoming) -> Claim:
        headers = request.headers
        family = next((one for one in _FAMILIES if headers.all(f"{one}-signature")), _FAMILIES[0])
        items = [one for value in values(headers, f"{family}-signature") for one in value.split()]
        delivery = single(headers, f"{family}-id", missing=Refusal.ID_MISSING, malformed=Refusal.ID_MALFORMED)
        if "." in delivery:
            # The parts of what is signed are separated by dots: with one inside, others could be read from it.
            raise Unreadable(Refusal.ID_MALFORMED, f"the header {family}-id holds a dot")
        if any(one != delivery for other in _FAMILIES for one in headers.all(f"{other}-id")):
            # The event would have the id that nobody signed, and one request could come as many events.
            names = " and ".join(f"{one}-id" for one in _FAMILIES)
            raise Unreadable(Refusal.ID_MALFORMED, f"the headers {names} differ, and only {family}-id is signed")
        name = f"{family}-timestamp"
        stamp = single(headers, name, missing=Refusal.TIMESTAMP_MISSING, malformed=Refusal.TIMESTAMP_MALFORMED)
        signed_at = instant(stamp)
        place = f"the header {family}-signature"
        if len(items) > MOST:
            raise Unreadable(Refusal.SIGNATURE_MALFORMED, f"{place} holds more than {MOST} signatures")
        macs, others = _of(items, "v1", _MAC), _of(items, "v1a", _ASYMMETRIC)
        if not macs and not others:
            known = any(one.partition(",")[0] in ("v1", "v1a") or "," not in one for one in items)
            reason = Refusal.SIGNATURE_MALFORMED if known else Refusal.SIGNATURE_UNSUPPORTED
            raise Unreadable(reason, f"{place} holds no signature that is `v1,` or `v1a,` and base64")
        return Claim(macs, signed_at, stamp, delivery, others)

    def _texts(self, request: Incoming, claim: Claim) -> tuple[SignedText, ...]:
        text = b".".join((claim.delivery.encode("latin-1"), claim.stamp.encode("latin-1"), request.body))
        return (SignedText("{id}.{timestamp}.{body}", text),)

    def _signed(self, key: Key, texts: Sequence[SignedText], claim: Claim) -> bool:
        if isinstance(key, PublicKey):
            return any(signed(key.raw, one.text, code) for one in texts for code in claim.asymmetric)
        return MacScheme._signed(self, key, texts, claim)

    def _unmatched(self, claim: Claim, keys: Sequence[Key | None], secrets: Sequence[LiveSecret]) -> Rejected:
        asymmetric = [isinstance(one, PublicKey) for one in keys if one is not None]
        if not claim.codes and not any(asymmetric):
            return Rejected(Refusal.SIGNATURE_UNSUPPORTED, "it is signed with v1a only, and no secret is a whpk_ key")
        if not claim.asymmetric and all(asymmetric):
            return Rejected(Refusal.SIGNATURE_UNSUPPORTED, "it is signed with v1 only, and every secret is a whpk_ key")
        return mismatch(secrets)

    def sign(self, body: bytes, secret: LiveSecret, *, now: datetime, url: str = "", delivery: str = "") -> Signed:
        made, stamp = delivery_id(delivery, body), written(now)
        text = b".".join((made.encode("ascii"), stamp.encode("ascii"), body))
        private = binary(secret.value[5:], "base64") if secret.value.startswith("whsk_") else None
        if private is not None and len(private) in _LENGTHS["whsk"]:
            code, version = sign(private, text), "v1a"
        elif isinstance(self._key(secret), PublicKey):
            raise InvalidInput(f"{secret.name} is a public key: it cannot sign", hint="use the private one, whsk_…")
        else:
            code, version = hmac.digest(self._signing_key(secret), text, "sha256"), "v1"
        signature = f"{version},{base64.b64encode(code).decode('ascii')}"
        return Signed({"webhook-id": made, "webhook-timestamp": stamp, "webhook-signature": signature}, body)


def _of(items: Sequence[str], version: str, size: int) -> tuple[bytes, ...]:
    texts = [text for head, mark, text in (one.partition(",") for one in items) if mark and head == version]
    return tuple(code for one in texts if (code := decoded(one, "base64")) is not None and len(code) == size)
