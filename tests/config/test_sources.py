"""sources: presets, what stands beside them, and everything that is refused."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from scheduler.config.check import check
from scheduler.config.diff import describe, diff
from scheduler.config.load import load as load_source
from scheduler.config.show import show
from scheduler.config.sources import Stored
from scheduler.core.preset import Answer, EventFields
from scheduler.core.secret import Secret
from scheduler.core.source import MAX_BODY, FetchCurrent, Source
from scheduler.signatures.registry import build, discover, presets
from tests.config.test_check import NOW
from tests.config.texts import load, problems

SECRET = "secrets: {env: S}"
HMAC = f"signature: {{scheme: hmac, header: X-Sig}}, event: {{id: id}}, {SECRET}"


def source(keys: str, **environ: str) -> Source:
    """The source `a` with these keys, in flow style."""
    return load(f"sources: {{a: {{{keys}}}}}\njobs: {{}}", **environ).sources["a"]


def test_a_preset_gives_all_defaults() -> None:
    made = source(f"preset: stripe, {SECRET}")
    known = presets()["stripe"]
    assert (made.name, made.preset, made.scheme, made.options) == ("a", "stripe", "stripe", {})
    assert (made.event, made.tolerance, made.keep) == (known.event, known.tolerance, known.keep)
    assert (made.answer, made.handshakes) == (known.answer, known.handshakes)
    assert (made.secrets, made.url, made.max_body) == ((Secret(env="S"),), "", MAX_BODY)
    assert (made.paused, made.rate, made.burst, made.fetch_current) == (False, None, 1, None)


@pytest.mark.parametrize("preset", presets())
def test_every_preset_can_be_used(preset: str) -> None:
    url = ", url: https://x.example/hook" if discover()[preset]().needs_url else ""
    made = source(f"preset: {preset}, {SECRET}{url}")
    assert build(made.scheme, {name: str(value) for name, value in made.options.items()}).kind == preset
    assert made.handshakes == presets()[preset].handshakes


def test_what_stands_beside_a_preset_wins() -> None:
    made = source(
        f"preset: slack, {SECRET}, tolerance: 1m, keep: 60d, event: {{subject: team_id}}, "
        "response: {status: 200, body: ok}, max_body: 2MiB, paused: true"
    )
    known = presets()["slack"]
    assert (made.tolerance, made.keep) == (timedelta(minutes=1), timedelta(days=60))
    assert made.event == EventFields(known.event.id, known.event.type, known.event.occurred_at, "team_id")
    assert made.answer == Answer(200, "ok", known.answer.content_type)
    assert (made.max_body, made.paused) == (2 << 20, True)


def test_a_preset_with_another_scheme() -> None:
    """GitLab has hooks of both kinds."""
    made = source(f"preset: gitlab, signature: {{scheme: standard}}, {SECRET}")
    assert (made.preset, made.scheme, made.event) == ("gitlab", "standard", presets()["gitlab"].event)


@pytest.mark.parametrize("kind", presets())
def test_the_scheme_of_a_provider_is_its_preset(kind: str) -> None:
    url = ", url: https://x.example/hook" if discover()[kind]().needs_url else ""
    alone = source(f"signature: {{scheme: {kind}}}, {SECRET}{url}")
    assert alone == source(f"preset: {kind}, {SECRET}{url}")


def test_a_sender_without_a_preset() -> None:
    made = source(
        "signature: {scheme: hmac, header: X-Signature, prefix: 'sha256=', secrets: [{env: A}, {file: /b}]}, "
        "event: {id: 'header:X-Id || header:X-Old', type: event, occurred_at: data.at, subject: order_no}"
    )
    assert (made.scheme, made.options) == ("hmac", {"header": "X-Signature", "prefix": "sha256="})
    assert made.secrets == (Secret(env="A"), Secret(file="/b"))
    assert made.event.id == "header:X-Id || header:X-Old"
    assert (made.preset, made.tolerance, made.keep) == (None, timedelta(minutes=5), timedelta(days=45))
    assert made.answer == Answer()


def test_unsigned_only_where_it_is_spelled_out() -> None:
    made = source("signature: {scheme: none}, trust: network, event: {id: id}")
    assert (made.scheme, made.options, made.secrets) == ("none", {"trust": "network"}, ())


@pytest.mark.parametrize(
    ("written", "rate", "burst"),
    [("rate: 600/m", 10.0, 10), ("rate: 1/m", 1 / 60, 1), ("rate: 5/s, burst: 50", 5.0, 50)],
)
def test_a_rate(written: str, rate: float, burst: int) -> None:
    made = source(f"{HMAC}, {written}")
    assert (made.rate, made.burst) == (pytest.approx(rate), burst)


def test_variables_are_replaced_in_its_urls() -> None:
    made = source(
        f"preset: square, {SECRET}, url: 'https://${{HOST}}/hook', "
        "fetch_current: {url: 'https://${HOST}/orders/{{ event.subject }}', "
        "headers: {Accept: text/plain, Authorization: {env: T, prefix: 'Bearer '}}}",
        HOST="h.example",
    )
    assert made.url == "https://h.example/hook"
    headers = {"Accept": "text/plain", "Authorization": Secret(env="T", prefix="Bearer ")}
    assert made.fetch_current == FetchCurrent("https://h.example/orders/{{ event.subject }}", headers)


SOURCES = [
    f"preset: stripe, {SECRET}",
    f"{HMAC}, rate: 600/m, paused: true, max_body: 10KiB",
    f"preset: square, {SECRET}, url: https://x.example/hook, event: {{subject: order_id}}",
    "signature: {scheme: none}, trust: network, event: {id: id}, keep: 3d, response: {body: '', content_type: text/x}",
    f"{HMAC}, fetch_current: {{url: 'https://x/{{{{ data.id }}}}', headers: {{A: {{file: /f}}}}}}, rate: 1/d",
]


@pytest.mark.parametrize("keys", SOURCES)
def test_a_definition_is_a_source_that_could_be_written(keys: str) -> None:
    made = source(keys)
    assert load(json.dumps({"sources": {"a": made.definition}, "jobs": {}})).sources["a"] == made


@pytest.mark.parametrize(
    ("one_way", "other_way"),
    [
        (f"preset: stripe, {SECRET}", "preset: stripe, signature: {scheme: stripe, secrets: [{env: S}]}, keep: 45d"),
        (f"{HMAC}, rate: 60/m", f"{HMAC}, rate: 1/s, burst: 1"),
    ],
)
def test_what_means_the_same_has_one_fingerprint(one_way: str, other_way: str) -> None:
    assert source(one_way).fingerprint == source(other_way).fingerprint


@pytest.mark.parametrize("more", ["keep: 46d", "paused: true", "tolerance: 6m", "event: {subject: id}"])
def test_what_means_something_else_has_another(more: str) -> None:
    assert source(f"preset: stripe, {SECRET}").fingerprint != source(f"preset: stripe, {SECRET}, {more}").fingerprint


BROKEN = [
    ("{}", 4, "nothing says how its requests are signed", "write preset: adyen, github"),
    (f"{{{SECRET}}}", 4, "nothing says how", "or signature: {scheme: hmac"),
    ("5", 4, "`5` is not a mapping", "write keys below it"),
    (f"{{preset: strip, {SECRET}}}", 4, "there is no preset `strip`", "did you mean `stripe`?"),
    (f"{{preset: stripe, {SECRET}, paussed: true}}", 4, "unknown key `paussed`", "did you mean `paused`?"),
    ("{preset: stripe}", 4, "stripe needs the secret", "write secrets: [{env: NAME}]"),
    ("{preset: stripe, secrets: whsec_x}", 4, "`whsec_x` is not a list", "write one item per line"),
    ("{preset: stripe, secrets: [whsec_x]}", 4, "a secret is never written into this file", "write {env: NAME}"),
    ("{preset: stripe, secrets: []}", 4, "the list of secrets is empty", "write the one that signs"),
    (f"{{preset: stripe, {SECRET}, signature: {{secrets: {{env: T}}}}}}", 4, "are given twice", "keep one"),
    (f"{{preset: square, {SECRET}}}", 4, "square signs the address", "url: https://your.host/webhooks/a"),
    (f"{{signature: {{scheme: hmak}}, {SECRET}}}", 4, "no signature scheme `hmak`", "did you mean `hmac`?"),
    (f"{{signature: {{scheme: hmac}}, event: {{id: id}}, {SECRET}}}", 4, "hmac needs the option header", "header: …"),
    (
        f"{{signature: {{scheme: hmac, headr: X}}, event: {{id: id}}, {SECRET}}}",
        4,
        "unknown key `headr`",
        "did you mean `header`?",
    ),
    (
        f"{{signature: {{scheme: hmac, header: [X]}}, event: {{id: id}}, {SECRET}}}",
        4,
        "a list is not a text",
        "write a text",
    ),
    (f"{{signature: {{scheme: hmac, header: X, encoding: b}}, event: {{id: id}}, {SECRET}}}", 4, "encoding", "hex"),
    (f"{{preset: stripe, signature: {{header: X}}, {SECRET}}}", 4, "unknown key `header`", "known are scheme, secrets"),
    ("{signature: {scheme: none}, event: {id: id}}", 4, "needs the option trust", "write trust"),
    ("{signature: {scheme: none, trust: network}, event: {id: id}}", 4, "unknown key `trust`", "known are"),
    (f"{{signature: {{scheme: none}}, trust: network, event: {{id: id}}, {SECRET}}}", 4, "uses no secret", "remove it"),
    (f"{{preset: stripe, trust: network, {SECRET}}}", 4, "for senders that sign nothing", "scheme: none"),
    (f"{{preset: stripe, trust: me, {SECRET}}}", 4, "`me` is not one of", "network"),
    (f"{{signature: {{scheme: hmac, header: X}}, {SECRET}}}", 4, "where the event's id lies", "write event: {id: …}"),
    (f"{{preset: stripe, {SECRET}, event: {{id: 'a['}}}}", 4, "is not JMESPath", "data.object.id"),
    (f"{{preset: stripe, {SECRET}, event: {{id: 'header:'}}}}", 4, "does not name a header", "header:X-Event-Id"),
    (f"{{preset: stripe, {SECRET}, event: {{idd: id}}}}", 4, "unknown key `idd`", "did you mean `id`?"),
    (f"{{preset: stripe, {SECRET}, tolerance: 5}}", 4, "`5` has no unit", "5m"),
    (f"{{preset: stripe, {SECRET}, keep: 2d}}", 4, "3d (Stripe sends again)", "write keep: 3d or more"),
    (f"{{preset: stripe, {SECRET}, keep: 5d, tolerance: 6d}}", 4, "the tolerance of 6d", "write keep: 6d"),
    (f"{{preset: stripe, {SECRET}, max_body: 1GiB}}", 4, "out of range", "from 1KiB to 64MiB"),
    (f"{{preset: stripe, {SECRET}, response: {{status: 404}}}}", 4, "404 is out of range", "from 200 to 299"),
    (f"{{preset: stripe, {SECRET}, response: {{content_type: html}}}}", 4, "not a content type", "text/plain"),
    (f"{{preset: stripe, {SECRET}, rate: 10}}", 4, "`10` is not a rate", "120/m"),
    (f"{{preset: stripe, {SECRET}, rate: 0/s}}", 4, "lets nothing through", "pause it"),
    (f"{{preset: stripe, {SECRET}, burst: 0}}", 4, "out of range", "from 1"),
    (f"{{preset: stripe, {SECRET}, url: x.example}}", 4, "is not a URL", "http:// or https://"),
    (f"{{preset: stripe, {SECRET}, fetch_current: {{}}}}", 4, "`url` is missing", "add url"),
    (f"{{preset: stripe, {SECRET}, fetch_current: {{url: 'x/{{{{ a }}}}'}}}}", 4, "is not a URL", "in full"),
    (f"{{preset: stripe, {SECRET}, fetch_current: {{url: 'https://x/{{{{ a'}}}}", 4, "of the template", "correct it"),
    (
        f"{{preset: stripe, {SECRET}, fetch_current: {{url: 'https://x', headers: {{Host: y}}}}}}",
        4,
        "is set by the scheduler",
        "remove it",
    ),
]


@pytest.mark.parametrize(("keys", "line", "reason", "hint"), BROKEN)
def test_is_refused_with_line_reason_and_remedy(keys: str, line: int, reason: str, hint: str) -> None:
    (found,) = problems(f"jobs: {{}}\nx-y: 1\nsources:\n  a: {keys}\n")
    assert found.line == line
    assert found.path[:2] == ("sources", "a")
    assert reason in found.reason
    assert hint in (found.hint or "")


def test_a_bad_name_and_one_that_is_given_twice() -> None:
    (found,) = problems(f"sources: {{'a/b': {{preset: stripe, {SECRET}}}}}\njobs: {{}}")
    assert "is not a good name" in found.reason
    (found,) = problems(f"sources:\n  a: {{preset: stripe, {SECRET}}}\n  a: {{preset: github, {SECRET}}}\njobs: {{}}\n")
    assert "given twice" in found.reason


def test_several_mistakes_are_told_at_once() -> None:
    found = problems("sources: {a: {preset: x, keep: 5}, b: {keep: z, rate: y}, c: {}}\njobs: {d: {on_event: a}}")
    assert [one.path for one in found] == [
        ("sources", "a", "preset"),
        ("sources", "a", "keep"),
        ("sources", "b"),
        ("sources", "b", "keep"),
        ("sources", "b", "rate"),
        ("sources", "c"),
        ("jobs", "d"),
    ]


ALL_AT_ONCE = [
    (
        "{signature: {scheme: hmac, header: X, template: '{foo}', algorithm: rot13, timestamp: x}, keep: no}",
        [
            "algorithm cannot be that",
            "template has {foo}",
            "template lacks {body}",
            "timestamp is not in the template",
            "timestamp is not understood",
            "where the event's id lies",
            "'no' is not understood",
        ],
    ),
    ("{preset: twilio, tolerance: 5}", ["needs the secret", "signs the address", "`5` has no unit"]),
    ("{preset: github, trust: network, max_body: x}", ["needs the secret", "that sign nothing", "`x` is not a size"]),
    ("{preset: github, signature: {x: 1}}", ["needs the secret", "unknown key `x`"]),
    (f"{{signature: {{scheme: hmac, hedaer: X}}, {SECRET}}}", ["unknown key `hedaer`", "where the event's id lies"]),
    ("{preset: stripe, signature: {secrets: []}, url: x}", ["secrets is empty", "`x` is not a URL"]),
    ("{signature: {scheme: none}, trust: me, event: {id: id}}", ["`me` is not one of"]),
    (f"{{preset: twilio, {SECRET}, url: x}}", ["`x` is not a URL"]),
    (f"{{preset: [stripe], {SECRET}}}", ["a list is not a text"]),
    ("{preset: stripe, secrets: []}", ["secrets is empty"]),
    (f"{{signature: {{scheme: hmac, header: X}}, event: [id], {SECRET}}}", ["a list is not a mapping"]),
]


@pytest.mark.parametrize(("keys", "reasons"), ALL_AT_ONCE)
def test_what_is_wrong_with_one_source_is_told_at_once(keys: str, reasons: list[str]) -> None:
    found = [one.reason for one in problems(f"jobs: {{}}\nsources:\n  a: {keys}\n")]
    for reason in reasons:
        assert sum(reason in one for one in found) == 1, (reason, found)
    assert len(found) == len(reasons)


TEXT = f"""\
x-base: &base
  keep: 50d
sources:
  pay:
    <<: *base
    preset: stripe
    {SECRET}
    event:
      subject: data.order
  own: {{{HMAC}}}
jobs:
  pay: {{command: x}}
"""


def shown(name: str | None) -> dict[tuple[str, str], tuple[object, str]]:
    loaded = load_source(Stored({"jobs.yaml": TEXT}, "jobs.yaml"))
    return {(one.job, one.key): (one.value, one.where) for one in show(loaded, name)}


def test_show_names_the_line_or_the_preset_of_each_value() -> None:
    found = shown("source pay")
    assert {job for job, _ in found} == {"source pay"}
    assert found["source pay", "keep"] == ("50d", "jobs.yaml:2")
    assert found["source pay", "preset"] == ("stripe", "jobs.yaml:6")
    assert found["source pay", "secrets"] == ([{"env": "S"}], "jobs.yaml:7")
    assert found["source pay", "event.subject"] == ("data.order", "jobs.yaml:9")
    assert found["source pay", "event.id"] == ("id", "(preset stripe)")
    assert found["source pay", "signature.scheme"] == ("stripe", "(preset stripe)")
    assert found["source pay", "max_body"] == ("1MiB", "(default)")
    assert shown("own")["source own", "tolerance"] == ("5m", "(default)")


def test_show_prefers_a_job_and_has_sources_first_among_all() -> None:
    assert {job for job, _ in shown("pay")} == {"pay"}
    assert list(dict.fromkeys(job for job, _ in shown(None))) == ["source pay", "source own", "pay"]
    with pytest.raises(KeyError):
        shown("source nothing")


def test_diff_of_sources() -> None:
    old = load(f"sources: {{a: {{preset: stripe, {SECRET}}}, b: {{{HMAC}}}}}\njobs: {{}}")
    new = load(f"sources: {{a: {{preset: stripe, {SECRET}, keep: 50d}}, c: {{{HMAC}}}}}\njobs: {{}}")
    found = diff(old, new)
    assert bool(found)
    assert not diff(old, old)
    assert [str(change) for change in found.sources["a"]] == ["keep: 45d → 50d"]
    assert describe(old, new) == {"source a": ("keep: 45d → 50d",), "source b": ("removed",), "source c": ("added",)}
    assert describe(None, old) == {"source a": ("added",), "source b": ("added",)}


def test_a_missing_secret_makes_its_source_red_and_never_the_file() -> None:
    text = (
        "sources:\n"
        "  a: {preset: stripe, secrets: [{env: HERE}, {env: GONE}]}\n"
        "  b: {preset: github, signature: {secrets: {file: /no/such/file}}}\n"
        f"  c: {{{HMAC}, fetch_current: {{url: 'http://x', headers: {{A: {{env: GONE}}}}}}}}\n"
        "  d: {preset: github, secrets: {file: relative}}\n"
        "jobs: {}\n"
    )
    report = check(Stored({"f": text}, "f"), NOW, environ={"HERE": "x", "S": "y"})
    assert report.good()
    assert not report.good(strict=True)
    found = [(one.line, one.path[1:], one.reason) for one in report.warnings]
    assert [path for _, path, _ in found] == [
        ("a", "secrets", 1),
        ("b", "signature", "secrets", 0),
        ("c", "fetch_current", "headers", "A"),
        ("d", "secrets", 0),
    ]
    assert [line for line, *_ in found] == [2, 3, 4, 5]
    assert "the variable `GONE` is not defined" in found[0][2]
    assert "/no/such/file cannot be read" in found[1][2]
    assert "relative to the folder" in found[3][2]
    assert "acknowledge" not in str(report.warnings[0])
    (relative,) = check(Stored({"f": text}, "f"), NOW, environ={}, elsewhere=True).warnings
    assert relative.path == ("sources", "d", "secrets", 0)
