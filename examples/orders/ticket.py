"""Opens a ticket for the event of this run, once per event; without a run it shows the tickets.

An attempt may be repeated, and somebody may replay an event: what makes it once is the event's id, as the key under
which the desk has the ticket. The desk is a SQLite file here. One that is asked over HTTP takes the id as its
Idempotency-Key, or is asked first whether it has a ticket with that reference.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

DESK = Path("tickets.db")
TABLE = """
CREATE TABLE IF NOT EXISTS tickets (
    number INTEGER PRIMARY KEY, event TEXT NOT NULL UNIQUE, order_no TEXT NOT NULL, via TEXT NOT NULL)
"""


@contextmanager
def desk() -> Iterator[sqlite3.Connection]:
    """One transaction; others wait for it."""
    with closing(sqlite3.connect(DESK, timeout=30)) as connection, connection:
        connection.execute(TABLE)
        yield connection


def open_ticket(event: dict[str, str]) -> str:
    """The ticket of this event, whether it is new or not."""
    with desk() as connection:
        made = connection.execute(
            "INSERT INTO tickets (event, order_no, via) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (event["id"], event["subject"], event["via"]),
        ).rowcount
        (number,) = connection.execute("SELECT number FROM tickets WHERE event = ?", (event["id"],)).fetchone()
    return f"ticket {number} for {event['subject']}: {'opened' if made else 'was there already'}"


def show() -> None:
    with desk() as connection:
        for row in connection.execute("SELECT number, event, order_no, via FROM tickets ORDER BY number"):
            print(*row)


def main() -> int:
    payload = os.environ.get("SCHED_PAYLOAD_FILE")
    if not payload:
        show()
        return 0
    event = json.loads(Path(payload).read_text("utf-8"))["event"]
    line = open_ticket(event)
    print(line)
    report = os.environ.get("SCHED_REPORT_FILE")
    if report:
        with open(report, "a", encoding="utf-8") as file:
            file.write(json.dumps({"result": line}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
