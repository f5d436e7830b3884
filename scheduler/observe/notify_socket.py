"""The socket of the service manager: who started this daemon hears how it is (sd_notify(3)).

Outside of a service manager there is no such socket, and nothing is said.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

import structlog

log = structlog.get_logger("daemon")

PATIENCE = 5.0
"""Seconds that a message may wait for a service manager that does not read."""


class NotifySocket:
    """Datagrams of lines `NAME=value` to `address`, a path or, after `@`, a name in the abstract namespace.

    A message that cannot be sent is logged, once per outage, and otherwise no reason to stop."""

    def __init__(self, address: str | None, watchdog: float | None) -> None:
        """`watchdog`: seconds without a ping after which the service manager kills this process; None: it does not."""
        self._address = address
        self._unheard = False
        self.watchdog = watchdog

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> NotifySocket:
        """As NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID say."""
        address = environ.get("NOTIFY_SOCKET") or None
        return cls(address, _watchdog(environ) if address else None)

    @property
    def there(self) -> bool:
        """Somebody listens, as far as the environment says."""
        return self._address is not None

    def send(self, **lines: str | int) -> None:
        """One message; line breaks within a value become blanks."""
        if self._address is None:
            return
        text = "\n".join(f"{name}={' '.join(str(value).splitlines())}" for name, value in lines.items())
        place = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(PATIENCE)
                sender.sendto(text.encode(), place)
        except OSError as error:
            if not self._unheard:
                log.warning("service_manager_unheard", address=self._address, reason=str(error))
            self._unheard = True
        else:
            self._unheard = False


def monotonic_usec() -> int:
    """CLOCK_MONOTONIC in microseconds: RELOADING=1 must carry it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def _watchdog(environ: Mapping[str, str]) -> float | None:
    limit, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not limit.isdecimal() or int(limit) == 0 or pid not in ("", str(os.getpid())):
        return None
    return int(limit) / 1e6
