"""The doors of a daemon: where it listens, from the first moment of its start, and who may come in by which."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from datetime import datetime

from scheduler.core.access import Gate
from scheduler.core.errors import StartError
from scheduler.settings import Settings
from scheduler.web.app import create_app, create_outside
from scheduler.web.backend import Backend
from scheduler.web.events import Hub
from scheduler.web.front import Front
from scheduler.web.outside import Outside
from scheduler.web.server import WebServer
from scheduler.web.sockets import is_local


class Doors:
    """TCP addresses and a Unix socket. Until `serve` they only tell that the daemon is starting; `reason` says what it
    waits for."""

    def __init__(self, settings: Settings, version: str, reason: Callable[[], str | None]) -> None:
        self._settings = settings
        self._hub: Hub | None = None
        self._tcp = Front(version, reason)
        self._socket = Front(version, reason)
        self._outside = Outside()
        self._server = WebServer(
            self._tcp,
            self._socket,
            settings.listen,
            settings.socket,
            receiving=self._outside,
            webhook_listen=settings.webhook_listen,
        )

    def open(self) -> None:
        """Raises StartError with the address and the remedy."""
        self._server.open()
        self._server.start()

    def serve(self, backend: Backend) -> None:
        self._hub = Hub(backend.bus)
        self._tcp.app = create_app(backend, self._hub, trusted=False)
        self._socket.app = create_app(backend, self._hub, trusted=True)
        self._outside.apps = create_outside(backend)

    def close(self) -> None:
        if self._hub is not None:
            self._hub.close()
        self._server.stop()

    @property
    def address(self) -> str | None:
        """Where TCP is served, as a browser on this machine would write it."""
        return _address(self._server.address)

    @property
    def webhook_address(self) -> str | None:
        """Where webhooks and pings alone are served, likewise; None: nowhere."""
        return _address(self._server.webhook_address)

    def check(self, gate: Gate, now: datetime) -> None:
        """Other machines are let in by tokens alone: StartError for an address that they reach while there is none."""
        host = self._settings.listen[0]
        if not is_local(host) and not any(token.live(now) for token in gate.all()):
            raise StartError(
                f"listening on {host} is refused: other machines reach it, and nobody holds a token",
                hint="start with SCHEDULER_LISTEN=127.0.0.1:8780, make one (schedctl token create NAME --role read), "
                "then listen there; or put a reverse proxy with a login before 127.0.0.1",
            )

    def offer_link(self, gate: Gate) -> None:
        """To whoever sits at the terminal in which the daemon was started."""
        if self.address is not None and self._settings.log_format != "json" and sys.stderr.isatty():
            code = gate.link(author=getpass.getuser())
            link = f"{self.address}/signin?code={code}"
            print(f"Sign in with a browser (once, within ten minutes): {link}", file=sys.stderr)


def _address(bound: tuple[str, int] | None) -> str | None:
    if bound is None:
        return None
    host, port = bound
    if host in ("0.0.0.0", "::"):  # noqa: S104 - every address of this machine, its own loopback among them
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
