"""What the peers' programs share: stamps (one append of about 2 µs per event), and what the harness asks for.

BENCH_DIR (folder of the stamps), BENCH_N (jobs or tasks), BENCH_DUE (seconds since 1970), BENCH_MODE (noop | cmd |
http), BENCH_CHILD (program that stamps its own start), BENCH_SINK (URL that takes requests), BENCH_PG, BENCH_REDIS,
BENCH_THREADS."""

import os
import random
import subprocess
import time
from pathlib import Path

FOLDER = Path(os.environ["BENCH_DIR"])
N = int(os.environ.get("BENCH_N", "0"))
DUE = float(os.environ.get("BENCH_DUE", "0"))
MODE = os.environ.get("BENCH_MODE", "noop")
SINK = os.environ.get("BENCH_SINK", "")
THREADS = int(os.environ.get("BENCH_THREADS", "1"))
LONG = 3600
_files = {}


def stamp(kind):
    key = (kind, os.getpid())
    file = _files.get(key)
    if file is None:
        place = FOLDER / f"{kind}.{os.getpid()}"
        file = _files[key] = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(file, b"%.6f\n" % time.time())


def child_command():
    return [os.environ["BENCH_CHILD"], str(FOLDER / "started.cmd")]


def run_child():
    subprocess.run(child_command(), check=False)


def ready(what="ready"):
    (FOLDER / what).touch()


def due_fields():
    due = time.gmtime(DUE)
    return {"second": due.tm_sec, "minute": due.tm_min, "hour": due.tm_hour, "day": due.tm_mday, "month": due.tm_mon}


def cron5():
    """minute hour day month * of the due instant, in UTC"""
    due = time.gmtime(DUE)
    return f"{due.tm_min} {due.tm_hour} {due.tm_mday} {due.tm_mon} *"


def far_hour():
    """An hour that does not come while we measure."""
    return (time.gmtime().tm_hour + 12) % 24


def enqueue_all(send, limit=60):
    """N times, stamped, for at most so many seconds."""
    end = time.monotonic() + limit
    for _ in range(N):
        send()
        stamp("enq")
        if time.monotonic() > end:
            break


def _started():
    return sum(file.read_bytes().count(b"\n") for file in FOLDER.glob("started.*"))


def probe(send):
    """Sends N times, each 30 to 80 ms after the one before has started."""
    base = _started()
    for number in range(N):
        time.sleep(0.03 + random.random() * 0.05)
        stamp("enq")
        send()
        end = time.monotonic() + 15
        while _started() < base + number + 1 and time.monotonic() < end:
            time.sleep(0.002)
    ready("done")
