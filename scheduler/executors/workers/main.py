"""Entry of a worker process: `python -P -m scheduler.executors.workers.main KIND [PYTHONPATH]`, channel on 3. KIND is
`call`, `compensate` or `http`."""

from __future__ import annotations

import socket
import sys

from scheduler.executors.workers.wire import CHANNEL_FD


def main(kind: str, python_path: str) -> None:
    """Serve until the channel ends. Imports happen here so that a worker has only what its kind needs."""
    channel = socket.socket(fileno=CHANNEL_FD)
    channel.set_inheritable(False)
    if kind == "http":
        from scheduler.executors.workers.http_worker import serve as serve_http

        serve_http(channel)
    elif kind == "compensate":
        from scheduler.executors.workers.compensate_worker import CompensateWorker

        CompensateWorker(channel).serve()
    else:
        from scheduler.executors.workers.call_worker import CallWorker

        CallWorker(channel, python_path).serve()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
