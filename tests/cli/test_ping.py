"""`schedctl ping`: by the socket, and by an address with a token of role ping."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scheduler.cli.main import run
from scheduler.cli.surface import Surface
from scheduler.core.access import Role
from scheduler.core.model import Status
from scheduler.store.store import SqlStore
from tests.faces import Faces, Served

Capture = pytest.CaptureFixture[str]
RID = "0198b6a2-3f4e-7c31-9d27-5a1b2c3d4e5f"
TEXT = """
defaults: {timezone: UTC}
jobs:
  backup: {external: true, schedule: "0 2 * * *"}
  ours: {schedule: "0 2 * * *", command: [x]}
"""


@pytest.fixture
def served(store: SqlStore) -> Iterator[Served]:
    with Faces(store, TEXT).served() as found:
        yield found


@pytest.fixture
def away(served: Served, tmp_path: Path) -> Callable[..., int]:
    assert served.server.address is not None
    url = f"http://127.0.0.1:{served.server.address[1]}"

    def typing(*arguments: str, role: Role = Role.PING, **environ: str) -> int:
        file = tmp_path / role
        if not file.exists():
            file.write_text(served.faces.gate.create(f"of-{role}", role, author="ana")[1])
        given = {"SCHEDCTL_URL": url, "SCHEDCTL_TOKEN_FILE": str(file), "TERM": "dumb"}
        return run(arguments, Surface({**given, **environ}))

    return typing


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ([], Status.COMPLETED, None),
        (["--start"], Status.RUNNING, None),
        (["--fail"], Status.FAILED, None),
        (["--exit-code", "0"], Status.COMPLETED, 0),
        (["--exit-code", "7"], Status.FAILED, 7),
    ],
)
def test_it_says_nothing_where_cron_would_mail_it(
    served: Served, away: Callable[..., int], capsys: Capture, options: list[str], status: Status, code: int | None
) -> None:
    assert away("ping", "backup", *options) == 0
    assert served.schedctl("ping", "backup", *options, "--rid", RID) == 0
    assert capsys.readouterr() == ("", "")
    assert [(one.status, one.exit_code) for one in served.rig.runs()] == [(status, code)] * 2
    assert [one.key == f"ping:{RID}" for one in served.rig.runs()] == [False, True]
    assert served.rig.runs()[0].author == "ping:of-ping"


def test_what_it_printed(served: Served, away: Callable[..., int], capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"line\n")
    assert away("ping", "backup", "--start", "--body", "begun") == 0
    assert away("ping", "backup", "--log", "--body", f"@{tmp_path / 'log'}") == 0
    assert away("ping", "backup", "-o", "json") == 0
    (one,) = served.rig.runs()
    assert json.loads(capsys.readouterr().out) == {"job": "backup", "run_id": one.id}
    assert served.schedctl("logs", "backup") == 0
    assert capsys.readouterr().out.startswith("begun\nline")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nobody"], 4, "there is no such job: nobody"),
        (["ours"], 5, "ours runs here"),
        (["backup", "--start", "--exit-code", "3"], 2, "two different pings"),
        (["backup", "--exit-code", "256"], 2, "256"),
        (["backup", "--rid", "17"], 2, "17"),
        (["backup", "--body", "@/no/such"], 2, "cannot read /no/such"),
    ],
)
def test_what_is_refused(away: Callable[..., int], capsys: Capture, words: list[str], code: int, says: str) -> None:
    assert away("ping", *words) == code
    assert says in capsys.readouterr().err


def test_a_token_that_may_not_ping(away: Callable[..., int], capsys: Capture) -> None:
    assert away("ping", "backup", role=Role.READ) == 5
    assert "schedctl token create NAME --role ping" in capsys.readouterr().err
    assert away("ping", "backup", role=Role.OPERATE) == 0


def test_nobody_there(served: Served, away: Callable[..., int], capsys: Capture) -> None:
    assert away("ping", "backup", SCHEDCTL_URL="http://127.0.0.1:1") == 3
    assert "cannot be reached" in capsys.readouterr().err
    served.rig.store.away = True
    assert away("ping", "backup") == 3


def test_nothing_is_offered_that_would_be_refused(served: Served, capsys: Capture) -> None:
    assert served.schedctl("ping", "backup", "--exit-code", "3", "--body", "no space left") == 0
    for words in (["describe", "backup"], ["logs", "backup"], ["runs", "backup"], ["list"], ["status"]):
        served.schedctl(*words)
        shown = "".join(capsys.readouterr())
        assert not any(word in shown for word in ("run-now", "retry", "cancel")), shown
    served.schedctl("runs", served.rig.runs()[0].id)
    assert "retry" not in "".join(capsys.readouterr())
    served.schedctl("describe", "backup")
    assert "Expected      Tue 02:00 UTC" in " ".join(capsys.readouterr())
