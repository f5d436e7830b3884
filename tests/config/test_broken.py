"""Broken files: each is refused at the right line, with the reason and the remedy."""

from __future__ import annotations

import pytest

from tests.config.texts import GOOD, problems

JOB = "jobs:\n  a:\n    schedule: 0 8 * * 1\n    timezone: UTC\n    command: x\n"
PLAIN = "jobs:\n  a:\n    command: x\n"

SYNTAX = [
    ("jobs:\n  a:\n    schedule: */5 * * * *\n", 3, "`*` at the start", 'put it in quotes: schedule: "*/5 * * * *"'),
    ("jobs:\n  a:\n    schedule: * * * * *\n", 3, "`*` at the start", 'schedule: "* * * * *"'),
    ("jobs:\n  a:\n    schedule:\n      - * 3 * * *\n", 4, "`*` at the start", '- "* 3 * * *"'),
    ("jobs:\n  a: {schedule: */5 * * * *, command: x}\n", 2, "`*` at the start", 'schedule: "*/5 * * * *"'),
    ("jobs:\n  a:\n    schedule: @daily\n", 3, "cannot begin with `@`", 'schedule: "@daily"'),
    ("jobs:\n  a:\n    schedule: ? * * * *\n", 3, "`?` at the start", "put it in quotes"),
    ("jobs:\n  a:\n    command: echo a: b\n", 3, "`: ` inside an unquoted text", 'command: "echo a: b"'),
    ("jobs:\n  a:\n    command: %run\n", 3, "cannot begin with `%`", 'command: "%run"'),
    ("jobs:\n  a:\n    command: `date`\n", 3, "cannot begin with ```", "put it in quotes"),
    ("jobs:\n  a:\n    command: 'x' y\n", 3, "text after the closing quote", "put it in quotes"),
    ("jobs:\n  a:\n    command: !bang x\n", 3, "the tag `!bang`", "quote the text"),
    ("jobs:\n  a:\n    command: &x\n      y: 1\n   b: 2\n", 5, "does not fit", "check the indentation"),
    ("jobs:\n\ta:\n", 2, "a tab in the indentation", "indent with spaces"),
    ("jobs:\n  a:\n    command:\tx\n", 3, "a tab between a key and its value", "a space"),
    ("jobs:\n  ä: {command: \tx}\n", 2, "a tab between a key and its value", "a space"),
    ("jobs:\n  a:\n    command: 'x\n", 3, "not closed", "add the closing quote"),
    ('jobs:\n  a:\n    command: "\\d"\n', 3, "a backslash in double quotes", "single quotes"),
    ("jobs:\n  a:\n    command: [x, y\n", 3, "not closed", "brackets"),
    ("jobs:\n  a: {command: x\n", 2, "not closed", "braces"),
    ("jobs:\n  a:\n  command: x\n   b: y\n", 4, "a `:` where no key can be", "indentation"),
    ("jobs:\n  - a\n  b: x\n", 3, "does not fit the list", "begin it with `- `"),
    ("jobs:\n  a:\n    command: *nope\n", 3, "an anchor that does not exist", "define `&name`"),
    ("jobs: {}\n---\njobs: {}\n", 2, "a second document", "one document per file"),
    ("jobs:\n  a:\n    command: x\n  b\n", 5, "a key without `:`", "write `key: value`"),
    ("jobs:\n  a:\n    command: |x\n      y\n", 3, "the text block", "indented text"),
    ("jobs: {}\x07\n", 1, "U+0007 is not allowed", "remove it"),
    ("%YAML 3.0\n---\njobs: {}\n", 1, "not supported", "remove the line"),
    ("[" * 2000, 1, "nested too deep", "flatten"),
    ("jobs: " + "[" * 70 + "]" * 70 + "\n", 1, "nested more than", "flatten"),
]

YAML = [
    ("", 1, "the file is empty", "`jobs: {}`"),
    ("# all out\n", 1, "the file is empty", "`jobs: {}`"),
    ("---\n", 1, "the file is empty", "`jobs: {}`"),
    ("version: 1\n", 1, "no `jobs` key", "`jobs: {}`"),
    ("jobs:\n", 1, "`jobs` has no value", "`jobs: {}`"),
    ("jobs: []\n", 1, "a list is not a mapping", "one name per line"),
    ("- a\n", 1, "a list where keys are expected", "write `jobs:`"),
    ("just text\n", 1, "`just text", "write `jobs:`"),
    (JOB + "  a:\n    command: y\n", 6, "`a` is given twice, first in line 2", "keep one"),
    (JOB + "    command: y\n", 6, "`command` is given twice, first in line 5", "keep one"),
    (JOB + "    env: {A: 1, A: 2}\n", 6, "`A` is given twice", "keep one"),
    ("jobs:\n  1: {command: x}\n", 2, "key `1` is not text", "put it in quotes"),
    ("jobs:\n  true: {command: x}\n", 2, "key `true` is not text", "put it in quotes"),
    ("jobs:\n  [a]: {command: x}\n", 2, "a list or mapping is not text", "put it in quotes"),
    ("jobs:\n  a: !!python/object:os.system {command: x}\n", 2, "the tag", "remove it"),
    ("jobs:\n  a: &a\n    command: x\n    env: *a\n", 2, "contains itself", "remove the alias"),
    ("x-a: &a [1]\njobs:\n  a: {<<: *a, command: x}\n", 1, "merges mappings only", "`<<: *name`"),
    ("version: 2\njobs: {}\n", 1, "version `2` is unknown", "write version: 1"),
    ("jops: {}\njobs: {}\n", 1, "unknown key `jops`", "did you mean `jobs`?"),
    ("jobs: {}\nnotify: {ops: {url: x}}\n", 2, "not an address of apprise", "{env: NAME}"),
]

KEYS = [
    (JOB + "    shedule: x\n", 6, "unknown key `shedule`", "did you mean `schedule`?"),
    (JOB + "    concurrencyPolicy: Forbid\n", 6, "unknown key", "did you mean `overlap`?"),
    (JOB + "    catch-up: all\n", 6, "unknown key", "did you mean `catch_up`?"),
    (JOB + "    xyzzy: all\n", 6, "unknown key `xyzzy`", "known are acknowledge, after"),
    (JOB + "    steps: []\n", 6, "not supported by this release", "remove it"),
    (JOB + "    calendars: []\n", 6, "not supported by this release", "remove it"),
    (JOB + "    callback: x\n", 6, "not supported by this release", "remove it"),
    (JOB + "    wait_for: approval\n", 6, "not supported by this release", "remove it"),
    (JOB + "    notify: [ops]\n", 6, "there is no channel `ops`", "add it below `notify`"),
    (JOB + "    heartbeat: {ping_url: x}\n", 6, "`x` is not a URL", "beginning with http"),
    (JOB + "    heartbeat: {ping_url: https://x, rid: 1}\n", 6, "unknown key `rid`", "ping_url"),
    (JOB + "    heartbeat: {ping_url: {env: A, file: /b}}\n", 6, "exactly one place", "{env: NAME} or {file: PATH}"),
    (JOB + "    heartbeat: {}\n", 6, "`ping_url` is missing", "add ping_url"),
    (JOB + "    heartbeat: on\n", 6, "neither true nor false", "{ping_url: https://"),
    (JOB + "    timeout: 30\n", 6, "`30` has no unit", "30s, 30m or 30h"),
    (JOB + "    timeout: 1:30\n", 6, "not understood", "1h30m"),
    (JOB + "    timeout: 010\n", 6, "no unit", "write"),
    (JOB + "    timeout: 1e3\n", 6, "`1e3` is not a duration", "1h30m"),
    (JOB + "    timeout: 1_000\n", 6, "not understood", "1h30m"),
    (JOB + "    timeout: 0x1F\n", 6, "not understood", "1h30m"),
    (JOB + "    timeout: 0s\n", 6, "longer than nothing", "1s"),
    (JOB + "    grace: [1h]\n", 6, "a list is not a duration", "1h30m"),
    (JOB + "    grace: -5m\n", 6, "not understood", "15m"),
    (JOB + "    overlap: never\n", 6, "`never` is not one of", "skip, queue, replace or allow"),
    (JOB + "    catch_up: true\n", 6, "`true` is not one of", "latest, all or none"),
    (JOB + "    day_match: xor\n", 6, "`xor` is not one of", "cron, or or and"),
    (JOB + "    severity: fatal\n", 6, "`fatal` is not one of", "info, warning or critical"),
    (JOB + "    enabled: yes\n", 6, "`yes` is neither true nor false", "without quotes"),
    (JOB + "    priority: high\n", 6, "not a whole number", "without quotes"),
    (JOB + "    catch_up_max: 0\n", 6, "out of range", "from 1"),
    (JOB + "    alert_after: 1.5\n", 6, "not a whole number", "from 1"),
    (JOB + "    retries: many\n", 6, "`many` is not understood", "a list of waits"),
    (JOB + "    retries: -1\n", 6, "out of range", "from 0 to 100"),
    (JOB + "    retries: [1m, 10]\n", 6, "`10` has no unit", "10s, 10m"),
    (JOB + "    retries: {delay: 1m}\n", 6, "`max` is missing", "add max"),
    (JOB + "    retries: {max: 1, backof: 2}\n", 6, "unknown key `backof`", "did you mean `backoff`?"),
    (JOB + "    retries: {max: 1, backoff: 0.5}\n", 6, "`0.5` is not a factor", "from 1 to 100"),
    (JOB + "    keep: 0\n", 6, "out of range", "from 1"),
    (JOB + "    log_limit: 5\n", 6, "`5` is not a size", "1MiB"),
    (JOB + "    log_limit: 5B\n", 6, "out of range", "1KiB"),
    (JOB + "    limits: {memory: lots}\n", 6, "`lots` is not a size", "2GiB"),
    (JOB + "    limits: {memory: 99999999TiB}\n", 6, "larger than any machine", "smaller"),
    (JOB + "    limits: {nice: 20}\n", 6, "out of range", "-20 to 19"),
    (JOB + "    limits: 5\n", 6, "`5` is not a mapping", "memory"),
    (JOB + "    env: [A]\n", 6, "a list is not a mapping", "NAME: value"),
    (JOB + "    env: {A: }\n", 6, "it has no value", 'write ""'),
    (JOB + "    env: {A-B: 1}\n", 6, "`A-B` is not a name of a variable", "letters"),
    (JOB + "    env: {SCHED_X: 1}\n", 6, "set by the scheduler", "SCHED_"),
    (JOB + "    env: {A: [1]}\n", 6, "the value is not a text", "write a text"),
    (JOB + "    env: {A: {env: B}}\n", 6, "a reference to a secret", "move it below `secrets`"),
    (JOB + "    env: {A: {B: c}}\n", 6, "the value is not a text", "write a text"),
    ("a:\n  schedule: 0 8 * * 1\n  command: x\n", 1, "unknown key `a`", "a job belongs below `jobs:`"),
    ("jos:\n  a: {command: x}\n", 1, "unknown key `jos`", "did you mean `jobs`?"),
    (JOB + "    secrets: {A: hunter2}\n", 6, "never written into this file", "{env: NAME}"),
    (JOB + "    secrets: {A: {env: X, file: /y}}\n", 6, "exactly one place", "{file: PATH}"),
    (JOB + "    secrets: {A: {path: /y}}\n", 6, "unknown key `path`", "known are env, file, prefix"),
    (JOB + '    workdir: ""\n', 6, "must not be empty", "remove the key"),
    (JOB + "    workdir: ${NOPE}/x\n", 6, "`NOPE` is not defined", "set NOPE"),
    (JOB + "    workdir: ${A:-b}\n", 6, "is not understood", "write ${NAME}"),
    (JOB + '    user: "a\\nb"\n', 6, "must be one line", "line break"),
    (JOB + '    stdin: "a\\0b"\n', 6, "NUL", "remove it"),
    (JOB + "    tags: [a b]\n", 6, "`a b` is not a good name", "letters, digits"),
    (JOB + "    blackouts: {from: 2026-12-24}\n", 6, "is not a list", "one item per line"),
    (JOB + "    blackouts: [{from: 2026-12-24}]\n", 6, "needs both ends", "`from` and `to`"),
    (JOB + "    blackouts: [{schedule: 0 0 * * *}]\n", 6, "a begin and a length", "`for`"),
    (JOB + "    blackouts: [{}]\n", 6, "one of two forms", "{from, to, reason}"),
    (JOB + "    blackouts: [{from: 2026-13-01, to: 2026-12-01}]\n", 6, "`2026-13-01` is not a date", "2026-12-24"),
    (JOB + "    blackouts: [{from: 2026-12-24, to: 2026-12-23}]\n", 6, "ends before it begins", "correct"),
    (JOB + "    blackouts: [{schedule: 0 0 * *, for: 1h}]\n", 6, "4 fields", "*"),
]

MEANING = [
    ("jobs:\n  a:\n    schedule: 0 8 * * 1\n    command: x\n", 3, "without a time zone", "add timezone"),
    ("jobs:\n  a:\n    schedule: 0 8 * *\n    timezone: UTC\n    command: x\n", 3, "4 fields", "*"),
    ("jobs:\n  a:\n    schedule: 0 25 * * 1\n    timezone: UTC\n    command: x\n", 3, "25", "0 to 23"),
    ("jobs:\n  a:\n    schedule: 0 0 30 2 *\n    timezone: UTC\n    command: x\n", 3, "never", ""),
    (
        "jobs:\n  a:\n    schedule: []\n    timezone: UTC\n    command: x\n",
        3,
        "list of expressions is empty",
        "at least one",
    ),
    ("jobs:\n  a:\n    schedule: 5\n    timezone: UTC\n    command: x\n", 3, "`5` is not a cron expression", "quotes"),
    (
        "jobs:\n  a:\n    schedule:\n      - 0 8 * * 1\n      - 0 8 * * x\n    timezone: UTC\n    command: x\n",
        5,
        "day of week",
        "",
    ),
    (JOB.replace("UTC", "CST"), 4, "unknown time zone", "America/Chicago"),
    (JOB.replace("UTC", "Europe/Berln"), 4, "unknown time zone", "Europe/Berlin"),
    (JOB.replace("UTC", "+08:00"), 4, "unknown time zone", ""),
    ("defaults: {timezone: CET}\n" + JOB, 1, "unknown time zone", "Europe"),
    ("defaults: {command: x}\n" + JOB, 1, "belongs to a job", "move it"),
    ("defaults: {schedule: x}\n" + JOB, 1, "belongs to a job", "move it"),
    ("defaults: {timout: 5m}\n" + JOB, 1, "unknown key `timout`", "did you mean `timeout`?"),
    ("defaults: [1]\n" + JOB, 1, "a list is not a mapping", ""),
    ("jobs:\n  a:\n    timeout: 5m\n", 2, "the job does nothing", "add one of"),
    ("jobs:\n  a:\n", 2, "the job is empty", "command"),
    ("jobs:\n  a: echo\n", 2, "where the job's keys are expected", "command"),
    ("jobs:\n  a:\n    command: x\n    call: m:f\n", 4, "one action", "keep one"),
    ("jobs:\n  a:\n    command: x\n    http: {url: http://x}\n", 4, "one action", "keep one"),
    ("jobs:\n  a:\n    external: false\n", 3, "`false` is not true", "write external: true"),
    ("jobs:\n  a b:\n    command: x\n", 2, "`a b` is not a good name", "letters, digits"),
    ("jobs:\n  -a:\n    command: x\n", 2, "`-a` is not a good name", "beginning with a letter"),
    (f"jobs:\n  {'a' * 101}:\n    command: x\n", 2, "is not a good name", "at most 100"),
    (JOB + "    lock: l\n    overlap: allow\n", 6, "cannot be kept with `overlap: allow`", "remove one"),
    (PLAIN + "    overlap: skip\n", 4, "needs a schedule", "queue"),
    (PLAIN + "    overlap: replace\n", 4, "needs a schedule", "queue"),
    (JOB + "    leftovers: keep\n", 6, "only if runs may overlap", "overlap: allow"),
    (PLAIN + "    queue: fast\n", 4, "there is no queue `fast`", "`queues`"),
    ("defaults: {queue: fast}\n" + PLAIN, 1, "there is no queue `fast`", "`queues`"),
    (PLAIN + "    after: b\n", 4, "there is no job `b`", "correct the name"),
    (PLAIN + "    after: a\n", 4, "a circle: a → a", "remove one"),
    (PLAIN + "    after: b\n  b: {command: x, after: a}\n", 4, "a circle: a → b → a", "remove one"),
    (PLAIN + "    after: {job: a, on: never}\n", 4, "`never` is not one of", "completed or failed"),
    (PLAIN + "    after: {on: failed}\n", 4, "`job` is missing", "add job"),
    ("queues: {q: {concurrency: 0}}\njobs: {}\n", 1, "out of range", "from 1"),
    ("queues: {q: {rate: 120}}\njobs: {}\n", 1, "`120` is not a rate", "120/m"),
    ("queues: {q: {rate: 0/s}}\njobs: {}\n", 1, "a rate of zero", "pause"),
    ("queues: {q: {concurency: 1}}\njobs: {}\n", 1, "unknown key", "did you mean `concurrency`?"),
    ("queues: {q: 4}\njobs: {}\n", 1, "`4` is not a mapping", "concurrency"),
    ("queues: {q q: {}}\njobs: {}\n", 1, "`q q` is not a good name", "letters"),
    ("include: [nope.yaml]\njobs: {}\n", 1, "`nope.yaml` cannot be included", "relative to this file"),
    ("include: {a: b}\njobs: {}\n", 1, "not a list of files", "jobs.d/*.yaml"),
    ("include: [1]\njobs: {}\n", 1, "not a file name", "jobs.d/*.yaml"),
    ("include: ['${NOPE}.yaml']\njobs: {}\n", 1, "`NOPE` is not defined", "set NOPE"),
    ('include: ["a\\0b"]\njobs: {}\n', 1, "NUL", "remove it"),
]

ACTIONS = [
    ("jobs:\n  a:\n    command: []\n", 3, "the command is empty", "[program, argument]"),
    ('jobs:\n  a:\n    command: " "\n', 3, "the command is empty", "write what to run"),
    ("jobs:\n  a:\n    command: {a: b}\n", 3, "a mapping is not a command", "a list"),
    ("jobs:\n  a:\n    command: [x, [y]]\n", 3, "a list in the command", "quotes"),
    ("jobs:\n  a:\n    command: [x, true]\n", 3, "`true` in the command", "quotes"),
    ('jobs:\n  a:\n    command: ["", x]\n', 3, "the program's name is empty", "first item"),
    ('jobs:\n  a:\n    command: [x, "\\0"]\n', 3, "NUL", "remove it"),
    ("jobs:\n  a:\n    http: {}\n", 3, "`url` is missing", "add url"),
    ("jobs:\n  a:\n    http: https://x\n", 3, "is not a mapping", "url"),
    ("jobs:\n  a:\n    http: {url: example.com}\n", 3, "is not a URL", "https://"),
    ("jobs:\n  a:\n    http: {url: 'http://x:99999/'}\n", 3, "server and port of `http://x:99999/`", "0 to 65535"),
    ("jobs:\n  a:\n    http: {url: 'http://x:y/'}\n", 3, "server and port of `http://x:y/`", "0 to 65535"),
    ("jobs:\n  a:\n    http: {url: 'http://[::1/'}\n", 3, "server and port of `http://[::1/`", "in brackets"),
    (
        'jobs:\n  a:\n    command: x\n    env: {A: "\\0"}\n',
        4,
        "a NUL character is not allowed in it",
        "remove",
    ),
    ("jobs:\n  a:\n    http: {url: 'http://${NOPE}'}\n", 3, "`NOPE` is not defined", "$$"),
    ("jobs:\n  a:\n    http: {url: http://x, method: FETCH}\n", 3, "not one of", "POST"),
    ("jobs:\n  a:\n    http: {url: http://x, headers: [a]}\n", 3, "not a mapping", "Name: value"),
    ("jobs:\n  a:\n    http: {url: http://x, headers: {a b: c}}\n", 3, "not a name of a header", "letters"),
    ("jobs:\n  a:\n    http: {url: http://x, headers: {Host: c}}\n", 3, "set by the scheduler", "remove it"),
    ('jobs:\n  a:\n    http: {url: http://x, headers: {A: "b\\nc"}}\n', 3, "not one line", "write a text"),
    ("jobs:\n  a:\n    http: {url: http://x, headers: {A: {evn: B}}}\n", 3, "unknown key `evn`", "did you mean `env`?"),
    ("jobs:\n  a:\n    http: {url: http://x, body: {a: b}}\n", 3, "the body is a text", "tojson"),
    ("jobs:\n  a:\n    http: {url: http://x, body: '{{ a'}\n", 3, "line 1 of the template", "{{ payload.id"),
    ("jobs:\n  a:\n    http: {url: http://x, body: '{{ a | nofilter }}'}\n", 3, "No filter named", "correct it"),
    ("jobs:\n  a:\n    http: {url: http://x, expect_status: 99}\n", 3, "out of range", "100 to 599"),
    ("jobs:\n  a:\n    http: {url: http://x, expect_status: [OK]}\n", 3, "not a whole number", "100 to 599"),
    ("jobs:\n  a:\n    call: module.function\n", 3, "is not a function", "package.module:function"),
    ("jobs:\n  a:\n    call: m:f\n    user: root\n", 4, "`user` is for `command` only", "as a command"),
    ("defaults: {user: root}\njobs:\n  a:\n    call: m:f\n", 1, "`call` runs as the daemon does", "remove it"),
    ("jobs:\n  a:\n    call: [m:f]\n", 3, "is not a function", "package.module:function"),
    ("jobs:\n  a:\n    call: {function: m:f, with: 5}\n", 3, "`5` is not a mapping", "name: value"),
    ("jobs:\n  a:\n    call: {function: m:f, wiht: {}}\n", 3, "unknown key `wiht`", "did you mean `with`?"),
]

BROKEN = [*SYNTAX, *YAML, *KEYS, *MEANING, *ACTIONS]


@pytest.mark.parametrize(("text", "line", "reason", "remedy"), BROKEN)
def test_is_refused_with_line_reason_and_remedy(text: str, line: int, reason: str, remedy: str) -> None:
    found = problems(text)
    assert any(reason in one.reason and one.line == line for one in found), [str(one) for one in found]
    said = next(one for one in found if reason in one.reason and one.line == line)
    assert said.hint, "there is always something to do"
    assert remedy in said.hint
    assert str(said).startswith(f"jobs.yaml:{line}:{said.column}: ")
    assert len(str(said)) < 600


def test_the_table_is_large_enough() -> None:
    assert len(BROKEN) >= 80


def test_each_text_has_one_mistake() -> None:
    """A table in which texts fail for other reasons than the one under test proves little."""
    several = [text for text, *_ in (*YAML, *KEYS, *MEANING, *ACTIONS) if len(problems(text)) > 1]
    assert not several


def test_all_errors_come_at_once_in_the_order_of_lines() -> None:
    text = (
        "defaults:\n  timezone: CST\n  timeout: 5\n"
        "jobs:\n  a:\n    schedule: */5 * * * *\n    comand: x\n"
        "  b: {schedule: 0 8 * * 1, queue: q, after: z, retries: {max: 1, dely: 2m}, command: x}\n"
        f"  b b: {{{GOOD}}}\n"
    )
    found = problems(text)
    assert [one.line for one in found] == [2, 3, 6, 7, 8, 8, 8, 9]
    assert [one.line for one in found] == sorted(one.line for one in found)


def test_a_wrong_default_is_told_once() -> None:
    found = problems(
        "defaults: {timezone: CST, grace: 1}\n" + JOB.replace("    timezone: UTC\n", "") + f"  b: {{{GOOD}}}\n"
    )
    assert [one.line for one in found] == [1, 1]


def test_the_column_points_at_the_value_or_the_unknown_key() -> None:
    (value,) = problems(JOB + "    overlap: never\n")
    (key,) = problems(JOB + "    overlp: skip\n")
    assert (value.column, key.column) == (14, 5)


def test_the_message_of_the_error_has_every_line() -> None:
    from scheduler.config.problem import ConfigError

    found = problems(JOB + "    overlap: never\n    foo: 1\n")
    assert str(ConfigError(found)).splitlines() == [str(one) for one in found]


def test_a_thousand_errors_are_counted_not_printed() -> None:
    from scheduler.config.problem import ConfigError

    text = "jobs:\n" + "".join(f"  a{n}: {{command: x, timeout: 5}}\n" for n in range(300))
    lines = str(ConfigError(problems(text))).splitlines()
    assert len(lines) == 101
    assert lines[-1] == "and 200 more"


def test_each_variable_is_judged_by_itself() -> None:
    env = '    env: {"A=B": c, "": d, X: [1], Y: , OK: 1}\n'
    found = problems(JOB + env + '    secrets: {"S-1": {env: A}, T: hunter2}\n')
    wrong = ("env.A=B", "env.", "env.X", "env.Y", "secrets.S-1", "secrets.T")
    assert [str(one).split(": ")[1] for one in found] == [f"jobs.a.{path}" for path in wrong]
