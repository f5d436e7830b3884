"""Webhooks as most people receive them: Starlette, a signature, one row and one commit per request."""

import hashlib
import hmac
import os
import sqlite3
import time
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

SECRET = os.environ["BENCH_SECRET"].encode()
inbox = sqlite3.connect(Path(os.environ["BENCH_DIR"]) / "inbox.db", isolation_level=None)
inbox.execute("PRAGMA journal_mode=WAL")
inbox.execute("PRAGMA synchronous=FULL")
inbox.execute("CREATE TABLE inbox (id INTEGER PRIMARY KEY, at REAL, signature TEXT, body BLOB)")


async def hook(request: Request) -> JSONResponse:
    body = await request.body()
    signature = request.headers.get("x-hub-signature-256", "")
    if not hmac.compare_digest(signature, "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()):
        return JSONResponse({"error": "signature"}, 401)
    inbox.execute("INSERT INTO inbox (at, signature, body) VALUES (?, ?, ?)", (time.time(), signature, body))
    return JSONResponse({"ok": True}, 202)


app = Starlette(routes=[Route("/hooks/bench", hook, methods=["POST"])])
uvicorn.run(
    app,
    host="127.0.0.1",
    port=int(os.environ["BENCH_PORT"]),
    loop="uvloop",
    http="httptools",
    log_level="error",
    access_log=False,
)
