"""`python -m tests.tuned MODULE.NAME=SECONDS ...`: the daemon with other waits than those of the product, so that a
test sees in seconds what takes it longer. A name that the product does not have ends it."""

from __future__ import annotations

import sys
from datetime import timedelta
from importlib import import_module

from scheduler.daemon import main


def tune(text: str) -> None:
    """Sets a constant that its module reads when it needs it. AttributeError if there is none of that name."""
    name, _, seconds = text.partition("=")
    module, _, constant = name.rpartition(".")
    place = import_module(module)
    before = getattr(place, constant)
    setattr(place, constant, timedelta(seconds=float(seconds)) if isinstance(before, timedelta) else float(seconds))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        tune(argument)
    sys.exit(main([]))
