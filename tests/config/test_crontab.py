"""import-crontab: what cron would have done, as jobs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from scheduler.config.check import check
from scheduler.config.crontab import Given
from scheduler.config.crontab_columns import has_user_column
from scheduler.config.crontab_writer import import_crontab
from scheduler.config.load import load_texts
from scheduler.config.problem import ConfigError
from scheduler.config.sources import Stored
from scheduler.core.errors import InvalidInput
from tests.config.crontabs import DEBIAN, NOW, SAMPLES, USER, left_out, read

INSTALLED = {
    "crontab": ["cron.hourly", "cron.daily", "cron.weekly", "cron.monthly"],
    "anacron": ["invoke-rc.d"],
    "certbot": ["certbot"],
    "e2scrub_all": ["e2scrub_all_cron", "e2scrub_all"],
    "john": [],
    "logcheck": ["logcheck", "logcheck-2"],
    "mdadm": ["checkarray"],
    "munin-node": ["apt_all", "update", "poller"],
    "php": ["sessionclean"],
    "sysstat": ["debian-sa1", "debian-sa1-2"],
}


@pytest.mark.parametrize(("name", "jobs"), INSTALLED.items())
def test_what_debian_installs(name: str, jobs: Sequence[str]) -> None:
    path = SAMPLES / "etc" / ("crontab" if name == "crontab" else f"cron.d/{name}")
    found, configuration = read(path.read_text(), str(path), system=True)
    assert list(configuration.jobs) == list(found.jobs) == list(jobs)
    assert not found.lost
    for job in configuration.jobs.values():
        entry = found.jobs[job.name]
        assert job.child.user == entry.user
        assert job.child.user in ("root", "www-data", "logcheck")
        assert job.action.options["command"] == entry.command
        if entry.schedule is None:
            assert job.schedule is None
        else:
            assert job.schedule is not None
            assert (job.schedule.zone, job.schedule.day_match) == ("Europe/Berlin", "cron")


def test_a_whole_machine_is_imported_and_passes_the_check() -> None:
    folder = SAMPLES / "etc" / "cron.d"
    paths = [SAMPLES / "etc" / "crontab", *sorted(folder.iterdir())]
    given = [Given(str(path), path.read_text(), has_user_column(str(path))) for path in paths]
    found = import_crontab(given, zone="Europe/Berlin", now=NOW)
    named = [name.removesuffix("-2") for name in found.jobs]
    assert sorted(named) == sorted(name.removesuffix("-2") for names in INSTALLED.values() for name in names)
    assert [one.file.rpartition("/")[2] for one in found.left_out] == ["logcheck", "munin-node", "sysstat.dpkg-old"]
    report = check(Stored({"j": found.yaml}, "j"), NOW, environ={}, elsewhere=True)
    assert not report.errors
    assert {one.code for one in report.warnings} <= {"clock-change"}
    told = "\n".join(found.messages())
    assert told.count("MAILTO has no place") == 1
    assert "logcheck:2, " in told


def test_comments_become_descriptions_and_pictures_do_not() -> None:
    assert all(not job.description for job in read(DEBIAN, system=True)[1].jobs.values())
    php = read((SAMPLES / "etc" / "cron.d" / "php").read_text(), system=True)[1].jobs["sessionclean"]
    assert php.description == "Look for and purge old sessions every 30 minutes"
    jobs = read(USER)[1].jobs
    assert jobs["pg_dump"].description == "Dump the database every night"
    assert jobs["mail"].description == ""


def test_variables_shell_percent_and_zones() -> None:
    found, configuration = read(USER)
    jobs = configuration.jobs
    assert list(jobs) == ["pg_dump", "start", "mail", "x", "quiet", "x-2"]
    assert jobs["pg_dump"].action.options["command"] == ["/bin/bash", "-c", "pg_dump db > /backup/db-$(date +%F).sql"]
    assert jobs["pg_dump"].child.stdin is None
    assert jobs["mail"].child.stdin == 'Hello,\n\nit is "100%"\n'
    assert jobs["mail"].child.env == {
        "SHELL": "/bin/bash",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "GREETING": "hello world",
    }
    assert jobs["x-2"].child.env["TZ"] == "UTC"
    zones = [job.schedule.zone for job in jobs.values() if job.schedule is not None]
    assert zones == ["Europe/Berlin", *["America/New_York"] * 4]
    assert jobs["x-2"].action.options["command"][2] == "/opt/x.py # every hour"
    assert left_out(found).keys() == {3, 15, 16, 17, 18}


def test_what_is_left_out_says_what_to_do() -> None:
    found, _ = read(USER)
    told = {one.line: f"{one.reason}; {one.hint}" for one in found.left_out}
    assert "schedctl logs" in told[3]
    assert "out of range" in told[15]
    assert "five fields" in told[16]
    assert [one.line for one in found.lost] == [15, 16, 17]


def test_the_zone_of_cronie_holds_for_what_follows() -> None:
    text = "0 1 * * * a\nCRON_TZ=Asia/Tokyo\n0 1 * * * b\nCRON_TZ=\n0 1 * * * c\nCRON_TZ=CST\n0 1 * * * d\n@reboot e\n"
    found, configuration = read(text)
    zones = {job.name: job.schedule.zone for job in configuration.jobs.values() if job.schedule is not None}
    assert zones == {"a": "Europe/Berlin", "b": "Asia/Tokyo", "c": "Europe/Berlin", "d": "Europe/Berlin"}
    assert any("Debian's cron ignores it" in note for note in found.notes["b"])
    assert [one.line for one in found.lost] == [6]
    assert any("CRON_TZ=CST cannot be used" in note for note in found.notes["d"])
    assert not any("CRON_TZ" in note for name in "ace" for note in found.notes[name])


@pytest.mark.parametrize(
    ("written", "command", "stdin"),
    [
        ("x", "x", None),
        ("x%", "x", ""),
        ("x%y", "x", "y\n"),
        ("x%y%", "x", "y\n"),
        ("x%%y", "x", "\ny\n"),
        (r"x \% y", "x % y", None),
        (r"x\%%y\%z", "x%", "y%z\n"),
        (r"x \\ y", r"x \\ y", None),
        (r"x \\% y", r"x \\", " y\n"),
        (r"grep '\.' f", r"grep '\.' f", None),
    ],
)
def test_percent(written: str, command: str, stdin: str | None) -> None:
    (job,) = read(f"* * * * * {written}\n")[1].jobs.values()
    assert (job.action.options["command"], job.child.stdin) == (command, stdin)


def test_several_files_become_one() -> None:
    found = import_crontab(
        [
            Given("/etc/cron.d/a", "0 1 * * * root x\n", True),
            Given("/etc/cron.d/b.dpkg-old", "0 1 * * * root y\n", True),
            Given("c", "0 2 * * * u x\n", True),
            Given("crontab -l", "0 2 * * * y\n"),
        ],
        zone="UTC",
        now=NOW,
    )
    assert list(load_texts({"j": found.yaml}, "j").jobs) == ["x", "x-2", "y"]
    assert "cron ignores" in found.left_out[0].reason


def test_no_jobs_are_no_jobs() -> None:
    found, configuration = read("# nothing\nMAILTO=x\n")
    assert configuration.jobs == {}
    assert list(found.steps) == []


def test_a_last_line_without_a_break_is_read_and_told() -> None:
    found, configuration = read("* * * * * x")
    assert list(configuration.jobs) == ["x"]
    assert "without a line break" in found.left_out[0].reason


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("@every_minute x", "not known here"),
        ("0~59 3 * * * x", "random times"),
        ("0 0 30 2 * x", "never"),
        ("0 3 * * mon#9 x", ""),
        ("CRON_TZ=CST", "zone"),
        ("RANDOM_DELAY=5", "no place"),
        ("SCHED_X=5", "set by the scheduler"),
        ("hello", "not understood"),
        ("* * * * *", "not understood"),
        ("* * * * * %x", "empty"),
    ],
)
def test_lines_that_cannot_be_jobs(line: str, said: str) -> None:
    found, configuration = read(f"{line}\n")
    assert configuration.jobs == {}
    assert said in left_out(found)[1]


def test_a_system_line_without_a_command() -> None:
    found, _ = read("* * * * * root\n", system=True)
    assert "a user and a command" in left_out(found)[1]


def test_what_is_written_has_no_warning_about_quotes_or_comments() -> None:
    found, _ = read("* * * * * echo a #b\n0 1 * * * echo 'a: b' \"#\" &> /dev/null\n")
    report = check(Stored({"j": found.yaml}, "j"), datetime(2026, 1, 1, tzinfo=UTC), environ={})
    assert not report.errors
    assert not [one for one in report.warnings if one.path[-1] == "command"]


@pytest.mark.parametrize("system", [False, True])
def test_whatever_the_text_the_result_loads_and_means_the_same(system: bool) -> None:
    dice = random.Random(5)
    signs = "0123456789*/-, \t\n#%\\'\"=@:abcSHELLPATH$`!&|>{}[]é\x7f\u2028\x85~"
    base = DEBIAN + USER + (SAMPLES / "etc" / "cron.d" / "certbot").read_text()
    for _ in range(150):
        at = dice.randrange(len(base) - 200)
        text = list(base[at : at + 400])
        for _ in range(dice.randint(0, 25)):
            text[dice.randrange(len(text))] = dice.choice(signs)
        try:
            found, configuration = read("".join(text), system=system)
        except InvalidInput as error:
            assert not isinstance(error, ConfigError)  # noqa: PT017  # refused as a whole, or it must load
            continue
        assert list(found.jobs) == list(configuration.jobs)
        for name, entry in found.jobs.items():
            job = configuration.jobs[name]
            command = job.action.options["command"]
            assert (command if isinstance(command, str) else command[2]) == entry.command
            assert job.child.stdin == entry.stdin
            assert job.child.env == entry.env
            assert job.description == entry.description
            assert entry.schedule == (None if job.schedule is None else job.schedule.expressions[0])
