"""procrastinate. Role: schema | due | work | enqueue | enqueue-batch | latency."""

import asyncio
import logging
import os
import sys
import time

import aiohttp
from procrastinate import App, PsycopgConnector
from procrastinate.manager import JobManager
from stamp import DUE, MODE, SINK, THREADS, N, child_command, cron5, probe, ready, stamp

logging.basicConfig(level=logging.ERROR)
app = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_PG"], max_size=max(4, THREADS + 2)))
BATCH = 1000


@app.task(name="noop")
async def noop(timestamp=None):
    stamp("started")


@app.task(name="cmd")
async def cmd(timestamp=None):
    process = await asyncio.create_subprocess_exec(*child_command())
    await process.wait()


@app.task(name="http")
async def http():
    async with sessions[0].post(SINK, json={"order": 1}) as answer:
        answer.raise_for_status()
        await answer.read()


task = {"noop": noop, "cmd": cmd, "http": http}[MODE]
sessions = []


def make_periodic():
    when = f"{cron5()} {time.gmtime(DUE).tm_sec}"
    for number in range(N):
        app.periodic(cron=when, periodic_id=f"job-{number}")(task)
    defer = JobManager.defer_periodic_job

    async def recorded(self, **arguments):
        result = await defer(self, **arguments)
        stamp("recorded")
        return result

    JobManager.defer_periodic_job = recorded


async def enqueue():
    end = time.monotonic() + 60
    for _ in range(N):
        await task.defer_async()
        stamp("enq")
        if time.monotonic() > end:
            break


async def enqueue_batches():
    for first in range(0, N, BATCH):
        size = min(BATCH, N - first)
        await task.batch_defer_async(*[{} for _ in range(size)])
        for _ in range(size):
            stamp("enq")


async def main(role):
    if role == "due":
        make_periodic()
    async with app.open_async(), aiohttp.ClientSession() as session:
        sessions.append(session)
        if role == "schema":
            await app.schema_manager.apply_schema_async()
        elif role in ("due", "work"):
            asyncio.get_running_loop().call_later(1.0, ready)
            await app.run_worker_async(concurrency=THREADS, install_signal_handlers=False, delete_jobs="never")
        elif role == "enqueue":
            await enqueue()
        elif role == "enqueue-batch":
            await enqueue_batches()
        else:
            loop = asyncio.get_running_loop()
            await asyncio.to_thread(probe, lambda: asyncio.run_coroutine_threadsafe(noop.defer_async(), loop).result())


asyncio.run(main(sys.argv[1]))
