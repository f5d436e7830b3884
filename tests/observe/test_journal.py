from __future__ import annotations

import io
import logging
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pytest
import structlog

from scheduler.observe import journal
from scheduler.observe.journal import Journal, JournalHandler, goes_to_journal, to_fields
from scheduler.observe.logs import configure_logs


def read(datagram: bytes) -> dict[str, str]:
    """As the journal reads it."""
    fields = {}
    while datagram:
        line, _, rest = datagram.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (length,) = struct.unpack_from("<Q", rest)
            value, rest = rest[8 : 8 + length], rest[8 + length + 1 :]
        fields[name.decode()] = value.decode()
        datagram = rest
    return fields


@pytest.fixture
def listening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A journal's socket."""
    monkeypatch.setattr(journal, "SOCKET", str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(journal.SOCKET)
        listener.settimeout(5)
        yield listener


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """What the service manager says leads to the journal."""
    with (tmp_path / "stderr").open("w+") as stream:
        about = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{about.st_dev}:{about.st_ino}")
        yield stream


@contextmanager
def _configured(stream: TextIO) -> Iterator[None]:
    """Logs as the daemon has them."""
    configure_logs("auto", stream)
    yield
    for handler in logging.getLogger().handlers:
        if isinstance(handler, JournalHandler):
            handler.journal.close()


@pytest.mark.usefixtures("logs_as_they_were")
def test_under_a_service_manager_lines_are_fields(listening: socket.socket, stream: TextIO) -> None:
    with _configured(stream):
        at = datetime(2026, 3, 2, 8, tzinfo=UTC)
        structlog.get_logger("engine").warning("run_settled", job_name="a", run_id="r", took=1.5, at=at)
        fields = read(listening.recv(65536))
        assert fields == {
            "MESSAGE": "run_settled job_name=a run_id=r took=1.5 at=2026-03-02T08:00:00Z",
            "PRIORITY": "4",
            "SYSLOG_IDENTIFIER": "schedulerd",
            "EVENT": "run_settled",
            "JOB_NAME": "a",
            "RUN_ID": "r",
            "TOOK": "1.5",
            "AT": "2026-03-02T08:00:00Z",
        }
        logging.getLogger("library").error("text of %s", "others")
        fields = read(listening.recv(65536))
        assert (fields["MESSAGE"], fields["PRIORITY"]) == ("text of others", "3")
        try:
            raise ValueError("oh")
        except ValueError:
            structlog.get_logger("engine").exception("it_broke")
        fields = read(listening.recv(65536))
        assert fields["MESSAGE"].startswith("it_broke\nTraceback")
        assert "ValueError: oh" in fields["MESSAGE"]
    stream.seek(0)
    assert stream.read() == ""


@pytest.mark.usefixtures("logs_as_they_were")
@pytest.mark.parametrize("style", ["json", "console"])
def test_who_asks_for_text_gets_text(stream: TextIO, style: str) -> None:
    configure_logs(style, stream)
    structlog.get_logger("engine").info("started")
    stream.flush()
    stream.seek(0)
    assert "started" in stream.read()


def test_only_the_stream_that_was_named_leads_there(stream: TextIO, tmp_path: Path) -> None:
    assert goes_to_journal(os.environ, stream)
    assert not goes_to_journal({}, stream)
    assert not goes_to_journal(os.environ, io.StringIO())
    with (tmp_path / "other").open("w") as other:
        assert not goes_to_journal(os.environ, other)


@pytest.mark.parametrize("message", ["one_line", "two\nlines"])
def test_without_a_journal_lines_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    monkeypatch.setattr(journal, "SOCKET", str(tmp_path / "nobody"))
    said = io.StringIO()
    sender = Journal(said)
    sender.send(to_fields(None, "info", {"event": message, "level": "info", "n": 1}))
    sender.close()
    assert said.getvalue() == f"{message} n=1\n"


def test_names_and_values_of_any_kind() -> None:
    fields = read(to_fields(None, "info", {"event": "e", "_odd-name": [1, None], "9": "a\nb", "é": "\ud800"}))
    assert fields["ODD_NAME"] == "[1, null]"
    assert fields["FIELD"] in ("a\nb", "?")
    assert set(fields) <= {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "EVENT", "ODD_NAME", "FIELD"}
