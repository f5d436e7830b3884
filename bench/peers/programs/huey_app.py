"""huey on SQLite (WAL, fsync). Role: due | work | enqueue | latency."""

import logging
import sys
import time

from huey import SqliteHuey, crontab
from stamp import DUE, FOLDER, MODE, THREADS, N, cron5, enqueue_all, probe, ready, run_child, stamp

logging.basicConfig(level=logging.ERROR)
huey = SqliteHuey("bench", filename=str(FOLDER / "huey.db"), fsync=True, results=False)


def noop():
    stamp("started")


def consume(periodic):
    consumer = huey.create_consumer(workers=THREADS, worker_type="thread", periodic=periodic, scheduler_interval=1)
    ready()
    consumer.run()


role = sys.argv[1]
if role == "due":
    minute, hour, day, month, _ = cron5().split()
    for number in range(N):
        when = crontab(minute=minute, hour=hour, day=day, month=month)
        huey.periodic_task(when, name=f"job-{number}")(run_child if MODE == "cmd" else noop)
    enqueue = huey.enqueue

    def recorded(task):
        result = enqueue(task)
        stamp("recorded")
        return result

    huey.enqueue = recorded
    ready()
    # Its check runs once a minute from its own start: really 0 to 60 s late, here as if it had started on the minute.
    time.sleep(max(0.0, DUE - time.time()))
    consume(True)
else:
    task = huey.task(name="noop")(noop)
    if role == "work":
        consume(False)
    elif role == "enqueue":
        enqueue_all(task)
    else:
        probe(task)
