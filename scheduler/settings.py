"""Process settings: flags, else environment (`SCHEDULER_*`), else defaults. Read once, at start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput, StartError
from scheduler.core.value_object import value_object
from scheduler.database_url import usable_url


@value_object
class Setting:
    """`name` is the word after SCHEDULER_ and, with dashes, the flag."""

    name: str
    default: str
    help: str
    secret: bool = False


SETTINGS = (
    Setting("CONFIG", "jobs.yaml", "the jobs file, or a directory of them"),
    Setting("WATCH", "off", "reload by itself when the file changes (on | off)"),
    Setting("DATABASE_URL", "", "postgresql://… (default: scheduler.db in the state directory)", secret=True),
    Setting("STATE_DIR", "", "where the lock, the socket, outputs and the SQLite file live"),
    Setting("LISTEN", "127.0.0.1:8780", "address of the HTTP API and of /metrics"),
    Setting("WEBHOOK_LISTEN", "", "a second address that serves webhooks alone, for the internet (default: none)"),
    Setting("SOCKET", "", "Unix socket for schedctl (default: schedctl.sock in the state directory)"),
    Setting("PUBLIC_URL", "", "where people reach this daemon; links in notifications begin with it (default: none)"),
    Setting("PING_URL", "", "a dead man's switch that the daemon pings once a minute (default: none)", secret=True),
    Setting("ENVIRONMENT", "default", "name of the installation; another name in the database refuses to start"),
    Setting("LEASE", "3m", "how long a silent node keeps its runs (PostgreSQL only)"),
    Setting("SLOTS", "64", "runs at once on this node"),
    Setting("QUEUES", "", "queues this node serves, comma-separated (default: all)"),
    Setting("PLUGINS", "", "folders with compensators of your own, separated by : (default: none)"),
    Setting("DRAIN_TIMEOUT", "5m", "how long SIGTERM waits for running work"),
    Setting("LOG_FORMAT", "auto", "auto | console | json"),
    Setting("JOB_HISTOGRAMS", "off", "in /metrics, 18 series per job for how long its runs take, not 2 (on | off)"),
)

AFTER_RESTORE = "AFTER_RESTORE"

_SECRET = frozenset(setting.name for setting in SETTINGS if setting.secret)


@value_object
class Settings:
    config: Path
    watch: bool
    database_url: str
    state_dir: Path
    listen: tuple[str, int]
    webhook_listen: tuple[str, int] | None
    socket: Path
    public_url: str
    ping_url: str
    environment: str
    lease: timedelta
    slots: int
    queues: tuple[str, ...] | None
    plugins: tuple[Path, ...]
    drain_timeout: timedelta
    log_format: str
    job_histograms: bool
    after_restore: bool
    """Only a flag: it is meant for one start, and an environment stays."""


def load_settings(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Settings:
    """Flags win over environment variables, these over defaults; `SCHEDULER_X_FILE` names a file that holds a secret X.

    Raises StartError naming every setting that cannot be used."""
    values: dict[str, str] = {}
    problems: list[str] = []
    for setting in SETTINGS:
        values[setting.name] = _lookup(setting, flags, environ, problems)
    known = {f"SCHEDULER_{setting.name}" for setting in SETTINGS}
    known |= {f"SCHEDULER_{setting.name}_FILE" for setting in SETTINGS if setting.secret}
    problems.extend(
        f"{name}: no such setting; see schedulerd --help"
        for name in environ
        if name.startswith("SCHEDULER_") and name not in known
    )
    state_dir = _state_dir(values["STATE_DIR"], environ, problems)

    def parsed(name: str, parse: Any, fallback: Any) -> Any:
        try:
            return parse(values[name])
        except (ValueError, InvalidInput) as error:
            shown = "" if name in _SECRET else f"={values[name]!r}"
            problems.append(f"SCHEDULER_{name}{shown}: {error}")
            return fallback

    beside = f"sqlite:///{state_dir / 'scheduler.db'}"
    settings = Settings(
        config=Path(values["CONFIG"]),
        watch=parsed("WATCH", _switch, False),
        database_url=parsed("DATABASE_URL", lambda url: usable_url(url) if url else beside, ""),
        state_dir=state_dir,
        listen=parsed("LISTEN", _address, ("127.0.0.1", 0)),
        webhook_listen=parsed("WEBHOOK_LISTEN", lambda text: _address(text) if text else None, None),
        socket=Path(values["SOCKET"]) if values["SOCKET"] else state_dir / "schedctl.sock",
        public_url=parsed("PUBLIC_URL", _public_url, ""),
        ping_url=parsed("PING_URL", _ping_url, ""),
        environment=values["ENVIRONMENT"],
        lease=parsed("LEASE", _lease, timedelta(minutes=3)),
        slots=parsed("SLOTS", _slots, 64),
        queues=tuple(part.strip() for part in values["QUEUES"].split(",") if part.strip()) or None,
        plugins=parsed("PLUGINS", _folders, ()),
        drain_timeout=parsed("DRAIN_TIMEOUT", parse_duration, timedelta(minutes=5)),
        log_format=parsed("LOG_FORMAT", _log_format, "auto"),
        job_histograms=parsed("JOB_HISTOGRAMS", _switch, False),
        after_restore=flags.get(AFTER_RESTORE) is not None,
    )
    if problems:
        raise StartError("settings cannot be used:\n  " + "\n  ".join(problems))
    return settings


def _folders(text: str) -> tuple[Path, ...]:
    found = tuple(Path(one).absolute() for one in text.split(os.pathsep) if one)
    for one in found:
        if not one.is_dir():
            raise ValueError(f"there is no folder {one}; make it, or correct the setting")
    return found


def default_state_dir(environ: Mapping[str, str]) -> str:
    """`/var/lib/schedulerd` for root, else `$XDG_STATE_HOME/schedulerd`."""
    if os.geteuid() == 0:
        return "/var/lib/schedulerd"
    base = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return str(Path(base) / "schedulerd")


def _state_dir(given: str, environ: Mapping[str, str], problems: list[str]) -> Path:
    try:
        return Path(given or default_state_dir(environ)).absolute()
    except RuntimeError:
        problems.append("SCHEDULER_STATE_DIR: this user has no home directory; name a directory that it can write")
        return Path("/nonexistent")


def _lookup(setting: Setting, flags: Mapping[str, str | None], environ: Mapping[str, str], problems: list[str]) -> str:
    flag = flags.get(setting.name)
    if flag is not None:
        return flag
    name = f"SCHEDULER_{setting.name}"
    file = environ.get(f"{name}_FILE") if setting.secret else None
    if file is not None:
        return _read(f"{name}_FILE", file, problems)
    return environ.get(name, setting.default)


def _read(name: str, file: str, problems: list[str]) -> str:
    try:
        text = Path(file).read_text("utf-8").strip()
    except OSError as error:
        problems.append(f"{name}={file}: cannot be read: {error.strerror}")
    except ValueError:
        problems.append(f"{name}={file}: is no UTF-8 text")
    else:
        if not text:
            problems.append(f"{name}={file}: is empty")
        return text
    return ""


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError("write on or off")
    return text == "on"


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("write HOST:PORT, for example 127.0.0.1:8780")
    return host.strip("[]") or "127.0.0.1", int(port)


def _public_url(text: str) -> str:
    if text and not re.match(r"https?://[^\s/?#]+(/[^\s?#]*)?$", text, re.IGNORECASE):
        raise ValueError("is no address of a web server; write https://schedules.example.com")
    return text.rstrip("/")


def _ping_url(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s/?#]\S*", text, re.IGNORECASE):
        raise ValueError("write a URL in full, beginning with http:// or https://")
    return text


def _lease(text: str) -> timedelta:
    lease = parse_duration(text)
    if lease < timedelta(seconds=3):
        raise ValueError("a lease shorter than 3s cannot be kept up")
    return lease


def _slots(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= 4096:
        raise ValueError("write a number from 1 to 4096")
    return int(text)


def _log_format(text: str) -> str:
    if text not in ("auto", "console", "json"):
        raise ValueError("write auto, console or json")
    return text
