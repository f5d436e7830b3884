"""The least that keeps webhooks: no framework, a signature, and one commit for all that came during the one before."""

import asyncio
import hashlib
import hmac
import os
import sqlite3
import threading
import time
from pathlib import Path

import uvicorn

SECRET = os.environ["BENCH_SECRET"].encode()
TYPE = (b"content-type", b"application/json")
came = []
some = threading.Event()


def write(loop):
    global came
    inbox = sqlite3.connect(Path(os.environ["BENCH_DIR"]) / "inbox.db", isolation_level=None)
    inbox.execute("PRAGMA journal_mode=WAL")
    inbox.execute("PRAGMA synchronous=FULL")
    inbox.execute("CREATE TABLE inbox (id INTEGER PRIMARY KEY, at REAL, signature TEXT, body BLOB)")
    while True:
        some.wait()
        some.clear()
        group, came = came, []
        inbox.execute("BEGIN IMMEDIATE")
        inbox.executemany("INSERT INTO inbox (at, signature, body) VALUES (?, ?, ?)", [one[:3] for one in group])
        inbox.execute("COMMIT")
        loop.call_soon_threadsafe(tell, group)


def tell(group):
    for *_, stored in group:
        if not stored.done():
            stored.set_result(None)


async def app(scope, receive, send):
    loop = asyncio.get_running_loop()
    if scope["type"] == "lifespan":
        await receive()
        threading.Thread(target=write, args=(loop,), daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    signature = next((value for name, value in scope["headers"] if name == b"x-hub-signature-256"), b"")
    signed = b"sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest().encode()
    status, answer = 401, b'{"error":"signature"}'
    if hmac.compare_digest(signature, signed):
        stored = loop.create_future()
        came.append((time.time(), signature.decode(), body, stored))
        some.set()
        await stored
        status, answer = 202, b'{"ok":true}'
    length = (b"content-length", b"%d" % len(answer))
    await send({"type": "http.response.start", "status": status, "headers": [TYPE, length]})
    await send({"type": "http.response.body", "body": answer})


uvicorn.run(
    app,
    host="127.0.0.1",
    port=int(os.environ["BENCH_PORT"]),
    loop="uvloop",
    http="httptools",
    log_level="error",
    access_log=False,
)
