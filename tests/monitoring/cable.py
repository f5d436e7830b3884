"""The way from one daemon to PostgreSQL, which a test can cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

SOCKET = ".s.PGSQL.5432"


class Cable:
    """Passes what comes in at a Unix socket in `folder` on to the server of `url` (which is reached by a Unix socket as
    well); `url` of it is what the daemon is given. The folder's name must be short."""

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        (there,) = parse_qs(parts.query)["host"]
        self.url = urlunsplit(parts._replace(query=f"host={folder}"))
        self._there, self._here = f"{there}/{SOCKET}", folder / SOCKET
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.mend()

    def cut(self) -> None:
        """Nobody gets through any more, and who had got through is thrown out."""
        self._listener.close()
        self._here.unlink()
        self._thread.join()
        for pair in self._pairs:
            for end in pair:
                _shut(end)
        self._pairs.clear()

    def mend(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._here))
        self._listener.listen(32)
        self._listener.settimeout(0.05)
        self._thread = threading.Thread(target=self._accept, args=(self._listener,))
        self._thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while listener.fileno() >= 0:
            try:
                near, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            near.setblocking(True)
            far.connect(self._there)
            self._pairs.append((near, far))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_pass, args=(source, target)).start()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _shut(target)
    source.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
