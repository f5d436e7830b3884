"""schedctl on another machine: over TCP, with a token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scheduler.cli.main import run
from scheduler.cli.surface import Surface
from tests.faces import Served

Capture = pytest.CaptureFixture[str]
Typing = Callable[..., int]


@pytest.fixture
def token(served: Served, capsys: Capture, tmp_path: Path) -> Path:
    served.schedctl("token", "create", "ana", "--role", "operate", "-o", "name")
    file = tmp_path / "token"
    file.write_text(capsys.readouterr().out)
    return file


@pytest.fixture
def away(served: Served, token: Path) -> Typing:
    assert served.server.address is not None
    host, port = served.server.address

    def typing(*arguments: str, **environ: str) -> int:
        given = {"SCHEDCTL_URL": f"http://{host}:{port}", "SCHEDCTL_TOKEN_FILE": str(token), "TERM": "dumb"}
        surface = Surface({**given, **environ})
        surface.now = served.rig.clock.now
        return run(arguments, surface)

    return typing


def test_everything_as_on_the_daemons_machine(served: Served, away: Typing, capsys: Capture) -> None:
    assert away("list", "-o", "name") == 0
    assert capsys.readouterr().out.split() == ["minutely", "quiet", "report", "ticket"]
    assert away("run-now", "ticket", "--reason", "from afar") == 0
    (run,) = served.rig.runs("ticket")
    assert (run.note, run.author) == ("from afar", "token:ana")
    capsys.readouterr()
    assert away("runs", run.id) == 0
    assert 'by hand (token:ana): "from afar"' in capsys.readouterr().out
    served.rig.tick()
    served.rig.finish()
    assert away("logs", "ticket") == 0
    assert capsys.readouterr().out == "printed\n"
    assert away("describe", "nobody") == 4


def test_an_address_with_a_path_or_a_slash(served: Served, away: Typing, capsys: Capture) -> None:
    assert served.server.address is not None
    place = f"http://127.0.0.1:{served.server.address[1]}"
    assert away("nodes", SCHEDCTL_URL=f"{place}/") == 0
    assert away("nodes", SCHEDCTL_URL=f"{place}/below") == 4


def test_a_socket_that_is_named_goes_before(served: Served, away: Typing) -> None:
    assert away("--socket", str(served.socket), "list", SCHEDCTL_URL="http://nowhere.invalid") == 0


def test_a_token_that_is_not_known_is_refused(away: Typing, tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "other"
    other.write_text("sched_nonsense")
    assert away("list", SCHEDCTL_TOKEN_FILE=str(other)) == 5
    assert "this token is not known here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"SCHEDCTL_URL": "localhost:8780"}, "SCHEDCTL_URL is no address"),
        ({"SCHEDCTL_URL": "ftp://host"}, "SCHEDCTL_URL is no address"),
        ({"SCHEDCTL_URL": "http://host:port"}, "SCHEDCTL_URL is no address"),
        ({"SCHEDCTL_TOKEN_FILE": ""}, "SCHEDCTL_URL needs SCHEDCTL_TOKEN_FILE"),
        ({"SCHEDCTL_TOKEN_FILE": "/no/such/file"}, "cannot read /no/such/file: No such file or directory"),
        ({"SCHEDCTL_TOKEN_FILE": "/dev/null"}, "does not hold one token"),
    ],
)
def test_what_is_wrong_with_the_settings_is_said(
    away: Typing, capsys: Capture, environ: dict[str, str], said: str
) -> None:
    assert away("list", **environ) == 1
    assert said in capsys.readouterr().err


def test_an_address_that_nobody_serves(away: Typing, capsys: Capture) -> None:
    assert away("list", SCHEDCTL_URL="http://127.0.0.1:1") == 3
    assert "http://127.0.0.1:1 cannot be reached: Connection refused" in capsys.readouterr().err
    assert away("list", SCHEDCTL_URL="http://name:secret@127.0.0.1:1") == 3
    assert "secret" not in capsys.readouterr().err
