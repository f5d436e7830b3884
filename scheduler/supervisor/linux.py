"""The few Linux calls that Python 3.11 does not offer, and the clock that counts suspend."""

from __future__ import annotations

import ctypes
import os
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
_libc_prctl = _libc.prctl
_libc_prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children from now on (prctl(2), not inherited)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_on_parent_death(signal_number: int) -> None:
    """This process gets the signal when the thread that forked it ends; fork and set-uid exec clear it."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def boottime() -> float:
    """Seconds since boot, suspend included: the clock on which trust is measured."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """An id that changes with every boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _prctl(option: int, value: int) -> None:
    if _libc_prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"prctl {option}")
