"""What an HTTP answer to a message means. Some services answer 200 to what they refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from scheduler.core.channel import Answer
from scheduler.core.retry_after import wait

_SHOWN = 200
LONGEST_BODY = 64 * 1024
"""Bytes of an answer that are read."""


def verdict(status: int, reason: str, body: bytes, retry_after: str | None = None) -> Answer:
    """2xx is good, unless the body is JSON that says no: WeCom and DingTalk answer `{"errcode": 93000}`, Feishu
    `{"code": 9499}`, Slack's API `{"ok": false}`."""
    words = f"{status} {reason}".strip()
    shown = " ".join(body[:_SHOWN].decode("utf-8", "replace").split())
    said = f"{words}: {shown}" if shown else words
    if not 200 <= status < 300:
        asked = wait(retry_after, datetime.now(UTC)) if status in (429, 503) else None
        return Answer(False, said, retry_after=asked)
    return Answer(not _says_no(body), said)


def _says_no(body: bytes) -> bool:
    try:
        found = json.loads(body[:LONGEST_BODY])
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    code = found.get("code")
    wrong_code = isinstance(code, int) and not isinstance(code, bool) and code != 0 and not 200 <= code < 300
    return found.get("errcode", 0) not in (0, "0", None) or found.get("ok") is False or wrong_code
