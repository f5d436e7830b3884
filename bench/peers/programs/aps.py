"""APScheduler 3. Role: due | second | idle | first-load | restart | enqueue | latency.

BENCH_STORE: memory | sqlite | pg. misfire_grace_time is None: the default of one second drops what its ten threads do
not reach within a second."""

import logging
import os
import sys
import time
from datetime import UTC

import sqlalchemy
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from stamp import DUE, FOLDER, LONG, MODE, N, due_fields, enqueue_all, far_hour, probe, ready, run_child, stamp

logging.basicConfig(level=logging.ERROR)
STORE = os.environ.get("BENCH_STORE", "memory")


def noop():
    stamp("started")


class Recording(SQLAlchemyJobStore):
    def update_job(self, job):
        super().update_job(job)
        if time.time() >= DUE:
            stamp("recorded")


def engine(fast):
    """`fast`: without fsync, to load jobs before the measurement."""
    if STORE == "pg":
        url = os.environ["BENCH_PG"].replace("postgresql://", "postgresql+psycopg://")
        options = {"options": "-c synchronous_commit=off"} if fast else {}
        return sqlalchemy.create_engine(url, connect_args=options)
    made = sqlalchemy.create_engine(f"sqlite:///{FOLDER}/aps.db")
    if fast:
        sqlalchemy.event.listen(made, "connect", lambda connection, _: connection.execute("pragma synchronous=off"))
    return made


def scheduler(fast=False):
    store = MemoryJobStore() if STORE == "memory" else Recording(engine=engine(fast))
    return BackgroundScheduler(
        jobstores={"default": store},
        job_defaults={"misfire_grace_time": None},
        timezone=UTC,
        executors={"default": ThreadPoolExecutor(10)},
    )


def load(function, trigger):
    """A started scheduler with N jobs."""
    made = scheduler(fast=True)
    made.start(paused=True)
    for number in range(N):
        made.add_job(function, trigger(number), id=f"job-{number}")
    if STORE != "memory":
        made.shutdown(wait=False)
        made = scheduler()
        made.start(paused=True)
    made.resume()
    ready()
    return made


def far(number):
    return CronTrigger(hour=far_hour(), minute=number % 60, timezone=UTC)


role = sys.argv[1]
if role == "due":
    load(run_child if MODE == "cmd" else noop, lambda number: CronTrigger(timezone=UTC, **due_fields()))
elif role == "second":
    load(run_child, lambda number: CronTrigger(second="*", timezone=UTC))
elif role == "idle":
    load(noop, far)
elif role == "first-load":
    load(noop, far).add_job(noop, "interval", seconds=1, id="probe", coalesce=True)
    ready("loaded")
elif role == "restart":
    scheduler().start()
else:
    one = scheduler()
    one.start()
    if role == "enqueue":
        enqueue_all(lambda: one.add_job(noop))
    else:
        ready()
        time.sleep(1)
        probe(lambda: one.add_job(noop))
time.sleep(LONG)
