"""Values of one entry of `sources` → a Source: its preset's defaults, then what is written beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from scheduler.config.bundle import Bundle
from scheduler.config.fields import to_text
from scheduler.config.headers import written_headers
from scheduler.config.interpolation import Interpolation
from scheduler.config.models.queue import rate_text
from scheduler.config.models.source import (
    DEFAULT_KEEP,
    DEFAULT_TOLERANCE,
    FetchCurrentModel,
    SignatureModel,
    SourceModel,
)
from scheduler.config.problem import Path
from scheduler.config.refusal import shown
from scheduler.config.schemes import Schemes
from scheduler.config.suggest import did_you_mean, suggestion
from scheduler.config.translate import complaints, keys_of, unknown_key
from scheduler.config.written import canonical, duration_text, fingerprint_of, size_text
from scheduler.core.errors import InvalidInput
from scheduler.core.event_fields import FieldReader
from scheduler.core.model import Json
from scheduler.core.preset import Answer, EventFields, Preset
from scheduler.core.secret import Secret
from scheduler.core.signature import Scheme
from scheduler.core.source import Source
from scheduler.core.value_object import value_object

_UNKNOWN = Preset(title="", tolerance=DEFAULT_TOLERANCE, keep=DEFAULT_KEEP)


@value_object
class Senders:
    """Builds one source after the other; problems go to the bundle."""

    bundle: Bundle
    schemes: Schemes
    interpolation: Interpolation

    def build(self, name: str, values: Any) -> Source | None:
        """The source; None if something is wrong with it."""
        before = len(self.bundle.problems)
        model, broken = self._validate(name, {} if values is None else values)
        made = None if model is None else self._source(name, model, broken)
        return made if len(self.bundle.problems) == before else None

    def _validate(self, name: str, values: Any) -> tuple[SourceModel | None, Set[str]]:
        """The model of what is right, and the keys that are not; no model of what is no source at all."""
        broken: set[str] = set()
        while True:
            try:
                return SourceModel.model_validate(values, context=self.interpolation), broken
            except ValidationError as error:
                found = list(complaints(error, SourceModel))
                for path, reason, hint, key in found:
                    self._complain(name, path, reason, hint, key=key)
                wrong = {path[0] for path, *_ in found if path}
                if not isinstance(values, dict) or not wrong & values.keys():
                    return None, broken
                broken |= {str(key) for key in wrong}
                values = {key: value for key, value in values.items() if key not in wrong}

    def _complain(self, name: str, path: Path, reason: str, hint: str | None, *, key: bool = False) -> None:
        self.bundle.complain(("sources", name, *path), reason, hint, key=key)

    def _source(self, name: str, model: SourceModel, broken: Set[str]) -> Source | None:
        """`broken`: keys that were left out of the model because they are wrong; nothing is said of what they lack."""
        signature = model.signature or SignatureModel()
        kind = signature.scheme or model.preset
        if model.preset is None and kind in self.schemes.presets():
            # A provider's way of signing says who sends.
            model = model.model_copy(update={"preset": kind})
        preset = self._preset(name, model)
        if kind is None:
            if not broken & {"preset", "signature"}:
                hint = f"write preset: {', '.join(sorted(self.schemes.presets()))}, or signature: {{scheme: hmac, …}}"
                self._complain(name, (), "nothing says how its requests are signed", hint, key=True)
            return None
        if preset is None and kind == model.preset:
            return None
        secrets = self._secrets(name, model, signature)
        options = self._options(name, kind, signature, model, broken)
        scheme = None if options is None else self._scheme(name, kind, options, model)
        if scheme is not None:
            self._needs(name, model, scheme, secrets, broken)
        event = None
        if preset is not None and kind in self.schemes.discover() and not broken & {"preset", "event"}:
            event = _event(model, preset)
            try:
                FieldReader(event)
            except InvalidInput as error:
                self._complain(name, ("event",), error.reason, error.hint, key=True)
        if preset is None or options is None or event is None:
            return None
        return _noun(name, model, preset, kind, options, secrets, event)

    def _scheme(self, name: str, kind: str, options: Mapping[str, str], model: SourceModel) -> Scheme | None:
        """None if these options cannot be."""
        try:
            return self.schemes.build(kind, options)
        except InvalidInput as error:
            for one in (error, *error.others):
                self._complain(name, ("signature",), one.reason, one.hint, key=model.signature is None)
            return None

    def _preset(self, name: str, model: SourceModel) -> Preset | None:
        """What is known of the provider; None if the preset is wrong."""
        if model.preset is None:
            return _UNKNOWN
        known = self.schemes.presets()
        found = known.get(model.preset)
        if found is None:
            reason = f"there is no preset {shown(model.preset)}"
            self._complain(name, ("preset",), reason, did_you_mean(model.preset, known))
        return found

    def _options(
        self, name: str, kind: str, signature: SignatureModel, model: SourceModel, broken: Set[str]
    ) -> dict[str, str] | None:
        """What the scheme is built with, without options that it does not have; None if there is no such scheme, or if
        one of its options cannot be read."""
        if kind not in self.schemes.discover():
            reason = f"there is no signature scheme {shown(kind)}"
            self._complain(name, ("signature", "scheme"), reason, did_you_mean(kind, self.schemes.discover()))
            return None
        known = self.schemes.options(kind)
        written: dict[str, str] = {}
        good = True
        for key, value in (signature.model_extra or {}).items():
            if key not in known or key == "trust":
                keys = {*known, *keys_of(SignatureModel)} - {"trust"}
                self._complain(name, ("signature", key), *unknown_key(key, keys), key=True)
                good = good and key != "trust" and suggestion(key, known) is None  # else that one is not lacking
                continue
            try:
                written[key] = to_text(value)
            except PydanticCustomError as error:
                context = error.context or {}
                self._complain(name, ("signature", key), str(context.get("reason")), context.get("hint"))
                good = False
        if model.trust is not None and "trust" not in known:
            reason = f"`trust: {model.trust}` is for senders that sign nothing, and {kind} signs"
            self._complain(name, ("trust",), reason, "remove it, or write signature: {scheme: none}", key=True)
        elif model.trust is not None:
            written["trust"] = model.trust
        good = good and not ("trust" in known and "trust" in broken)
        return written if good else None

    def _secrets(self, name: str, model: SourceModel, signature: SignatureModel) -> tuple[Secret, ...]:
        if model.secrets is not None and signature.secrets is not None:
            self._complain(name, ("secrets",), "the secrets are given twice", "keep one of the two places", key=True)
        return tuple(one.noun() for one in model.secrets or signature.secrets or ())

    def _needs(
        self, name: str, model: SourceModel, scheme: Scheme, secrets: tuple[Secret, ...], broken: Set[str]
    ) -> None:
        if scheme.needs_secret and not secrets and not broken & {"secrets", "signature"}:
            hint = "write secrets: [{env: NAME}] or [{file: PATH}]"
            self._complain(
                name, (), f"{scheme.kind} needs the secret with which its requests are signed", hint, key=True
            )
        if secrets and not scheme.needs_secret:
            path: Path = ("secrets",) if model.secrets is not None else ("signature", "secrets")
            self._complain(name, path, f"the scheme {scheme.kind} uses no secret", "remove it", key=True)
        if scheme.needs_url and model.url is None and "url" not in broken:
            hint = f"write url: https://your.host/webhooks/{name}, exactly as it stands there"
            reason = f"{scheme.kind} signs the address that is registered with the provider"
            self._complain(name, (), reason, hint, key=True)


def _event(model: SourceModel, preset: Preset) -> EventFields:
    written = {} if model.event is None else model.event.model_dump(exclude_none=True)
    return replace(preset.event, **written)


def _answer(model: SourceModel, preset: Preset) -> Answer:
    written = {} if model.response is None else model.response.model_dump(exclude_none=True)
    return replace(preset.answer, **written)


def _noun(
    name: str,
    model: SourceModel,
    preset: Preset,
    kind: str,
    options: Mapping[str, str],
    secrets: tuple[Secret, ...],
    event: EventFields,
) -> Source:
    rate = model.rate
    source = Source(
        name=name,
        definition_text="",
        fingerprint="",
        scheme=kind,
        options=options,
        preset=model.preset,
        secrets=secrets,
        url=model.url or "",
        tolerance=model.tolerance or preset.tolerance,
        event=event,
        keep=model.keep or preset.keep,
        max_body=model.max_body,
        answer=_answer(model, preset),
        handshakes=preset.handshakes,
        paused=model.paused,
        rate=rate,
        burst=model.burst or (1 if rate is None else max(1, math.ceil(rate))),
        fetch_current=None if model.fetch_current is None else model.fetch_current.noun(),
    )
    text = canonical(_definition(source, model))
    return replace(source, definition_text=text, fingerprint=fingerprint_of(text))


def _definition(source: Source, model: SourceModel) -> dict[str, Json]:
    """Every key with its effective value, as it could be written; secrets as references."""
    options = {key: value for key, value in source.options.items() if key != "trust"}
    event = source.event
    fields = {"id": event.id, "type": event.type, "occurred_at": event.occurred_at, "subject": event.subject}
    made: dict[str, Json] = {
        "signature": {"scheme": source.scheme, **options},
        "tolerance": duration_text(source.tolerance),
        "event": {key: place for key, place in fields.items() if place},
        "keep": duration_text(source.keep),
        "max_body": size_text(source.max_body),
        "response": _response(source.answer),
        "paused": source.paused,
    }
    written = model.secrets or (model.signature and model.signature.secrets)
    if written:
        made["secrets"] = [one.written() for one in written]
    if source.preset is not None:
        made["preset"] = source.preset
    for key in ("url", "trust"):
        if getattr(model, key) is not None:
            made[key] = getattr(model, key)
    if source.rate is not None:
        made["rate"] = rate_text(source.rate)
        made["burst"] = source.burst
    if model.fetch_current is not None:
        made["fetch_current"] = _fetch_current(model.fetch_current)
    return made


def _response(answer: Answer) -> dict[str, Json]:
    made: dict[str, Json] = {"status": answer.status}
    if answer.body is not None:
        made.update(body=answer.body, content_type=answer.content_type)
    return made


def _fetch_current(model: FetchCurrentModel) -> dict[str, Json]:
    headers = written_headers(model.headers)
    return {"url": model.url, **({"headers": headers} if headers else {})}
