"""The hostile provider is as hostile as it says, and no more."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from scheduler.core.document import document_of
from scheduler.core.event_fields import EventFacts, FieldReader
from scheduler.core.preset import EventFields
from scheduler.core.signature import Accepted, Headers, Incoming, LiveSecret
from scheduler.signatures import registry
from scheduler.testing.dialects import DIALECTS, SECRET
from scheduler.testing.faults import CALM, HOSTILE, Faults, Luck
from scheduler.testing.provider import KEY, LISTS, Provider, main
from scheduler.testing.sender import plan
from tests.compensators.worlds import PLAIN, SHOPIFY
from tests.executors.server import Answers, Server, reply

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FIELDS = {"plain": PLAIN, "shopify": SHOPIFY}


def get(provider: Provider, path: str, **query: object) -> httpx.Response:
    asked = {name: str(value) for name, value in query.items()}
    headers = {"Authorization": f"Bearer {KEY}", "Connection": "close"}
    return httpx.get(f"{provider.url}{path}", params=asked, headers=headers, trust_env=False)


def made(faults: Faults = CALM, count: int = 1000) -> Provider:
    provider = Provider(faults, clock=lambda: NOON)
    provider.facts.spread(count, NOON - timedelta(hours=7), NOON - timedelta(hours=1))
    return provider


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_webhooks_are_signed_as_their_scheme_wants_and_carry_the_id(dialect: str) -> None:
    with Provider(dialect=dialect, clock=lambda: NOON) as provider:
        fact = provider.facts.add(NOON)
    form = DIALECTS[dialect]
    signed = form.signed(fact, secret=SECRET, now=NOON, url="https://here.example/")
    headers = Headers.of(signed.headers.items())
    scheme = registry.build(form.scheme, form.options)
    secret = LiveSecret("s", SECRET)
    verdict = scheme.verify(Incoming(headers, signed.body), [secret], tolerance=timedelta(minutes=5), now=NOON)
    assert isinstance(verdict, Accepted)
    fields = EventFields(**FIELDS[dialect]) if dialect in FIELDS else registry.presets()[dialect].event
    facts = FieldReader(fields).read(document_of(signed.body), headers)
    assert isinstance(facts, EventFacts)
    assert facts.id == (f"gid://shopify/Order/0@{form.body(fact)['updated_at']}" if dialect == "shopify" else fact.id)


def test_what_is_sent_is_what_the_faults_say() -> None:
    faults = Faults(drop=0.3, duplicate=0.1, delay=0.05, reorder=0.1)
    with made(faults) as provider:
        facts = provider.facts.all()
        sent = plan(facts, faults, provider.luck)
        assert sent == plan(facts, faults, Luck(1)), "the same seed, the same misfortune"
        assert sent != plan(facts, faults, Luck(2))
    times = Counter(one.fact.id for one in sent)
    assert 250 < len(facts) - len(times) < 350
    assert 40 < sum(count == 2 for count in times.values()) < 110
    late = [one for one in sent if one.due - one.fact.at > timedelta(minutes=15)]
    assert 15 < len({one.fact.id for one in late}) < 80
    assert [one.due for one in sent] == sorted(one.due for one in sent)
    assert [one.fact for one in sent] != sorted(one.fact for one in sent)


def test_calm_sends_everything_once_and_in_order() -> None:
    with made() as provider:
        facts = provider.facts.all()
        assert [one.fact for one in plan(facts, CALM, provider.luck)] == facts
        shared = Counter(one.at for one in facts)
        assert max(shared.values()) > 2, "some share a second"


def test_what_is_sent_arrives(server: Server) -> None:
    with made(Faults(drop=0.5), count=20) as provider:
        sender = provider.send_all(f"{server.url}/webhooks/x")
        assert sender.statuses == {200: len(sender.accepted)}
        server.answers["/webhooks/x"] = Answers(500)
        assert provider.send_all(f"{server.url}/webhooks/x").accepted == set()


def test_events_happen_while_it_lives(server: Server) -> None:
    enough = threading.Event()

    def accept(handler: Any) -> None:
        enough.set()
        reply(handler, Answers(headers={"Connection": "close"}))

    server.handlers["/"] = accept
    with Provider() as provider:
        sender = provider.live(f"{server.url}/", rate=50.0, until=enough.is_set)
        assert sender.accepted
        assert sender.accepted <= {one.id for one in provider.facts.all()}


def test_its_clock_and_how_far_it_reaches_back() -> None:
    with made(Faults(clock=timedelta(hours=-1), keeps=timedelta(hours=2))) as provider:
        answer = get(provider, "/events", limit=250)
        assert answer.headers["date"] == "Sun, 01 Mar 2026 11:00:00 GMT"
        listed = [datetime.fromisoformat(one["occurred_at"]) for one in answer.json()["data"]]
        assert min(listed) >= NOON - timedelta(hours=3)


def test_its_list_lags_behind() -> None:
    faults = Faults(lag=timedelta(minutes=10))
    provider = Provider(faults, clock=lambda: NOON)
    with provider:
        provider.facts.spread(100, NOON - timedelta(minutes=10), NOON)
        listed = len(get(provider, "/events", limit=250).json()["data"])
    assert 20 < listed < 80


@pytest.mark.parametrize(
    ("faults", "status"), [(Faults(throttle=1.0, retry_after="7"), 429), (Faults(expire=1.0), 400)]
)
def test_limits_and_cursors(faults: Faults, status: int) -> None:
    with made(faults) as provider:
        answer = get(provider, "/events", cursor="x")
        assert answer.status_code == status
        assert answer.headers.get("retry-after") == ("7" if status == 429 else None)


def test_outages_come_as_answers_and_as_silence() -> None:
    with made(Faults(outage=1.0)) as provider:
        assert get(provider, "/events").status_code == 503
        with pytest.raises(httpx.RemoteProtocolError):
            get(provider, "/events")


def test_keys_are_asked_for_and_other_addresses_are_none() -> None:
    with made() as provider:
        assert httpx.get(f"{provider.url}/events", trust_env=False).status_code == 401
        assert get(provider, "/nowhere").status_code == 404
        assert get(provider, "/objects/5").json()["event_id"] == "evt_00000005"
        assert get(provider, "/objects/5000").status_code == 404


def test_changes_by_token_until_there_are_none_and_then_from_there() -> None:
    with made(count=5) as provider:
        provider.lists.most = 3
        first = get(provider, "/delta", limit=3).json()
        second = _follow(provider, first["nextLink"])
        assert [len(first["value"]), len(second["value"])] == [3, 2]
        provider.facts.add(NOON)
        assert len(_follow(provider, second["deltaLink"])["value"]) == 1
        provider.lists.forget_cursors()
        link = httpx.URL(second["deltaLink"])
        assert get(provider, link.path, **dict(link.params)).status_code == 410


def _follow(provider: Provider, link: str) -> dict[str, Any]:
    url = httpx.URL(link)
    found: dict[str, Any] = get(provider, url.path, **dict(url.params)).json()
    return found


def test_as_a_program(server: Server) -> None:
    command = [sys.executable, "-m", "scheduler.testing.provider", "--webhook", f"{server.url}/hook", "--rate", "100"]
    former = signal.signal(signal.SIGINT, signal.SIG_DFL)  # Shells have background jobs ignore it.
    program = subprocess.Popen([*command, "--for", "500ms", "--drop", "0"], stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, former)
    assert program.stdout is not None
    try:
        begun, told = program.stdout.readline(), program.stdout.readline()
        assert re.match(r"lists at http://127\.0\.0\.1:\d+/events, webhooks to http", begun)
        found = re.match(r"(\d+) events; webhooks for (\d+) were accepted; answers: .* × 200", told)
        assert found is not None
        assert int(found[1]) >= int(found[2]) > 0
    finally:
        os.kill(program.pid, signal.SIGINT)
        program.wait(30)
        program.stdout.close()
    assert program.returncode == 0


def test_hostile_is_bearable() -> None:
    assert HOSTILE.drop < 0.5
    assert HOSTILE.throttle + HOSTILE.outage < 0.2


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--delay-by=0:00:10", "duration '0:00:10' is not understood; write a number and a unit"),
        ("--for=5", "duration '5' has no unit; write 5s or 5m"),
        ("--keeps=-1d", "is not understood"),
        ("--drop=30", "'30' is not a share; write a number between 0 and 1"),
        ("--drop=nan", "is not a share"),
        ("--throttle=x", "is not a share"),
        ("--rate=0", "'0' is not a rate"),
    ],
)
def test_what_cannot_be_is_refused_with_a_word(option: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--webhook", "http://127.0.0.1:1/", option])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_the_help_says_what_each_fault_is_and_in_which_unit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--delay-by DURATION How late at most. (3h)" in text
    assert "--drop SHARE Of the events, whose webhook is never sent. (0.3)" in text
    assert "A SHARE is between 0 and 1" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_form_has_a_list_where_it_says(dialect: str) -> None:
    with made(count=3) as provider:
        assert get(provider, LISTS[dialect]).status_code == 200
