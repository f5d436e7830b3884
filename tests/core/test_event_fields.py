"""What is read of an event, and that no event is lost for what cannot be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.document import document_of
from scheduler.core.errors import InvalidInput
from scheduler.core.event_fields import LONGEST, EventFacts, FieldReader
from scheduler.core.handshakes import Handshakes
from scheduler.core.place import Place
from scheduler.core.preset import Answer, EventFields
from scheduler.core.signature import Headers, Refusal, Rejected
from scheduler.signatures.registry import presets

NONE = Headers()
FORM = "application/x-www-form-urlencoded"


def _read(document: Any, headers: Headers = NONE, **fields: str) -> EventFacts | Rejected:
    return FieldReader(EventFields(**{"id": "id", **fields})).read(document, headers)


def test_every_field() -> None:
    headers = Headers.of([("X-Topic", "order.paid")])
    document = {"id": 17, "data": [{"at": 1772438400, "no": "A-1"}]}
    found = _read(document, headers, type="header:x-topic", occurred_at="data[0].at", subject="data[0].no")
    assert found == EventFacts("17", "order.paid", datetime(2026, 3, 2, 8, tzinfo=UTC), "A-1")


def test_header_of_which_the_first_that_is_there_counts() -> None:
    place = "header:webhook-id || header:svix-id"
    empty = _read({}, Headers.of([("webhook-id", ""), ("svix-id", "second")]), id=place)
    assert isinstance(empty, EventFacts)
    assert empty.id == "second"
    for names in (["svix-id"], ["Webhook-Id", "svix-id"], ["svix-id", "webhook-id"]):
        headers = Headers.of([(name, name.lower()) for name in names])
        found = _read({}, headers, id=place)
        assert isinstance(found, EventFacts)
        assert found.id == ("webhook-id" if "webhook-id" in found.id else "svix-id")
        assert (found.id == "webhook-id") == (len(names) > 1)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({}, "event_id_missing"),
        ({"id": None}, "event_id_missing"),
        ({"id": ""}, "event_id_missing"),
        ([], "event_id_missing"),
        (None, "event_id_missing"),
        ({"id": True}, "event_id_malformed"),
        ({"id": 1.5}, "event_id_malformed"),
        ({"id": {}}, "event_id_malformed"),
        ({"id": ["a"]}, "event_id_malformed"),
        ({"id": " "}, "event_id_malformed"),
        ({"id": "a\nb"}, "event_id_malformed"),
        ({"id": "a\x00"}, "event_id_malformed"),
        ({"id": "\ud800"}, "event_id_malformed"),
        ({"id": "a" * (LONGEST + 1)}, "event_id_malformed"),
    ],
    ids=lambda one: ascii(one)[:30],
)
def test_event_that_nothing_tells_from_another(document: Any, reason: str) -> None:
    found = _read(document)
    assert isinstance(found, Rejected)
    assert found.reason == reason
    assert "id" in found.why


def test_ids_as_long_as_they_may_be() -> None:
    found = _read({"id": 10**5000})
    assert isinstance(found, Rejected)
    assert found.reason is Refusal.EVENT_ID_MALFORMED
    found = _read({"id": "a" * LONGEST})
    assert isinstance(found, EventFacts)
    assert found.id == "a" * LONGEST


def test_event_is_not_lost_for_what_else_is_missing() -> None:
    found = _read({"id": "e", "at": "soon", "name": ["x"]}, type="kind", occurred_at="at", subject="name")
    assert isinstance(found, EventFacts)
    assert (found.id, found.type, found.occurred_at, found.subject) == ("e", "", None, "")
    blank = _read({"id": "e", "kind": ""}, type="kind")
    assert isinstance(blank, EventFacts)
    assert blank.problems == found.problems[:1]
    assert [one.split(":")[0] for one in found.problems] == ["type", "occurred_at", "subject"]
    assert "nothing at kind" in found.problems[0]
    assert "not an instant" in found.problems[1]
    assert "a number or a text" in found.problems[2]


def test_expression_that_the_document_makes_fail() -> None:
    found = _read({"id": "e", "a": 1}, type="join('.', a)")
    assert isinstance(found, EventFacts)
    assert "join('.', a) cannot be evaluated" in found.problems[0]
    found = _read({"a": 1}, id="join('.', a)")
    assert isinstance(found, Rejected)
    assert found.reason is Refusal.EVENT_ID_MISSING


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JMESPath"),
        ("a..b", "not JMESPath"),
        ("a[", "not JMESPath"),
        ("[" * 3000, "not JMESPath"),
        ("header:", "does not name a header"),
        ("header:a b", "does not name a header"),
        ("header:a || data.id", "does not name a header"),
        ("a && lower(b)", "no function lower"),
        ("a[?foo(@)]", "no function foo"),
    ],
    ids=lambda one: one[:12],
)
def test_place_that_cannot_be_one(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        Place.of(text)
    assert caught.value.hint


def test_fields_that_cannot_be_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"^subject: 'a\.\.b' is not"):
        FieldReader(EventFields(id="id", subject="a..b"))
    with pytest.raises(InvalidInput, match="event's id"):
        FieldReader(EventFields(type="type"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "type", "a", "b", "event", "data"]), inner)
    ),
    max_leaves=12,
)


@given(json_values, st.sampled_from(sorted(presets())))
def test_no_document_raises(document: Any, kind: str) -> None:
    preset = presets()[kind]
    found = FieldReader(preset.event).read(document, NONE)
    assert isinstance(found, EventFacts | Rejected)
    Handshakes(preset.handshakes).answer(document, NONE)


# Bodies


@pytest.mark.parametrize(
    ("body", "content_type", "document"),
    [
        (b'{"a": [1, 2.5, null]}', "application/json; charset=utf-8", {"a": [1, 2.5, None]}),
        (b'\xef\xbb\xbf{"a": "\xc3\xa9"}', "", {"a": "é"}),
        (b"a=1&b=&a=2&c=%C3%A9+x&a=3", FORM, {"a": ["1", "2", "3"], "b": "", "c": "é x"}),
        (b"payload=%7B%22a%22%3A+1%7D", f"{FORM}; charset=utf-8".upper(), {"a": 1}),
        (b"payload=text", FORM, {"payload": "text"}),
        (b"", FORM, {}),
    ],
)
def test_body_as_data(body: bytes, content_type: str, document: Any) -> None:
    assert document_of(body, content_type) == document


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", ""),
        (b"{", ""),
        (b"\xff\xfe", ""),
        (b'{"a": NaN}', ""),
        (b'{"a": -Infinity}', ""),
        (b'{"a": 1e999}', ""),
        (b"[" * 100_000, ""),
        (b"9" * 5_000, ""),
        (b"a=%ff", FORM),
        (b"a=\xff", FORM),
        (b"&".join(b"a=1" for _ in range(1001)), FORM),
        (b"payload={", FORM),
    ],
    ids=lambda one: ascii(one)[:20],
)
def test_body_that_is_no_data(body: bytes, content_type: str) -> None:
    with pytest.raises(InvalidInput):
        document_of(body, content_type)


@given(st.binary(max_size=60), st.sampled_from(["", FORM]))
def test_body_of_any_bytes(body: bytes, content_type: str) -> None:
    try:
        found = document_of(body, content_type)
    except InvalidInput:
        return
    json.dumps(found, allow_nan=False)


# Providers


SLACK = {
    "type": "event_callback",
    "event_id": "Ev1",
    "event_time": 1772438400,
    "team_id": "T1",
    "event": {"type": "message", "channel": "C1"},
}
AT = datetime(2026, 3, 2, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "document", "headers", "expected"),
    [
        (
            "stripe",
            {"id": "evt_1", "type": "charge.failed", "created": 1772438400, "data": {"object": {"id": "ch_1"}}},
            {},
            EventFacts("evt_1", "charge.failed", AT, "ch_1"),
        ),
        (
            "github",
            {"action": "opened", "repository": {"full_name": "a/b"}},
            {"X-GitHub-Delivery": "72d3162e", "X-GitHub-Event": "issues"},
            EventFacts("72d3162e", "issues", None, "a/b"),
        ),
        (
            "shopify",
            {"id": 82098, "admin_graphql_api_id": "gid://shopify/Order/82098"},
            {
                "X-Shopify-Event-Id": "98880550",
                "X-Shopify-Topic": "orders/create",
                "X-Shopify-Triggered-At": "2026-03-02T08:00:00.0Z",
            },
            EventFacts("98880550", "orders/create", AT, "gid://shopify/Order/82098"),
        ),
        ("slack", SLACK, {}, EventFacts("Ev1", "message", AT, "C1")),
        (
            "square",
            {"event_id": "ac3", "type": "payment.updated", "created_at": "2026-03-02T08:00:00Z", "data": {"id": "p1"}},
            {},
            EventFacts("ac3", "payment.updated", AT, "p1"),
        ),
        (
            "twilio",
            {"MessageSid": "SM1", "SmsSid": "SM1", "MessageStatus": "delivered"},
            {},
            EventFacts("SM1:delivered", "message.delivered", None, "SM1"),
        ),
        (
            "twilio",
            {"MessageSid": "SM1", "Body": "hi"},
            {},
            EventFacts("SM1:received", "message.received", None, "SM1"),
        ),
        ("twilio", {"CallSid": "CA1", "CallStatus": "busy"}, {}, EventFacts("CA1:busy", "call.busy", None, "CA1")),
        (
            "gitlab",
            {"object_kind": "push", "project": {"path_with_namespace": "g/p"}},
            {"Idempotency-Key": "908a"},
            EventFacts("908a", "push", None, "g/p"),
        ),
        (
            "standard",
            {"type": "user.created", "timestamp": "2026-03-02T08:00:00Z"},
            {"svix-id": "msg_1"},
            EventFacts("msg_1", "user.created", AT),
        ),
        (
            "adyen",
            {
                "notificationItems": [
                    {
                        "NotificationRequestItem": {
                            "eventCode": "AUTHORISATION",
                            "pspReference": "8835",
                            "eventDate": "2026-03-02T09:00:00+01:00",
                            "merchantReference": "o-1",
                        }
                    }
                ]
            },
            {},
            EventFacts("AUTHORISATION:8835", "AUTHORISATION", AT, "o-1"),
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_fields_of_a_provider(kind: str, document: Any, headers: dict[str, str], expected: EventFacts) -> None:
    assert FieldReader(presets()[kind].event).read(document, Headers.of(headers.items())) == expected


def test_twilio_request_without_a_sid_has_no_id() -> None:
    found = FieldReader(presets()["twilio"].event).read({"From": "+1"}, NONE)
    assert isinstance(found, Rejected)
    assert found.reason is Refusal.EVENT_ID_MISSING


def test_handshakes() -> None:
    slack = Handshakes(presets()["slack"].handshakes)
    asked = {"type": "url_verification", "challenge": "3eZb"}
    assert slack.answer(asked, NONE) == Answer(200, "3eZb", "text/plain; charset=utf-8")
    assert slack.answer(SLACK, NONE) is None
    for challenge in (None, 7, ["x"], "x" * 5000):
        assert slack.answer({**asked, "challenge": challenge}, NONE) is None
    github = Handshakes(presets()["github"].handshakes)
    ping = Headers.of([("x-github-event", "ping")])
    assert github.answer({"zen": "…"}, ping) == Answer(200, "", "text/plain; charset=utf-8")
    assert github.answer({"zen": "…"}, Headers.of([("x-github-event", "push")])) is None


_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
_DOCUMENTS = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner), max_leaves=12
)


@given(_DOCUMENTS, st.sampled_from(["a", "b", "a.b", "a.b.c", "b.a"]))
def test_a_path_of_names_is_walked_as_jmespath_walks_it(document: Any, text: str) -> None:
    place = Place.of(text)
    assert place.path
    assert place.find(document, NONE) == place.compiled.search(document)
