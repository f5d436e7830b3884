"""`python -m tests.idle.counting_daemon FILE`: a daemon that writes into FILE what it says to its database, a statement
a line, and a line `look` for each second. Its seconds are short."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from scheduler.daemon import main
from scheduler.engine import daemon, lookout
from scheduler.engine.lookout import Lookout

SECOND = 0.25


def count(file: Path) -> None:
    sink = file.open("a", buffering=1)
    ask = Lookout._ask

    def told(self: Lookout, *found: Any) -> Any:
        sink.write("look\n")
        return ask(self, *found)

    @event.listens_for(Engine, "before_cursor_execute")
    def _execute(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        for one in statement.split("; "):
            words = " ".join(one.split())
            if not words.startswith(("BEGIN", "SET ")):
                sink.write(f"{words}\n")

    Lookout._ask = told  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    daemon.INTERVAL, lookout.FRESH = SECOND, SECOND / 2
    count(Path(sys.argv[1]))
    sys.exit(main([]))
