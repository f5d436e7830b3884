"""`schedulerd`: reads the settings, starts the daemon, and says what is wrong when it cannot."""

from __future__ import annotations

import argparse
import errno
import faulthandler
import os
import sys
from importlib.metadata import version

from scheduler.core.errors import InvalidInput, SchedulerError, StartError
from scheduler.memory import absent, collect_seldom, keep_together
from scheduler.settings import AFTER_RESTORE, SETTINGS, load_settings
from scheduler.streams import let_go, open_missing_streams, tell

TURN = 0.0005
"""Seconds after which a thread that computes lets another go on. To start a run takes the interpreter a dozen times:
with 200 starts a second and 7 reloads beside them the last was 0.9 to 1.3 s late, with Python's 5 ms 1.3 to 1.5 s."""

EX_CONFIG = 78
EX_FAILED = 1
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)


def parser() -> argparse.ArgumentParser:
    described = argparse.ArgumentParser(
        prog="schedulerd",
        description="The cron daemon. It runs in the foreground; talk to it with schedctl.",
        epilog="Each flag with a value is also an environment variable: --state-dir is SCHEDULER_STATE_DIR.",
    )
    described.add_argument("--version", action="version", version=f"schedulerd {version('schedulerd')}")
    for setting in SETTINGS:
        if setting.secret:
            continue  # Flags show in `ps`; secrets come by environment or file.
        default = f" (default: {setting.default})" if setting.default else ""
        described.add_argument(
            f"--{setting.name.lower().replace('_', '-')}",
            dest=setting.name,
            metavar=setting.name,
            help=(setting.help + default).replace("%", "%%"),
        )
    described.add_argument(
        "--after-restore",
        dest=AFTER_RESTORE,
        action="store_const",
        const="on",
        help="the database was restored from a backup: record what was due since then as missed instead of running it",
    )
    return described


def main(arguments: list[str] | None = None) -> int:
    """Runs until it is told to stop. Exit status 0 after a drain, 74 if the ledger lacks something of it, 78 for a
    start that settings or the file forbid."""
    open_missing_streams(lose_output=True)
    flags = vars(parser().parse_args(arguments))
    keep_together()
    collect_seldom()
    sys.setswitchinterval(TURN)
    faulthandler.enable()  # A watchdog's SIGABRT then tells where each thread was.
    try:
        settings = load_settings(flags, os.environ)
        if settings.plugins:
            # Where everybody who reads the jobs file looks, whether it came as a flag or not.
            os.environ["SCHEDULER_PLUGINS"] = os.pathsep.join(map(str, settings.plugins))
        with absent("rich"):
            import structlog  # noqa: F401 -- takes rich, where it is installed, for tracebacks: 4 MB and 40 ms
        from scheduler.life import Life

        return Life(settings).run()
    except (StartError, InvalidInput) as error:
        tell(f"schedulerd: {error}\n")
        return EX_CONFIG
    except SchedulerError as error:
        tell(f"schedulerd: {error}\n")
        return EX_FAILED
    except OSError as error:
        if error.errno not in _DISK:
            raise
        where = error.filename or "the state directory"
        tell(f"schedulerd: cannot write {where}: {error.strerror}; make room or access, then start it again\n")
        return EX_FAILED
    finally:
        let_go()


if __name__ == "__main__":
    sys.exit(main())
