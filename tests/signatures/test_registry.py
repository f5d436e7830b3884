"""Which schemes and presets there are, and what may be written for them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.document import document_of
from scheduler.core.errors import InvalidInput
from scheduler.core.event_fields import EventFacts, FieldReader
from scheduler.core.handshakes import Handshakes
from scheduler.core.signature import Accepted, LiveSecret
from scheduler.signatures.registry import build, discover, options, presets
from tests.signatures.requests import NOW, URL, Sample, incoming, verify
from tests.signatures.samples import SAMPLES, of

sample = of()


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
