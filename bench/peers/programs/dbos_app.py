"""DBOS Transact on PostgreSQL. Role: schema | work | enqueue | latency."""

import http.client
import os
import sys
import threading
import time
from urllib.parse import urlsplit

from dbos import DBOS, DBOSClient
from stamp import LONG, MODE, SINK, enqueue_all, probe, ready, stamp

URL = os.environ["BENCH_PG"]
QUEUE = "bench_q"
POLL = 1.0  # seconds; the library's default
OPTIONS = {"queue_name": QUEUE, "workflow_name": MODE, "app_version": "v1"}


@DBOS.workflow()
def noop():
    stamp("started")


kept = threading.local()


@DBOS.step()
def post():
    if not hasattr(kept, "connection"):
        kept.connection = http.client.HTTPConnection(urlsplit(SINK).netloc)
    kept.connection.request("POST", "/", b'{"order": 1}', {"Content-Type": "application/json"})
    answer = kept.connection.getresponse()
    answer.read()
    assert answer.status == 200


@DBOS.workflow(name="http")
def request():
    post()


role = sys.argv[1]
if role in ("schema", "work"):
    settings = {"name": "bench", "system_database_url": URL, "log_level": "ERROR", "application_version": "v1"}
    DBOS(config={**settings, "run_admin_server": False})
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLL)
    if role == "schema":
        DBOS.destroy()
    else:
        time.sleep(1)
        ready()
        time.sleep(LONG)
else:
    os.environ["DBOS__VMID"] = "enqueuer"
    client = DBOSClient(system_database_url=URL)
    if role == "enqueue":
        enqueue_all(lambda: client.enqueue(OPTIONS))
    else:
        probe(lambda: client.enqueue(OPTIONS))
