"""import-crontab: for whom a line runs and where: columns, owners, homes."""

from __future__ import annotations

import pytest

from scheduler.config.crontab import Given
from scheduler.config.crontab_columns import Known, has_user_column, owner_of
from scheduler.config.crontab_homes import Homes
from scheduler.config.crontab_writer import import_crontab
from scheduler.config.load import load_texts
from scheduler.core.errors import InvalidInput
from tests.config.crontabs import NOW, SAMPLES, read

NAMES = Known(
    lambda name: name in ("root", "git", "www-data", "mail"), lambda word: word in ("git", "cd", "tar", "mail")
)


@pytest.mark.parametrize(
    ("text", "system", "said"),
    [
        ("0 5 * * * root /opt/x\n0 6 * * * www-data /opt/y\n", False, "crontab:1: `root` is a user"),
        ("@daily root cd / && x\n", False, "add --system"),
        ("0 5 * * * root /opt/x\n0 6 * * * root /opt/y\n0 7 * * * /opt/z\n", False, "add --system"),
        ("0 5 * * * cd / && x\n0 6 * * * tar -czf y\n", True, "crontab:1: `cd` is a program and not a user"),
        ("0 5 * * * cd / && x\n0 6 * * * tar -c\n0 7 * * * mail me\n", True, "leave out --system"),
    ],
)
def test_a_crontab_of_the_other_kind_is_refused(text: str, system: bool, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(text, system=system, known=NAMES)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("0 5 * * * git pull\n", False),
        ("0 5 * * * root\n", False),
        ("0 5 * * * /usr/bin/root x\n", False),
        ("0 5 * * * git git pull\n", True),
        ("0 5 * * * deploy /opt/x\n", True),
    ],
)
def test_what_may_be_meant_is_taken(text: str, system: bool) -> None:
    found, configuration = read(text, system=system, known=NAMES)
    assert len(configuration.jobs) == 1
    assert not found.left_out


def test_single_lines_of_the_other_kind_are_told() -> None:
    found, configuration = read("0 5 * * * root x\n0 6 * * * y\n0 7 * * * z\n", known=NAMES)
    assert len(configuration.jobs) == 3
    assert any("begins with `root`, which is a user" in note for note in found.notes["root"])
    text = "0 5 * * * root x\n0 6 * * * cd / && y\n0 7 * * * git z\n"
    found, configuration = read(text, system=True, known=NAMES)
    assert list(configuration.jobs) == ["x", "z"]
    assert [(one.line, one.lost) for one in found.left_out] == [(2, True)]


def test_in_its_own_place_a_system_crontab_is_read_as_such_whatever_it_holds() -> None:
    found, configuration = read("0 6 * * * cd / && y\n", "/etc/cron.d/x", system=True, known=NAMES)
    assert configuration.jobs == {}
    assert [one.line for one in found.lost] == [1]


@pytest.mark.parametrize("name", ["/etc/crontab", "etc/crontab", "/etc/cron.d/php", "/mnt/old/etc/crontab"])
def test_where_lines_have_a_user(name: str) -> None:
    assert has_user_column(name)
    assert owner_of(name) is None


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("/var/spool/cron/crontabs/alice", "alice"),
        ("/var/spool/cron/alice", "alice"),
        ("/var/spool/cron/tabs/alice", "alice"),
        ("/home/alice/crontab", None),
        ("stdin", None),
    ],
)
def test_whose_crontab_a_file_is(name: str, owner: str | None) -> None:
    assert owner_of(name) == owner
    assert not has_user_column(name)


def test_a_home_that_does_not_exist_is_not_where_a_job_starts() -> None:
    known = {"www-data": "/var/www", "root": "/root"}
    homes = Homes(lambda user: known.get(user or ""), lambda path: path == "/root")
    text = "0 1 * * * root a\n0 1 * * * www-data b\n0 1 * * * unknown c\nHOME=/gone\n0 1 * * * root d\n"
    found, configuration = read(text, system=True, homes=homes)
    assert {job.name: job.child.workdir for job in configuration.jobs.values()} == {
        "a": "/root",
        "b": "/",
        "c": None,
        "d": "/",
    }
    assert any("its home /var/www does not exist: cron starts it in /var/spool/cron" in n for n in found.notes["b"])
    assert any("/gone does not exist" in note for note in found.notes["d"])
    assert not any("home" in note for note in found.notes["a"])
    assert any("add `workdir`" in note for note in found.notes["c"])


def test_whose_user_is_told_for_a_crontab_of_a_user() -> None:
    found, _ = read("0 1 * * * a\n", homes=Homes(owner="alice"))
    assert any("in cron as alice" in note for note in found.notes["a"])


def test_users_homes_and_groups() -> None:
    text = "HOME=/srv/$x\n* * * * * a\n"
    assert read(text)[1].jobs["a"].child.workdir == "/srv/$x"
    homes = Homes(lambda user: "/var/www" if user == "www-data" else None)
    found, configuration = read("0 1 * * * www-data:adm a\n", "/etc/crontab", system=True, homes=homes)
    job = configuration.jobs["a"]
    assert (job.child.user, job.child.workdir) == ("www-data", "/var/www")
    assert "group" in found.left_out[0].reason


def test_an_owner_becomes_the_user() -> None:
    path = SAMPLES / "var" / "spool" / "cron" / "crontabs" / "alice"
    given = Given(str(path), path.read_text(), owner=owner_of(str(path)))
    found = import_crontab([given], zone="UTC", now=NOW)
    (job,) = load_texts({"j": found.yaml}, "j").jobs.values()
    assert (job.name, job.child.user) == ("tar", "alice")
    assert any("crontab -e -u alice" in step for step in found.steps)
