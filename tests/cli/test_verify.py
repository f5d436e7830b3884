"""`schedctl verify`: a request as its receiver would judge it, without a daemon."""

from __future__ import annotations

import hmac
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduler.core.signature import LiveSecret
from scheduler.signatures.registry import build
from tests.cli.typed import NOW, Typist
from tests.signatures.test_vectors import REASONS, VECTORS

SOURCES = """
sources:
  stripe: {preset: stripe, secrets: [{env: OLD}, {env: NEW}]}
  own:
    signature: {scheme: hmac, header: X-Signature, secrets: {file: secret}}
    event: {id: "header:X-Id", type: kind}
  square: {preset: square, secrets: {env: NEW}, url: "https://shop.example/hook"}
  open: {signature: {scheme: none}, trust: network, event: {id: id}}
  twilio: {preset: twilio, secrets: {env: NEW}, url: "https://shop.example/sms"}
  slack: {preset: slack, secrets: {env: NEW}}
jobs: {}
"""
BODY = b'{"id": "evt_1", "type": "invoice.paid", "created": 1772438390, "data": {"object": {"id": "in_7"}}}'
SECRETS = {"OLD": "whsec_old", "NEW": "whsec_new"}


@pytest.fixture
def schedctl(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typist:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    Path("jobs.yaml").write_text(SOURCES)
    Path("body").write_bytes(BODY)
    Path("secret").write_text("s\n")
    return Typist(capsys, SECRETS)


def code(secret: str, text: bytes) -> str:
    return hmac.new(secret.encode(), text, "sha256").hexdigest()


def stripe(body: bytes = BODY, secret: str = "whsec_new", *, age: int = 3) -> str:
    stamp = int((NOW - timedelta(seconds=age)).timestamp())
    return f"Stripe-Signature: t={stamp},v1={code(secret, f'{stamp}.'.encode() + body)}"


def test_a_request_that_is_taken(schedctl: Typist) -> None:
    answer = schedctl("verify", "stripe", "--header", stripe(), "--body", "@body")
    assert answer.code == 0
    assert answer.out.startswith("✓ valid, signed with NEW\n")
    assert "  id         evt_1\n  type       invoice.paid\n  subject    in_7\n  happened   " in answer.out
    assert "{timestamp}.{body}: 109 bytes" in answer.out
    assert answer.err == ""


def test_for_machines(schedctl: Typist) -> None:
    found = schedctl("verify", "stripe", "--header", stripe(), "--body", "@body", "-o", "json")
    assert found.code == 0
    assert (found.data["valid"], found.data["taken"], found.data["refused"]) == (True, True, None)
    assert (found.data["reason"], found.data["secret"], found.data["difference_s"]) == (None, "NEW", 3.0)
    assert found.data["event"]["occurred_at"] == "2026-03-02T07:59:50Z"
    found = schedctl("verify", "stripe", "--header", stripe(secret="x"), "--body", "@body", "-o", "json")
    assert (found.code, found.data["valid"], found.data["reason"]) == (1, False, "signature_mismatch")
    assert (found.data["event"], found.data["taken"]) == (None, False)
    assert schedctl("verify", "stripe", "--body", "@body", "-o", "name").out == "signature_missing\n"


def test_published_signatures(schedctl: Typist) -> None:
    """By the whole way: a file, its source, headers and body as typed."""
    names = {"standard-webhooks": "standard", "standard-webhooks-ed25519": "standard", "adyen-standard": "adyen"}
    tried = 0
    for name, vector in VECTORS.items():
        if "body" not in vector:
            continue
        kind = names.get(vector["scheme"], vector["scheme"])
        url = vector.get("url", "http://x")
        one = f"{{preset: {kind}, secrets: [{{env: V}}], url: '{url}'}}"
        Path("jobs.yaml").write_text(f"sources: {{s: {one}}}\njobs: {{}}")
        Path("body").write_bytes(vector["body"].encode())
        headers = [word for one, value in vector["headers"].items() for word in ("--header", f"{one}: {value}")]
        at = datetime.fromtimestamp(vector.get("now") or NOW.timestamp(), UTC).isoformat()
        secret = vector.get("secret") or vector["public_key"]
        answer = schedctl("verify", "s", *headers, "--body", "@body", "--at", at, "-o", "json", V=secret)
        assert (name, answer.data["valid"], answer.code) == (name, vector["valid"], 0 if vector["valid"] else 1)
        assert answer.data["reason"] == REASONS.get(name)
        tried += 1
    assert tried == 24


def test_a_body_that_was_written_anew_on_its_way(schedctl: Typist) -> None:
    compact = BODY.replace(b": ", b":").replace(b", ", b",").decode()
    answer = schedctl("verify", "stripe", "--header", stripe(), "--body", compact)
    assert answer.code == 1
    assert answer.out.startswith("✗ signature_mismatch: ")
    assert "  body       the body was changed on its way here: NEW signed it as spaced JSON" in answer.out
    assert answer.err == "next: schedctl show stripe --file jobs.yaml\n"


def test_one_that_is_too_old_tells_when_it_would_have_been_in_time(schedctl: Typist) -> None:
    header = stripe(age=3600)
    answer = schedctl("verify", "stripe", "--header", header, "--body", "@body")
    assert answer.code == 1
    assert answer.out.startswith("✗ timestamp_too_old: signed with NEW, but ")
    assert "1h before it came" in answer.out
    assert answer.err.endswith(" --body @body --at 2026-03-02T07:00:00Z\n")
    again = schedctl("verify", "stripe", "--header", header, "--body", "@body", "--at", "2026-03-02T07:00:00Z")
    assert again.code == 0


def test_without_the_secret_it_says_which(schedctl: Typist) -> None:
    Path("secret").unlink()
    answer = schedctl("verify", "own", "--header", "X-Signature: 00", "--header", "X-Id: 1", "--body", "{}")
    assert answer.code == 1
    assert answer.out.startswith("✗ secret_missing: secret secret: cannot read secret: No such file")
    one = {**SECRETS}
    del one["OLD"]
    answer = Typist(schedctl._capsys, one)("verify", "stripe", "--header", stripe(secret="x"), "--body", "@body")
    assert answer.code == 1
    assert "  unread     secret OLD: the daemon's environment has no variable OLD" in answer.out


def test_fields_from_headers_of_a_file(schedctl: Typist) -> None:
    signed = f"POST /webhooks/own HTTP/1.1\r\nX-Id: é 1\r\nX-SIGNATURE:{code('s', b'{}')}\r\n\r\n".encode()
    Path("headers").write_bytes(signed)
    found = schedctl("verify", "own", "--header", "@headers", "--body", "{}", "-o", "json")
    assert found.code == 0
    assert found.data["event"]["problems"] == ["type: there is nothing at kind"]
    assert found.data["event"]["id"].endswith(" 1")


@pytest.mark.parametrize(
    ("body", "reason"), [("{}", "event_id_missing"), ("Hello", "body_malformed")], ids=["no id", "no JSON"]
)
def test_a_signature_that_is_right_under_what_is_no_event(schedctl: Typist, body: str, reason: str) -> None:
    arguments = ("verify", "own", "--header", f"X-Signature: {code('s', body.encode())}", "--body", body)
    answer = schedctl(*arguments)
    assert answer.code == 0
    assert answer.out.startswith(f"✓ valid, signed with secret\n✗ no event that it would take: {reason}: ")
    found = schedctl(*arguments, "-o", "json").data
    assert (found["valid"], found["reason"], found["taken"]) == (True, None, False)
    assert found["refused"]["reason"] == reason
    assert found["event"] is None


def test_the_registered_address_can_be_tried(schedctl: Typist) -> None:
    from base64 import b64encode

    text = b"https://other.example/hook" + b'{"event_id": "1"}'
    mac = b64encode(hmac.new(b"whsec_new", text, "sha256").digest()).decode()
    arguments = ("verify", "square", "--header", f"x-square-hmacsha256-signature: {mac}", "--body", '{"event_id": "1"}')
    assert schedctl(*arguments).code == 1
    assert schedctl(*arguments, "--url", "https://other.example/hook").code == 0


def test_a_query_that_is_signed(schedctl: Typist) -> None:
    body = b'{"MessageSid": "SM1"}'
    url = "https://shop.example/sms"
    signed = build("twilio", {}).sign(body, LiveSecret("NEW", "whsec_new"), now=NOW, url=url)
    headers = [word for name, value in signed.headers.items() for word in ("--header", f"{name}: {value}")]
    assert schedctl("verify", "twilio", *headers, "--body", body.decode(), "--query", signed.query).code == 0
    answer = schedctl("verify", "twilio", *headers, "--body", body.decode())
    assert (answer.code, answer.out.split(":")[0]) == (1, "✗ body_unsigned")


def test_a_handshake_is_valid_and_no_event(schedctl: Typist) -> None:
    body = b'{"type": "url_verification", "challenge": "c"}'
    stamp = str(int(NOW.timestamp()))
    header = f"X-Slack-Signature: v0={code('whsec_new', b'v0:' + stamp.encode() + b':' + body)}"
    Path("body").write_bytes(body)
    answer = schedctl(
        "verify", "slack", "--header", header, "--header", f"X-Slack-Request-Timestamp: {stamp}", "--body", "@body"
    )
    assert answer.code == 0
    assert "handshake  answered, and not stored" in answer.out


def test_what_is_unsigned_is_said_to_be(schedctl: Typist) -> None:
    answer = schedctl("verify", "open", "--body", '{"id": 1}')
    assert answer.code == 0
    assert answer.out.startswith("✓ valid, unsigned: everybody who reaches it may send\n")


def test_a_body_from_stdin(schedctl: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BODY)))
    assert schedctl("verify", "stripe", "--header", stripe(), "--body", "@-").code == 0


def test_what_cannot_be_asked(schedctl: Typist) -> None:
    answer = schedctl("verify", "strip", "--body", "{}")
    assert (answer.code, answer.out) == (4, "")
    assert "jobs.yaml has no source `strip`" in answer.err
    assert "it has stripe, own, square" in answer.err
    assert schedctl("verify", "stripe").code == 2
    assert schedctl("verify", "stripe", "--body", "@nothing").code == 2
    assert "write --header 'Name: value'" in schedctl("verify", "stripe", "--header", "x", "--body", "{}").err
    assert schedctl("verify", "stripe", "--body", "{}", "--config", "nothing.yaml").code == 1
    Path("none.yaml").write_text("jobs: {}\n")
    answer = schedctl("verify", "stripe", "--body", "{}", "--config", "none.yaml")
    assert (answer.code, "schedctl init source NAME" in answer.err) == (4, True)


def test_no_secret_is_shown(schedctl: Typist) -> None:
    for arguments in (("--header", stripe()), ("--header", stripe(secret="x"))):
        for form in ("table", "json", "yaml"):
            answer = schedctl("verify", "stripe", *arguments, "--body", "@body", "-o", form)
            assert "whsec_" not in answer.out + answer.err


def test_what_is_wrong_elsewhere_in_the_file_does_not_matter(schedctl: Typist) -> None:
    wrong = """  bad: {preset: nothing, secrets: {env: X}}
jobs:
  a: {schedule: never, command: [x]}
  b: {on_event: stripe, http: {url: "https://${NOT_SET}/"}}
"""
    Path("jobs.yaml").write_text(SOURCES.replace("jobs: {}\n", wrong))
    assert schedctl("check").code == 1
    assert schedctl("verify", "stripe", "--header", stripe(), "--body", "@body").code == 0
    answer = schedctl("verify", "bad", "--body", "{}")
    assert (answer.code, "sources.bad" in answer.err, "jobs.a" in answer.err) == (1, True, False)
