"""`adyen`: Adyen's standard notifications carry their signature in the body (`additionalData.hmacSignature`), base64,
over eight fields joined by colons, with a key in hex. Nothing else of the body is signed: the rest is to be looked up
before anything important follows from it. Adyen's other webhooks sign the whole body in a header: `hmac` with
`encoding: base64` and `key: hex`.

Source: https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures/
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from scheduler.core.errors import InvalidInput
from scheduler.core.preset import Answer, EventFields, Example, Preset
from scheduler.core.signature import Incoming, LiveSecret, Refusal, Signed, SignedText
from scheduler.signatures.common.mac import SIZES, Claim, Key, MacScheme
from scheduler.signatures.common.reading import LONGEST, Unreadable, codes, encoded
from scheduler.signatures.common.recipe import binary

_FIELDS = (
    ("pspReference",),
    ("originalReference",),
    ("merchantAccountCode",),
    ("merchantReference",),
    ("amount", "value"),
    ("amount", "currency"),
    ("eventCode",),
    ("success",),
)
_ITEM = "notificationItems[0].NotificationRequestItem"
_WHERE = "additionalData.hmacSignature"


@dataclass(frozen=True, slots=True)
class Adyen(MacScheme):
    kind: ClassVar[str] = "adyen"
    preset: ClassVar[Preset | None] = Preset(
        title="Adyen",
        event=EventFields(
            id=f"{_ITEM}.join(':', [eventCode, pspReference])",
            type=f"{_ITEM}.eventCode",
            occurred_at=f"{_ITEM}.eventDate",
            subject=f"{_ITEM}.merchantReference",
        ),
        answer=Answer(200, "[accepted]", "text/plain; charset=utf-8"),
        retries_for=timedelta(days=30),
        documentation="https://docs.adyen.com/development-resources/webhooks",
        example=Example(
            '{"live": "false", "notificationItems": [{"NotificationRequestItem": {"eventCode": "AUTHORISATION", '
            '"pspReference": "$id", "merchantAccountCode": "Example", "merchantReference": "order-$id", '
            '"amount": {"value": 1130, "currency": "EUR"}, "success": "true", "eventDate": "$instant"}}]}'
        ),
    )
    secret_form: ClassVar[str] = "hex"  # noqa: S105

    def _key(self, secret: LiveSecret) -> Key | None:
        return binary(secret.value, "hex")

    def _claim(self, request: Incoming) -> Claim:
        additional = _item(request.body).get("additionalData")
        sent = additional.get("hmacSignature") if isinstance(additional, dict) else None
        if sent is None:
            raise Unreadable(Refusal.SIGNATURE_MISSING, f"the notification has no {_WHERE}")
        if not isinstance(sent, str) or len(sent) > LONGEST:
            raise Unreadable(Refusal.SIGNATURE_MALFORMED, f"{_WHERE} is not a text of at most {LONGEST} characters")
        return Claim(codes([sent], "base64", SIZES["sha256"], _WHERE))

    def _texts(self, request: Incoming, claim: Claim) -> tuple[SignedText, ...]:
        return (SignedText(":".join(path[-1] for path in _FIELDS), _signed_fields(_item(request.body))),)

    def sign(self, body: bytes, secret: LiveSecret, *, now: datetime, url: str = "", delivery: str = "") -> Signed:
        key = self._signing_key(secret)
        try:
            code = self._code(key, _signed_fields(_item(body)))
        except Unreadable as error:
            raise InvalidInput(error.rejected.why, hint="send a standard notification of Adyen") from None
        whole = json.loads(body)
        item = whole["notificationItems"][0]["NotificationRequestItem"]
        additional = item.get("additionalData")
        kept = additional if isinstance(additional, dict) else {}
        item["additionalData"] = {**kept, "hmacSignature": encoded(code, "base64")}
        return Signed({"Content-Type": "application/json"}, json.dumps(whole).encode("utf-8"))


def _item(body: bytes) -> dict[str, Any]:
    try:
        items = json.loads(body)["notificationItems"]
        item = items[0]["NotificationRequestItem"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Unreadable(Refusal.BODY_MALFORMED, "the body is no JSON with notificationItems") from None
    if len(items) != 1 or not isinstance(item, dict):
        raise Unreadable(Refusal.BODY_MALFORMED, "the body does not hold exactly one notification")
    return item


def _signed_fields(item: dict[str, Any]) -> bytes:
    found: list[str] = []
    for path in _FIELDS:
        value: Any = item
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = str(value).lower()
        if value is not None and not isinstance(value, str | int):
            raise Unreadable(Refusal.BODY_MALFORMED, f"{'.'.join(path)} is neither a text nor a whole number")
        found.append("" if value is None else str(value))
    return ":".join(found).encode("utf-8", "surrogatepass")
