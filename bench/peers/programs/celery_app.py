"""Celery: module for `celery -A celery_app beat|worker` (BENCH_ROLE: due | idle | restart); run: enqueue | latency."""

import os
import sys
import time

from celery import Celery
from celery.schedules import crontab, schedule
from celery.signals import after_task_publish, beat_init, worker_ready
from stamp import DUE, MODE, N, enqueue_all, far_hour, probe, ready, run_child, stamp

app = Celery("celery_app", broker=os.environ["BENCH_REDIS"])
app.conf.task_ignore_result = True
app.conf.timezone = "UTC"
ROLE = os.environ.get("BENCH_ROLE", "")


@app.task(name="noop")
def noop():
    stamp("started")


@app.task(name="cmd")
def cmd():
    run_child()


def entry(number):
    if ROLE == "due":
        due = time.gmtime(DUE)
        when = crontab(minute=due.tm_min, hour=due.tm_hour, day_of_month=due.tm_mday, month_of_year=due.tm_mon)
    else:
        when = crontab(minute=number % 60, hour=far_hour())
    return {"task": MODE if ROLE == "due" else "noop", "schedule": when}


if ROLE:
    entries = {f"job-{number}": entry(number) for number in range(N)}
    if ROLE == "restart":
        entries["probe"] = {"task": "noop", "schedule": schedule(1.0)}
    app.conf.beat_schedule = entries

    @after_task_publish.connect
    def published(**_):
        stamp("recorded")

    @beat_init.connect
    def begun(**_):
        ready()
else:

    @worker_ready.connect
    def waiting(**_):
        ready()


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue_all(noop.delay, 100)
    else:
        probe(noop.delay)
