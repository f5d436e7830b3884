"""import-crontab: what cron would have done, as jobs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from scheduler.config.check import check
from scheduler.config.crontab_names import name_of
from scheduler.config.crontab_writer import Imported, import_crontab
from scheduler.config.load import load_texts
from scheduler.config.sources import Stored
from scheduler.core.job import CatchUp, Configuration, Leftovers, OnLost, Overlap

DEBIAN = """\
# /etc/crontab: system-wide crontab
# Unlike any other crontab you don't have to run the `crontab'
# command to install the new version when you edit this file
# and files in /etc/cron.d. These files also have username fields,
# that none of the other crontabs do.

SHELL=/bin/sh
# You can also override PATH, but by default, newer versions inherit it from the environment
#PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin

# Example of job definition:
# .---------------- minute (0 - 59)
# |  .------------- hour (0 - 23)
# |  |  .---------- day of month (1 - 31)
# |  |  |  .------- month (1 - 12) OR jan,feb,mar,apr ...
# |  |  |  |  .---- day of week (0 - 6) (Sunday=0 or 7) OR sun,mon,tue,wed,thu,fri,sat
# |  |  |  |  |
# *  *  *  *  * user-name command to be executed
17 *	* * *	root	cd / && run-parts --report /etc/cron.hourly
25 6	* * *	root	test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
47 6	* * 7	root	test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.weekly; }
52 6	1 * *	root	test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.monthly; }
#
"""
E2SCRUB = """\
30 3 * * 0 root test -e /run/systemd/system || SERVICE_MODE=1 /usr/lib/x86_64-linux-gnu/e2fsprogs/e2scrub_all_cron
10 3 * * * root test -e /run/systemd/system || SERVICE_MODE=1 /sbin/e2scrub_all -A -r
"""
PHP = """\
# /etc/cron.d/php@PHP_VERSION@: crontab fragment for PHP
#  This purges session files in session.save_path older than X,
#  where X is defined in seconds as the largest value of
#  session.gc_maxlifetime from all your SAPI php.ini files
#  or 24 minutes if not defined.  The script triggers only
#  when session.save_handler=files.

# Look for and purge old sessions every 30 minutes
09,39 *     * * *     root   [ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/systemd/system ]; then \
/usr/lib/php/sessionclean; fi
"""
CERTBOT = r"""
# /etc/cron.d/certbot: crontab entries for the certbot package
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin

0 */12 * * * root test -x /usr/bin/certbot -a \! -d /run/systemd/system && perl -e 'sleep int(rand(43200))' && \
certbot -q renew --no-random-sleep-on-renew
""".replace("\\\ncertbot", "certbot")
USER = r"""
SHELL=/bin/bash
MAILTO="ops@example.com"
PATH = "/usr/local/bin:/usr/bin:/bin"
GREETING='hello world'

# Dump the database
# every night
15 2 * * * pg_dump db > /backup/db-$(date +\%F).sql
@reboot /opt/start.sh
CRON_TZ=America/New_York
# */5 * * * * /old/thing
0 9 13 * 5 mail -s "hi: there" me@x%Hello,%%it is "100\%"
* * * * * nohup /opt/x.py &
60 * * * * bad
0 0 * * foo
@daily
-5 5 * * * quiet
TZ=UTC
@hourly /opt/x.py # every hour
"""


def read(
    text: str, name: str = "crontab", *, system: bool = False, faithful: bool = False, shadow: bool = False
) -> tuple[Imported, Configuration]:
    found = import_crontab([(name, text)], zone="Europe/Berlin", system=system, faithful=faithful, shadow=shadow)
    return found, load_texts({"jobs.yaml": found.yaml}, "jobs.yaml", environ={})


def left_out(found: Imported) -> dict[int, str]:
    return {one.line: one.reason for one in found.left_out}


@pytest.mark.parametrize(
    ("text", "name", "jobs"),
    [
        (DEBIAN, "/etc/crontab", ["cron.hourly", "cron.daily", "cron.weekly", "cron.monthly"]),
        (E2SCRUB, "/etc/cron.d/e2scrub_all", ["e2scrub_all_cron", "e2scrub_all"]),
        (PHP, "/etc/cron.d/php", ["sessionclean"]),
        (CERTBOT, "/etc/cron.d/certbot", ["certbot"]),
    ],
)
def test_what_debian_installs(text: str, name: str, jobs: Sequence[str]) -> None:
    found, configuration = read(text, name, system=True)
    assert list(configuration.jobs) == list(found.jobs) == list(jobs)
    assert not found.left_out
    for job in configuration.jobs.values():
        assert job.child.user == "root"
        assert job.schedule is not None
        assert (job.schedule.zone, job.schedule.day_match) == ("Europe/Berlin", "cron")
        assert job.action.options["command"] == found.jobs[job.name].command


def test_comments_become_descriptions_and_pictures_do_not() -> None:
    assert all(not job.description for job in read(DEBIAN, system=True)[1].jobs.values())
    assert (
        read(PHP, system=True)[1].jobs["sessionclean"].description == "Look for and purge old sessions every 30 minutes"
    )
    jobs = read(USER)[1].jobs
    assert jobs["pg_dump"].description == "Dump the database every night"
    assert jobs["mail"].description == ""


def test_variables_shell_percent_and_zones() -> None:
    found, configuration = read(USER)
    jobs = configuration.jobs
    assert list(jobs) == ["pg_dump", "mail", "x", "quiet", "x-2"]
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
    assert left_out(found).keys() == {3, 10, 15, 16, 17, 18}


def test_what_is_left_out_says_what_to_do() -> None:
    found, _ = read(USER)
    told = {one.line: str(one) for one in found.left_out}
    assert "schedctl logs" in told[3]
    assert "@reboot" in told[10]
    assert "systemd" in told[10]
    assert "out of range" in told[15]
    assert "five fields" in told[16]
    assert all(one.startswith(f"crontab:{line}: ") for line, one in told.items())


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


def test_ours_is_the_default_and_the_difference_is_told_per_job() -> None:
    found, configuration = read(USER)
    for name, job in configuration.jobs.items():
        assert (job.overlap, job.catch_up, job.on_lost, job.leftovers) == (
            Overlap.SKIP,
            CatchUp.LATEST,
            OnLost.RETRY,
            Leftovers.END,
        )
        assert any("cron: allow" in note for note in found.notes[name])
    assert any("background" in note for note in found.notes["x"])
    assert any("either is enough" in note for note in found.notes["mail"])


def test_faithful_is_as_cron_does_it() -> None:
    found, configuration = read(USER, faithful=True)
    for name, job in configuration.jobs.items():
        assert (job.overlap, job.catch_up, job.on_lost, job.leftovers) == (
            Overlap.ALLOW,
            CatchUp.NONE,
            OnLost.FAIL,
            Leftovers.KEEP,
        )
        assert not any("cron: allow" in note for note in found.notes[name])


def test_shadow_runs_nothing() -> None:
    _, configuration = read(USER, shadow=True)
    assert configuration.jobs
    assert not any(job.enabled for job in configuration.jobs.values())


@pytest.mark.parametrize("shadow", [False, True])
def test_the_last_words_are_the_steps_of_the_switch(shadow: bool) -> None:
    lines = read(USER, shadow=shadow)[0].messages()
    assert lines[-5].endswith("The switch:")
    assert [line.split()[0] for line in lines[-4:]] == ["1.", "2.", "3.", "4."]
    assert any("schedctl reload" in line for line in lines[-4:])


def test_users_homes_and_groups() -> None:
    text = "HOME=/srv/$x\n* * * * * a\n"
    assert read(text)[1].jobs["a"].child.workdir == "/srv/$x"
    found = import_crontab(
        [("/etc/crontab", "0 1 * * * www-data:adm a\n")],
        zone="UTC",
        system=True,
        home_of={"www-data": "/var/www"}.get,  # type: ignore[arg-type]
    )
    job = load_texts({"j": found.yaml}, "j").jobs["a"]
    assert (job.child.user, job.child.workdir) == ("www-data", "/var/www")
    assert "group" in found.left_out[0].reason


def test_several_files_become_one() -> None:
    found = import_crontab(
        [
            ("/etc/cron.d/a", "0 1 * * * root x\n"),
            ("/etc/cron.d/b.dpkg-old", "0 1 * * * root y\n"),
            ("c", "0 2 * * * u x\n"),
        ],
        zone="UTC",
        system=True,
    )
    assert list(load_texts({"j": found.yaml}, "j").jobs) == ["x", "x-2"]
    assert "cron ignores" in found.left_out[0].reason


def test_no_jobs_are_no_jobs() -> None:
    found, configuration = read("# nothing\nMAILTO=x\n")
    assert configuration.jobs == {}
    assert "0 jobs" in "\n".join(found.messages())


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
    base = DEBIAN + USER + CERTBOT
    for _ in range(150):
        at = dice.randrange(len(base) - 200)
        text = list(base[at : at + 400])
        for _ in range(dice.randint(0, 25)):
            text[dice.randrange(len(text))] = dice.choice(signs)
        found, configuration = read("".join(text), system=system)
        assert list(found.jobs) == list(configuration.jobs)
        for name, entry in found.jobs.items():
            job = configuration.jobs[name]
            command = job.action.options["command"]
            assert (command if isinstance(command, str) else command[2]) == entry.command
            assert job.child.stdin == entry.stdin
            assert job.child.env == entry.env
            assert job.description == entry.description
            assert job.schedule is not None
            assert job.schedule.expressions == (entry.schedule,)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup --full", "backup"),
        ("cd /srv/app && /usr/bin/python3 manage.py clearsessions >> /var/log/x 2>&1", "manage"),
        ("flock -n /tmp/lock -c 'php artisan schedule:run'", "artisan"),
        ("/usr/bin/flock -n /tmp/x.lock /opt/sync.sh", "sync"),
        ("bash -lc 'cd /x && bundle exec rake foo'", "bundle"),
        ("pg_dump db | gzip > /backup/db.gz", "pg_dump"),
        ("nice -n 19 ionice -c3 /usr/local/bin/tidy", "tidy"),
        ("sudo -u www-data php /var/www/cron.php", "cron"),
        ("A=1 B=2 timeout 5m env X=1 ./run.sh", "run"),
        ("python3 -m http.server", "http.server"),
        ("/usr/bin/java -Xmx1g -jar /opt/app.jar", "app"),
        ("(cd /x; ./y.sh) &", "y"),
        ("command -v debian-sa1 > /dev/null && debian-sa1 1 1", "debian-sa1"),
        ("if [ -x /usr/sbin/foo ] ; then foo ; fi", "foo"),
        ("echo hi", "echo"),
        ("'unclosed", "unclosed"),
        ("*", "job"),
        ("/opt/naïve job.sh", "na-ve"),
    ],
)
def test_names(command: str, name: str) -> None:
    assert name_of(command) == name


def test_names_are_unique() -> None:
    assert name_of("x", {"x", "x-2"}) == "x-3"
