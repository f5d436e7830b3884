"""Entry of the supervisor process: `python -I -S .../scheduler/supervisor/__main__.py FD [FD_TO_KEEP …]`.

Run by its path, so that it needs neither an installed package nor anything of `site`.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    for _kept in sys.argv[2:]:
        # The locks on state directory and database file: held as long as this process lives, closed in its children.
        os.set_inheritable(int(_kept), False)
    from scheduler.supervisor.loop import main

    main(int(sys.argv[1]))
