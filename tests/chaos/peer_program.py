"""APScheduler 3 with its SQLAlchemyJobStore, run by the peers' Python: every job of the campaign, due every second.

Arguments: the database's URL, the number of jobs, the command of a child (its first argument is the job's name)."""

import subprocess
import sys
import time
from datetime import UTC

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

url, count, child = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def run(name: str) -> None:
    subprocess.run([child, name], check=False)


if __name__ == "__main__":
    # What a pickled job names has to be importable by every process.
    import peer_program  # type: ignore[import-not-found]

    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=url)},
        executors={"default": ThreadPoolExecutor(count + 2)},
        job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        timezone=UTC,
    )
    for number in range(count):
        name = f"job-{number}"
        trigger = CronTrigger(second="*", timezone=UTC)
        scheduler.add_job(peer_program.run, trigger, args=[name], id=name, replace_existing=True)
    while True:
        try:
            scheduler.start()
            break
        except Exception:  # the database is away
            time.sleep(0.2)
    while True:
        time.sleep(3600)
