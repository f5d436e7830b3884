"""Telling a daemon about a run that is not its own: pings, by its socket or by SCHEDCTL_URL and a token."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from contextlib import closing

from scheduler.cli.daemon import part, query_string
from scheduler.cli.dial import dial
from scheduler.core.errors import InvalidInput, NotFound, Refused, SchedulerError, Unavailable
from scheduler.core.value_object import value_object

OURS = "Ping-Body-Limit"
"""A header of every answer to a ping."""
NO_KEY = "not found"
"""What somebody hears whose key is not a right one."""


@value_object
class Ping:
    """`what`: empty for a success, else `start`, `fail`, `log` or an exit code. `query`: rid, took, ago."""

    job: str
    what: str = ""
    query: Mapping[str, str | float | None] | None = None
    body: bytes = b""


class Teller:
    """InvalidInput for an address or a token file that cannot be used."""

    def __init__(self, socket_path: str | None, environ: Mapping[str, str]) -> None:
        self._line = dial(socket_path, environ)

    def tell(self, ping: Ping, timeout: float) -> str | None:
        """The id of the run that it was about, None if there was none. `timeout` in seconds, for the connection and for
        the answer. Unavailable: it may be told again. NotFound, Refused, InvalidInput: to no purpose."""
        line = self._line
        path = "/".join(filter(None, ("/ping/-", part(ping.job), ping.what))) + query_string(ping.query)
        try:
            with closing(line.connection(timeout)) as connection:
                connection.request("POST", line.prefix + path, body=ping.body, headers=dict(line.headers))
                answer = connection.getresponse()
                text = answer.read().decode("utf-8", "replace")
        except (http.client.HTTPException, OSError) as error:
            words = "has not answered in time" if isinstance(error, TimeoutError) else f"hung up ({error})"
            raise Unavailable(f"the daemon at {line.place} {words}") from None
        if OURS not in answer.headers:
            raise Unavailable(f"what answers at {line.place} takes no pings", hint="is SCHEDCTL_URL right?")
        if answer.status != 200:
            raise _error(answer.status, text, line.place, ping.job)
        return answer.headers.get("Schedctl-Run")


def _error(status: int, text: str, place: str, job: str) -> SchedulerError:
    reason, _, hint = text.partition("\nhint: ")
    if status == 404 and reason == NO_KEY:
        return Refused(
            f"the daemon at {place} knows no such token, or it may not ping",
            hint="on its machine: schedctl token create NAME --role ping",
        )
    if status == 404:
        reason += f": {job}"
    kinds: dict[int, type[SchedulerError]] = {404: NotFound, 409: Refused, 400: InvalidInput}
    return kinds.get(status, Unavailable)(reason, hint=hint or None)
