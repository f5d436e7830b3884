"""Process settings: where they come from, and what is said about those that cannot be used."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.core.errors import StartError
from scheduler.database_url import usable_url
from scheduler.settings import Settings, load_settings
from tests.daemon.conftest import Make
from tests.daemon.test_start import JOBS, refused

PASSWORD = "hunter2"


def load(environ: dict[str, str] | None = None, **flags: str) -> Settings:
    return load_settings(flags, {"SCHEDULER_STATE_DIR": "/state", **(environ or {})})


def problem(**environ: str) -> str:
    with pytest.raises(StartError) as caught:
        load(environ)
    return str(caught.value)


def test_flags_win_over_the_environment_and_this_over_defaults() -> None:
    environ = {"SCHEDULER_SLOTS": "7", "SCHEDULER_LEASE": "10s"}
    settings = load(environ, SLOTS="9")
    assert (settings.slots, settings.lease, settings.watch) == (9, timedelta(seconds=10), False)


def test_without_a_url_the_database_is_a_file_in_the_state_directory() -> None:
    assert load().database_url == "sqlite:////state/scheduler.db"
    assert load({"SCHEDULER_STATE_DIR": "/odd?dir"}).database_url == "sqlite:////odd?dir/scheduler.db"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("sqlite:////var/x.db", "sqlite:////var/x.db"),
        ("sqlite+pysqlite:////var/x y.db", "sqlite:////var/x y.db"),
        ("postgresql://u:p@h/db", "postgresql://u:p@h/db"),
        ("postgres://u:p@h:5432/db", "postgresql://u:p@h:5432/db"),
        ("postgresql+psycopg2://u:p@h/db?sslmode=require", "postgresql://u:p@h/db?sslmode=require"),
        ("POSTGRESQL://h", "postgresql://h"),
        ("postgresql://u@/db?host=/run/postgresql", "postgresql://u@/db?host=/run/postgresql"),
        ("postgresql:///db", "postgresql:///db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql://u:p%40w%2F@h/db", "postgresql://u:p%40w%2F@h/db"),
        ("postgresql://u:p/w?x#y:z@h/db", "postgresql://u:p/w?x#y:z@h/db"),
    ],
)
def test_addresses_that_can_be_used(given: str, taken: str) -> None:
    assert usable_url(given) == taken


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///:memory:", "nothing in memory would survive"),
        ("sqlite://", "nothing in memory would survive"),
        ("sqlite:///file::memory:?cache=shared", "nothing in memory would survive"),
        ("sqlite:///scheduler.db", "four slashes: sqlite:////var/lib/schedulerd/scheduler.db"),
        ("sqlite:///var/lib/x.db", "four slashes"),
        ("sqlite://var/lib/x.db", "four slashes"),
        ("sqlite:/var/lib/x.db", "four slashes"),
        ("sqlite:////var/x.db?mode=ro", "options behind the path"),
        ("/var/lib/x.db", "it is no URL"),
        (PASSWORD, "it is no URL"),
        (f"mysql://u:{PASSWORD}@h/db", "no support for mysql: write postgresql://user:password@host:5432/name"),
        (f"mysql+pymysql://u:{PASSWORD}@h/db", "no support for mysql"),
        (f"postgresql:u:{PASSWORD}@h/db", "// is missing"),
        (f"postgresql://u:{PASSWORD}@x@h/db", "write @ as %40"),
        (f"postgresql://u@corp:{PASSWORD}@h/db", "write @ as %40"),
        (f"postgresql://u:{PASSWORD} x@h/db", "a blank as %20"),
        (f"postgresql://u:{PASSWORD}@h:port/db", "the port is no number"),
        (f"postgresql://u:{PASSWORD}@h:1,g:2/db", "the port is no number"),
        (f"postgresql://u@h/db?sslmode=require&password={PASSWORD}", "a password among the options"),
        (f"postgresql://h/db?password={PASSWORD}@", "a password among the options"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused_without_being_shown(url: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        usable_url(url)
    assert said in str(caught.value)
    assert PASSWORD not in str(caught.value)
    told = problem(SCHEDULER_DATABASE_URL=url)
    assert f"SCHEDULER_DATABASE_URL: {caught.value}" in told
    assert PASSWORD not in told


def test_the_daemon_says_so_and_ends_with_78(make_world: Make) -> None:
    said = refused(make_world(JOBS), SCHEDULER_DATABASE_URL=f"mysql://u:{PASSWORD}@h/db")
    assert "there is no support for mysql" in said
    assert PASSWORD not in said


def test_the_url_can_lie_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://u:p@h/db\n")
    assert load({"SCHEDULER_DATABASE_URL_FILE": str(file)}).database_url == "postgresql://u:p@h/db"


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read: No such file"), (b"", "is empty"), (b"\xff\xfe", "is no UTF-8 text")]
)
def test_a_file_without_a_url_is_not_passed_over(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    assert said in problem(SCHEDULER_DATABASE_URL_FILE=str(file))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SLOTS", "many", "a number from 1 to 4096"),
        ("SLOTS", "0", "a number from 1 to 4096"),
        ("SLOTS", "1_0", "a number from 1 to 4096"),
        ("WATCH", "yes", "on or off"),
        ("LISTEN", "8780", "HOST:PORT"),
        ("WEBHOOK_LISTEN", "8781", "HOST:PORT"),
        ("LEASE", "1s", "shorter than 3s"),
        ("DRAIN_TIMEOUT", "5", "5"),
        ("LOG_FORMAT", "xml", "auto, console or json"),
        ("JOB_HISTOGRAMS", "yes", "on or off"),
        ("PLUGINS", "/nowhere/at-all", "there is no folder /nowhere/at-all; make it"),
        ("SLOTZ", "1", "no such setting"),
    ],
)
def test_what_cannot_be_used_is_named_with_a_remedy(name: str, value: str, said: str) -> None:
    told = problem(**{f"SCHEDULER_{name}": value})
    assert f"SCHEDULER_{name}" in told
    assert said in told


def test_plugins_are_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load({"SCHEDULER_PLUGINS": f"a:{tmp_path}:"}).plugins == (tmp_path / "a", tmp_path)
    assert load({}).plugins == ()


def test_webhooks_have_no_address_of_their_own_unless_one_is_given() -> None:
    assert load().webhook_listen is None
    assert load({"SCHEDULER_WEBHOOK_LISTEN": "[::]:8781"}).webhook_listen == ("::", 8781)


def test_all_at_once() -> None:
    told = problem(SCHEDULER_SLOTS="x", SCHEDULER_LEASE="x", SCHEDULER_DATABASE_URL="x")
    assert all(name in told for name in ("SCHEDULER_SLOTS", "SCHEDULER_LEASE", "SCHEDULER_DATABASE_URL"))


def test_a_user_without_a_home_must_name_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("os.geteuid", lambda: 4711)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(StartError, match="SCHEDULER_STATE_DIR: this user has no home directory"):
        load_settings({}, {})
    assert load_settings({}, {"XDG_STATE_HOME": "/x"}).state_dir == Path("/x/schedulerd")


def test_links_begin_with_the_address_that_people_use() -> None:
    assert load().public_url == ""
    assert load({"SCHEDULER_PUBLIC_URL": "https://cron.example.com/x/"}).public_url == "https://cron.example.com/x"
    for wrong in ("cron.example.com", "https://", "https://h?x=1", "ftp://h"):
        assert "SCHEDULER_PUBLIC_URL" in problem(SCHEDULER_PUBLIC_URL=wrong)


def test_the_url_that_is_pinged_may_come_from_a_file(tmp_path: Path) -> None:
    assert load().ping_url == ""
    file = tmp_path / "ping"
    file.write_text(f"https://hc.example/{PASSWORD}\n")
    assert load({"SCHEDULER_PING_URL_FILE": str(file)}).ping_url == f"https://hc.example/{PASSWORD}"
    assert load(PING_URL="https://hc.example/flag").ping_url == "https://hc.example/flag"


@pytest.mark.parametrize(
    "url", [f"hc.example/{PASSWORD}", f"ftp://hc.example/{PASSWORD}", f"https://hc.example/a {PASSWORD}"]
)
def test_a_url_that_cannot_be_pinged_is_refused_and_not_shown(url: str) -> None:
    said = problem(SCHEDULER_PING_URL=url)
    assert "SCHEDULER_PING_URL: write a URL in full" in said
    assert PASSWORD not in said
