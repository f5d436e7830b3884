"""`python -m tests.chaos.clocked`: the daemon, for libfaketime. That one makes of a sleep until a moment that has just
passed, as short ones are on a busy machine, an error that no kernel knows; so sleeps take another way here."""

from __future__ import annotations

import select
import sys
import time


def _sleep(seconds: float, /) -> None:
    select.select([], [], [], seconds)


if __name__ == "__main__":
    vars(time)["sleep"] = _sleep
    from scheduler.daemon import main

    sys.exit(main([]))
