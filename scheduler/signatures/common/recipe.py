"""Signatures that can be described: which header, which text, which algorithm. Most providers are one of these."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from scheduler.core.errors import InvalidInput, refuse_all
from scheduler.core.signature import Incoming, LiveSecret, Refusal, Signed, SignedText
from scheduler.signatures.common.mac import SIZES, Claim, MacScheme, literal
from scheduler.signatures.common.reading import Unreadable, codes, encoded, instant, single, values, written

_PLACE = re.compile(r"\{(\w*)\}")
_AFTER_ID = re.compile(r"\{id\}([^{]+)")
_NAMES = ("timestamp", "id", "url", "body")


@dataclass(frozen=True, slots=True)
class Recipe:
    """`separator` "" = the header holds one signature; `prefix` stands before each. `template` is the signed text, of
    `{timestamp} {id} {url} {body}`. `timestamp`: `header:NAME`, or `item:PREFIX` for an item of the signature's header;
    `id`: `header:NAME`. `key`: how the secret is read (`utf8 base64 hex`). InvalidInput if that cannot be."""

    header: str
    prefix: str = ""
    separator: str = ""
    encoding: str = "hex"
    algorithm: str = "sha256"
    key: str = "utf8"
    template: str = "{body}"
    timestamp: str = ""
    timestamp_unit: str = "s"
    id: str = ""

    def __post_init__(self) -> None:
        refuse_all(list(self._problems()))

    def _problems(self) -> Iterator[InvalidInput]:
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", self.header):
            yield InvalidInput("header is not a name of a header", hint="write header: X-Signature")
        for name, allowed in _WORDS.items():
            if getattr(self, name) not in allowed:
                yield InvalidInput(f"{name} cannot be that", hint=f"write one of {' '.join(allowed)}")
        used = set(_PLACE.findall(self.template))
        if unknown := sorted(used - set(_NAMES)):
            yield InvalidInput(f"template has {{{unknown[0]}}}", hint="use {timestamp} {id} {url} {body}")
        if "body" not in used:
            yield InvalidInput("template lacks {body}: anybody could change it", hint="add {body}")
        for name, option, forms in (("timestamp", self.timestamp, ("header:", "item:")), ("id", self.id, ("header:",))):
            if (name in used) != bool(option):
                yield InvalidInput(
                    f"template has {{{name}}}, and {name} is not written"
                    if name in used
                    else f"{name} is not in the template, so it is not signed",
                    hint=f"write both: {name}: {forms[0]}NAME and {{{name}}} in the template",
                )
            if option and not (option.startswith(forms) and option.partition(":")[2]):
                hint = f"write {' or '.join(one + 'NAME' for one in forms)}"
                yield InvalidInput(f"{name} is not understood", hint=hint)
        if self.timestamp.startswith("item:") and not self.separator:
            yield InvalidInput("the timestamp is an item of a header without separator", hint='write separator: ","')

    def items(self, value: str) -> list[str]:
        if not self.separator:
            return [value]
        return [one.strip() for one in value.split(self.separator if self.separator.strip() else None)]

    def text(self, *, stamp: str, delivery: str, url: str, body: bytes) -> bytes:
        if self.template == "{body}":
            return body
        # What stood in headers goes back into the bytes that it was.
        filled = {
            "timestamp": stamp.encode("latin-1"),
            "id": delivery.encode("latin-1"),
            "url": url.encode("utf-8", "replace"),
            "body": body,
        }
        parts = _PLACE.split(self.template)
        return b"".join(filled[one] if index % 2 else one.encode("utf-8") for index, one in enumerate(parts))


_WORDS = {
    "encoding": ("hex", "base64"),
    "algorithm": tuple(SIZES),
    "key": ("utf8", "base64", "hex"),
    "timestamp_unit": ("s", "ms"),
}


class RecipeScheme(MacScheme):
    """A scheme that is nothing but a recipe."""

    __slots__ = ()

    @property
    @abstractmethod
    def recipe(self) -> Recipe: ...

    @property
    def signs_time(self) -> bool:
        return bool(self.recipe.timestamp)

    @property
    def needs_url(self) -> bool:
        return "{url}" in self.recipe.template

    @property
    def algorithm_name(self) -> str:
        return self.recipe.algorithm

    def _key(self, secret: LiveSecret) -> bytes | None:
        return literal(secret) if self.recipe.key == "utf8" else binary(secret.value, self.recipe.key)

    def _claim(self, request: Incoming) -> Claim:
        recipe = self.recipe
        place = f"the header {recipe.header}"
        items = [one for value in values(request.headers, recipe.header) for one in recipe.items(value) if one]
        ours = [one[len(recipe.prefix) :] for one in items if one.startswith(recipe.prefix)]
        if not ours:
            other = any(re.match(r"[A-Za-z0-9]+[=,:].", one, re.ASCII) for one in items)
            reason = Refusal.SIGNATURE_UNSUPPORTED if other else Refusal.SIGNATURE_MALFORMED
            raise Unreadable(reason, f"{place} holds nothing that begins with {recipe.prefix}")
        kind, _, where = recipe.timestamp.partition(":")
        stamp = delivery = ""
        if kind == "item":
            stamp = _item(items, where, place)
        elif kind:
            stamp = single(
                request.headers, where, missing=Refusal.TIMESTAMP_MISSING, malformed=Refusal.TIMESTAMP_MALFORMED
            )
        if recipe.id:
            where = recipe.id.partition(":")[2]
            delivery = single(request.headers, where, missing=Refusal.ID_MISSING, malformed=Refusal.ID_MALFORMED)
            end = _AFTER_ID.search(recipe.template)
            if end is not None and end[1] in delivery:
                # With what ends it inside, the id could be read as a shorter one, and its rest as what follows.
                raise Unreadable(
                    Refusal.ID_MALFORMED, f"the header {where} holds {end[1]!r}, which ends it in the text"
                )
        signed_at = instant(stamp, recipe.timestamp_unit) if stamp else None
        return Claim(codes(ours, recipe.encoding, SIZES[recipe.algorithm], place), signed_at, stamp, delivery)

    def _texts(self, request: Incoming, claim: Claim) -> tuple[SignedText, ...]:
        recipe = self.recipe
        if self.needs_url and not request.url:
            raise Unreadable(Refusal.URL_MISSING, "the provider signs the address, and the source does not say its url")
        text = recipe.text(stamp=claim.stamp, delivery=claim.delivery, url=request.url, body=request.body)
        return (SignedText(recipe.template, text),)

    def sign(self, body: bytes, secret: LiveSecret, *, now: datetime, url: str = "", delivery: str = "") -> Signed:
        recipe, key = self.recipe, self._signing_key(secret)
        if self.needs_url and not url:
            raise InvalidInput("the provider signs the address, and the source does not say its url", hint="write url:")
        stamp = written(now, recipe.timestamp_unit) if recipe.timestamp else ""
        made = delivery_id(delivery, body)
        text = recipe.text(stamp=stamp, delivery=made if recipe.id else "", url=url, body=body)
        value = recipe.prefix + encoded(self._code(key, text), recipe.encoding)
        headers: dict[str, str] = {}
        kind, _, where = recipe.timestamp.partition(":")
        if kind == "item":
            value = f"{where}{stamp}{recipe.separator}{value}"
        elif kind:
            headers[where] = stamp
        if recipe.id:
            headers[recipe.id.partition(":")[2]] = made
        return Signed({recipe.header: value, **headers}, body)


def binary(text: str, encoding: str) -> bytes | None:
    """A secret that is written in base64 (padding may be missing) or hex; None if it is not, or is empty."""
    try:
        if encoding == "hex":
            return binascii.unhexlify(text) or None
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def delivery_id(wanted: str, body: bytes) -> str:
    """The id to sign. One that is invented is the same for the same body, so that a second sending is a duplicate."""
    if not re.fullmatch(r"[!-~]{0,256}", wanted) or "." in wanted:
        raise InvalidInput("the delivery's id cannot be signed", hint="use printable ASCII without blanks and dots")
    return wanted or f"msg_{hashlib.sha256(body).hexdigest()[:24]}"


def _item(items: list[str], prefix: str, place: str) -> str:
    found = {one[len(prefix) :] for one in items if one.startswith(prefix)}
    if not found:
        raise Unreadable(Refusal.TIMESTAMP_MISSING, f"{place} holds no {prefix}")
    if len(found) > 1:
        raise Unreadable(Refusal.HEADER_REPEATED, f"{place} holds {len(found)} different values of {prefix}")
    stamp = found.pop()
    if not stamp:
        raise Unreadable(Refusal.TIMESTAMP_MALFORMED, f"{place} holds nothing after {prefix}")
    return stamp
