"""compensate: scans of a provider's list, whatever compensators there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.config.check import check
from scheduler.config.load import load_texts
from scheduler.config.problem import ConfigError, Problem
from scheduler.config.sources import Stored
from scheduler.core.job import Configuration, Job, Overlap
from scheduler.core.secret import Secret
from scheduler.core.source import Compensate
from tests.config.test_check import NOW

PLUGIN = """
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from scheduler.core.compensator import Coverage
from scheduler.core.errors import InvalidInput


@dataclass(frozen=True)
class Own:
    kind: ClassVar[str] = "own"
    secret_options: ClassVar[tuple[str, ...]] = ("token", "headers")
    source_options: ClassVar[tuple[str, ...]] = ("id",)

    url: str
    id: str
    token: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    size: int = 10
    pace: timedelta | None = None

    def __post_init__(self):
        if self.token and not self.token.startswith("k_"):
            raise InvalidInput("token: it is no key", hint="write k_")
        if self.size > 100:
            raise InvalidInput("size: too many", hint="write at most 100")

    def pages(self, window, cursor):
        yield from ()

    def coverage(self):
        return Coverage(None)
"""
SOURCE = "{signature: {scheme: hmac, header: X}, secrets: {env: S}, event: {id: uid}}"


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "own.py").write_text(PLUGIN)
    (folder / "torn.py").write_text("import nothing_like_this\n")
    return str(folder)


class Files:
    """Texts that are loaded with the plug-ins of these tests."""

    def __init__(self, plugins: str) -> None:
        self.environ = {"SCHEDULER_PLUGINS": plugins, "HOST": "h.example"}

    def load(self, keys: str, *, source: str = SOURCE, defaults: str = "") -> Configuration:
        return load_texts({"f": self.text(keys, source, defaults)}, "f", environ=self.environ)

    def text(self, keys: str, source: str, defaults: str) -> str:
        return f"defaults: {{{defaults}}}\nsources:\n  pay: {source}\njobs:\n  a:\n    {{{keys}}}\n"

    def job(self, keys: str, *, defaults: str = "") -> Job:
        return self.load(keys, defaults=defaults).jobs["a"]

    def problems(self, keys: str, *, source: str = SOURCE) -> Sequence[Problem]:
        with pytest.raises(ConfigError) as caught:
            self.load(keys, source=source)
        return caught.value.problems


@pytest.fixture
def files(plugins: str) -> Files:
    return Files(plugins)


OWN = "compensate: {source: pay, compensator: own, with: {url: 'https://x'}}"


def test_its_defaults(files: Files) -> None:
    made = files.job(f"{OWN}, schedule: '@hourly', timezone: UTC")
    assert made.compensate == Compensate(
        "pay",
        "own",
        timedelta(minutes=5),
        timedelta(hours=1),
        timedelta(hours=24),
        timedelta(hours=1),
        {"url": "https://x"},
    )
    assert (made.action.kind, made.queue, made.overlap, made.lock) == ("compensate", "scans", Overlap.SKIP, "job:a")
    assert made.timeout == timedelta(hours=1)
    assert made.action.options == {
        "source": "pay",
        "compensator": "own",
        "settle": "5m",
        "margin": "1h",
        "first_window": "1d",
        "alarm_after": "1h",
        "with": {"url": "https://x"},
    }


def test_it_never_runs_beside_itself(files: Files) -> None:
    assert files.job(OWN).overlap is Overlap.QUEUE
    assert files.job(OWN, defaults="overlap: allow").lock == "job:a"
    made = files.job(f"{OWN}, schedule: '@hourly', timezone: UTC", defaults="overlap: allow")
    assert (made.overlap, made.lock) == (Overlap.SKIP, "job:a")


def test_its_queue(files: Files) -> None:
    assert files.job(f"{OWN}, queue: default").queue == "default"
    assert files.job(OWN, defaults="queue: default").queue == "default"


def test_its_options(files: Files) -> None:
    made = files.job(
        "compensate: {source: pay, compensator: own, settle: 0s, margin: 3h, first_window: 2d, alarm_after: 2h, "
        "with: {url: 'https://${HOST}/$$x', token: {env: T}, size: 50, pace: 90s, "
        "headers: {Accept: json, Authorization: {file: /t, prefix: 'Bearer '}}}}"
    )
    assert made.compensate is not None
    assert (made.compensate.settle, made.compensate.margin) == (timedelta(), timedelta(hours=3))
    assert (made.compensate.first_window, made.compensate.alarm_after) == (timedelta(days=2), timedelta(hours=2))
    assert made.compensate.options == {
        "url": "https://h.example/$x",
        "token": Secret(env="T"),
        "size": 50,
        "pace": "90s",
        "headers": {"Accept": "json", "Authorization": Secret(file="/t", prefix="Bearer ")},
    }
    written = made.definition["compensate"]
    assert written["with"]["headers"] == {"Accept": "json", "Authorization": {"file": "/t", "prefix": "Bearer "}}
    text = json.dumps({"sources": {"pay": {"preset": "github", "secrets": {"env": "S"}}}, "jobs": {"a": {}}})
    again = json.loads(text)
    again["jobs"]["a"] = {"compensate": {**written, "with": {**written["with"], "url": "https://h.example/$$x"}}}
    again["jobs"]["a"]["compensate"]["with"]["id"] = "uid"
    other = load_texts({"f": json.dumps(again)}, "f", environ=files.environ).jobs["a"].compensate
    assert other is not None
    assert dict(other.options) == {**made.compensate.options, "id": "uid"}


def test_which_secrets_cannot_be_read(files: Files) -> None:
    keys = "compensate: {source: pay, compensator: own, with: {url: u, token: {env: T}, headers: {A: {env: U}}}}"
    text = files.text(keys, SOURCE, "")
    report = check(Stored({"f": text}, "f"), NOW, environ={**files.environ, "S": "x"})
    assert report.good()
    found = {one.path: one.code for one in report.warnings}
    whole = ("jobs", "a", "compensate", "with")
    assert found == {(*whole, "token"): "no-secret", (*whole, "headers", "A"): "no-secret"}


@pytest.mark.parametrize(
    ("option", "path"),
    [
        ("token: k_live", ("token",)),
        ("headers: {Authorization: Bearer x}", ("headers", "Authorization")),
        ("url: 'https://u:p@x'", ("url",)),
        ("url: 'https://x/?api_key=1'", ("url",)),
    ],
)
def test_a_secret_that_would_be_kept_is_warned_about(files: Files, option: str, path: tuple[str, ...]) -> None:
    rest = "" if option.startswith("url") else "url: u, "
    keys = f"compensate: {{source: pay, compensator: own, with: {{{rest}{option}}}}}"
    report = check(Stored({"f": files.text(keys, SOURCE, "")}, "f"), NOW, environ=files.environ, elsewhere=True)
    (found,) = report.warnings
    assert (found.code, found.path) == ("secret-in-text", ("jobs", "a", "compensate", "with", *path))


BROKEN = [
    ("compensate: {compensator: own}", "`source` is missing", "add source"),
    ("compensate: {source: pay}", "`compensator` is missing", "add compensator"),
    ("compensate: 5", "`5` is not a mapping", "write keys below it"),
    (OWN.replace("pay", "pya"), "there is no source `pya`", "did you mean `pay`?"),
    ("compensate: {source: pay, compensator: owm}", "there is no compensator owm", "did you mean own?"),
    ("compensate: {source: pay, compensator: torn}", "cannot be imported", "correct the file"),
    (OWN.replace("with:", "wiht:"), "unknown key `wiht`", "did you mean `with`?"),
    (OWN.replace("'https://x'", "'${GONE}'"), "the variable `GONE` is not defined", "set GONE"),
    ("compensate: {source: pay, compensator: own}", "own needs it", "write it"),
    (OWN.replace("url:", "urll:"), "own has no such option", "did you mean url?"),
    (OWN.replace("}}", ", size: many}}"), "it is not a whole number", "write a whole number"),
    (OWN.replace("}}", ", size: 200}}"), "too many", "write at most 100"),
    (OWN.replace("}}", ", pace: 5}}"), "a duration must be text", "90s"),
    (OWN.replace("}}", ", size: {env: N}}}"), "`size` cannot be a secret", "secrets may be headers, token"),
    (OWN.replace("}}", ", names: {a: {env: N}}}}"), "`names` cannot be a secret", "secrets may be headers, token"),
    (OWN.replace("}}", ", token: {env: N, file: /n}}}"), "exactly one place", "write {env: NAME}"),
    (OWN.replace("}}", ", headers: {A: {env: N, file: /n}}}}"), "exactly one place", "write {env: NAME}"),
    (OWN.replace("{url: 'https://x'}", "[1]"), "a list is not a mapping", "name: value"),
    (OWN.replace("own,", "own, margin: 5,"), "`5` has no unit", "5m"),
    (OWN.replace("own,", "own, first_window: 0s,"), "longer than nothing", "1s"),
    (f"{OWN}, overlap: allow", "share one memory", "skip or queue"),
    (f"{OWN}, on_event: pay", "a scan is not started by events", "write a schedule"),
    (f"{OWN}, command: x", "a job has one action", "keep one"),
]


@pytest.mark.parametrize(("keys", "reason", "hint"), BROKEN)
def test_is_refused_with_line_reason_and_remedy(files: Files, keys: str, reason: str, hint: str) -> None:
    (found,) = files.problems(keys)
    assert (found.line, found.job) == (6, "a")
    assert reason in found.reason
    assert hint in (found.hint or "")


def test_an_option_is_told_at_its_place(files: Files) -> None:
    (found,) = files.problems(OWN.replace("}}", ", headers: {A: [1]}}}"))
    assert found.path == ("jobs", "a", "compensate", "with", "headers", "A")
    first, second = files.problems(OWN.replace("}}", ", size: {env: N}, token: {env: A, file: /b}}}"))
    assert (first.path[-1], second.path[-1]) == ("size", "token")


def test_all_options_that_are_wrong_are_told_at_once(files: Files) -> None:
    keys = "compensate: {source: pay, compensator: own, with: {url: [1], names: 3, size: many, sise: 2, pace: 3}}"
    found = files.problems(keys)
    assert [one.path[-1] for one in found] == ["url", "names", "size", "sise", "pace"]
    places = "url: 'http://x', cursor: n, id: id, occurred_at: '['"
    listed = keys.replace("own", "http_list").replace("url: [1], names: 3", places)
    assert {one.path[-1] for one in files.problems(listed)} == {"size", "sise", "pace", "occurred_at"}
    places = "url: x, occurred_at: at, cursor: n, items: '[', size: 0"
    found = files.problems(f"compensate: {{source: pay, compensator: http_list, with: {{{places}}}}}")
    assert [one.path[-1] for one in found] == ["url", "items", "size"]


PLACES = "url: ftp, items: '[', size: 0, cursor: '(', body: '['"


@pytest.mark.parametrize(
    "keys",
    [
        f"compensate: {{source: pay, compensator: http_list, setle: 5m, with: {{{PLACES}}}}}",
        f"compensate: {{source: pay, compensator: http_list, margin: 5, with: {{{PLACES}}}}}",
        f"compensate: {{source: pya, compensator: http_list, with: {{{PLACES}}}}}",
        f"compensate: {{source: pay, compensator: http_list, with: {{{PLACES}, bearer: {{env: A, file: /b}}}}}}",
        f"compensate: {{source: pay, compensator: http_list, with: {{{PLACES}, params: {{a: {{env: A, file: /b}}}}}}}}",
        f"compensate: {{source: pay, compensator: http_list, with: {{{PLACES}, sizze: 1}}}}",
    ],
)
def test_one_wrong_key_hides_nothing_of_the_others(files: Files, keys: str) -> None:
    found = files.problems(keys.replace("url:", "occurred_at: at, url:"))
    named = [one.path[-1] for one in found if one.path[-2:-1] == ("with",)]
    assert {"url", "items", "size", "cursor", "body"} <= set(named)
    assert len(found) == 6
    assert not any("is missing" in one.reason or "needs it" in one.reason for one in found)


def test_what_has_to_be_written_and_is_not_hides_nothing_either(files: Files) -> None:
    found = files.problems(f"compensate: {{source: pay, compensator: http_list, with: {{{PLACES[10:]}}}}}")
    assert {one.path[-1]: "needs it" in one.reason for one in found} == {
        "url": True,
        "occurred_at": True,
        "items": False,
        "size": False,
        "cursor": False,
        "body": False,
    }


def test_a_wrong_key_of_what_starts_a_job_hides_nothing_of_it(files: Files) -> None:
    found = files.problems("on_event: {source: pya, typs: x, where: '['}, command: x")
    assert {one.path[-1] for one in found} == {"source", "typs", "where"}


def test_lengths_that_were_refused_are_not_compared(files: Files) -> None:
    """`first_window: 20` may have meant minutes; its default is longer than what is kept."""
    source = SOURCE.replace("event:", "keep: 2h, event:")
    found = files.problems(OWN.replace("own,", "own, margin: 0s, first_window: 20,"), source=source)
    assert [one.path[-1] for one in found] == ["first_window"]


def test_each_compensator_tells_all_that_is_wrong(files: Files) -> None:
    hook = "hook: 1, repository: a/b/c, organization: o, token: {env: T}"
    found = files.problems(f"compensate: {{source: pay, compensator: github_deliveries, with: {{{hook}}}}}")
    assert [one.path[-1] for one in found] == ["repository", "organization"]
    shop = "shop: s, resource: A B, id: '[', hop: 1, token: {env: T}"
    found = files.problems(f"compensate: {{source: pay, compensator: shopify_updated, with: {{{shop}}}}}")
    assert {one.path[-1] for one in found} == {"resource", "id", "hop"}


def test_what_a_scan_cannot_be_is_told_beside_what_is_wrong_with_it(files: Files) -> None:
    broken = OWN.replace("own,", "own, margin: 5,")
    found = files.problems(f"{broken}, overlap: allow, on_event: pay, timeout: x")
    assert [one.path[2:] for one in found] == [("compensate", "margin"), ("overlap",), ("on_event",), ("timeout",)]


def test_the_value_of_a_secret_is_not_judged(files: Files) -> None:
    """It is read when the scan starts: `token` here begins with k_ then, or the scan fails."""
    assert files.job(OWN.replace("}}", ", token: {env: N}}}")).compensate is not None
    (found,) = files.problems(OWN.replace("}}", ", token: plain}}"))
    assert found.reason == "it is no key"


def test_a_file_without_scans_needs_no_plugin() -> None:
    assert load_texts({"f": "jobs: {a: {command: x}}"}, "f", environ={"SCHEDULER_PLUGINS": "/no/such"}).jobs


KEEP = "{preset: stripe, secrets: {env: S}, keep: 4d}"
STRIPE = "compensate: {source: pay, compensator: stripe_events, with: {api_key: {env: K}}"


def test_ids_are_kept_longer_than_anything_may_bring_them_again(files: Files) -> None:
    """3 days in which Stripe sends again, 24h of the first scan and 1h of margin."""
    (found,) = files.problems(f"{STRIPE}}}", source=KEEP)
    assert found.path == ("sources", "pay", "keep")
    assert found.reason == (
        "ids are forgotten after 4d, and may come again within "
        "3d (Stripe sends again) + 1d (first_window of a) + 1h (margin of a)"
    )
    assert (found.hint or "").startswith("write keep: 5d or more")
    assert files.load(f"{STRIPE}}}", source=KEEP.replace("4d", "5d"))
    assert files.load(f"{STRIPE}, margin: 0s}}", source=KEEP)
    (found,) = files.problems(f"{STRIPE}, margin: 1s}}", source=KEEP)


def test_where_nobody_wrote_keep_the_longest_reason_is_told(files: Files) -> None:
    (found,) = files.problems(f"{STRIPE}, first_window: 30d, margin: 20d}}", source=KEEP.replace(", keep: 4d", ""))
    assert found.path == ("jobs", "a", "compensate", "first_window")
    assert "ids are forgotten after 45d" in found.reason
    assert (found.hint or "").startswith("write keep: 53d or more")


def test_the_largest_of_several_scans_counts(files: Files) -> None:
    text = f"sources: {{pay: {KEEP}}}\njobs:\n"
    for name, more in (("a", "first_window: 1h"), ("b", "first_window: 2h, margin: 25h"), ("c", "margin: 1s")):
        text += f"  {name}: {{{STRIPE}, {more}}}}}\n"
    with pytest.raises(ConfigError) as caught:
        load_texts({"f": text}, "f", environ=files.environ)
    (found,) = caught.value.problems
    assert "1d (first_window of c) + 1d1h (margin of b)" in found.reason


def test_a_scan_that_looks_further_back_than_its_provider_lists(files: Files) -> None:
    text = files.text(f"{STRIPE}, first_window: 31d, margin: 2d}}", KEEP.replace("4d", "60d"), "")
    (found,) = check(Stored({"f": text}, "f"), NOW, environ=files.environ, elsewhere=True).warnings
    assert (found.code, found.path) == ("beyond-list", ("jobs", "a", "compensate", "first_window"))
    assert "Stripe lists no more than 30d" in found.reason


def test_a_plugin_that_was_corrected_is_read_anew(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    (tmp_path / "mine.py").write_text("raise RuntimeError('broken')\n")
    keys = "compensate: {source: pay, compensator: mine, with: {url: u}}"
    (found,) = files.problems(keys)
    assert f"{tmp_path}/mine.py:1" in found.reason
    (tmp_path / "mine.py").write_text(PLUGIN.replace('"own"', '"mine"'))
    assert files.job(keys).compensate is not None
