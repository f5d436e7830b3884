"""What the importer of a crontab is told: where cron did otherwise, when jobs run next, how to switch over."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from scheduler.config.command_advice import DETACHING
from scheduler.config.crontab import Entry, LeftOut
from scheduler.config.crontab_columns import owner_of
from scheduler.config.crontab_homes import NOWHERE, Homes
from scheduler.core.schedule import Schedule

FAITHFUL = (
    ("overlap", "allow", "a run starts although the last one is still going"),
    ("catch_up", "none", "what was missed while the machine was off never runs"),
    ("on_lost", "fail", "a run that a crash or reboot cut short is not repeated"),
    ("leftovers", "keep", "processes that a run leaves behind go on, until schedulerd ends (with cron: for ever)"),
)
"""Key, cron's value, its meaning."""

_OURS = "overlap: skip, catch_up: latest, on_lost: retry, leftovers: end (cron: allow, none, fail, keep)"
_OURS_AT_BOOT = "on_lost: retry, leftovers: end (cron: fail, keep)"
_BACKGROUND = re.compile(r"(?<![&>|<])&\s*(?:$|[;)])")
_CRON_NAMES = re.compile(r"\$\{?(?:LOGNAME|USER)\b")
_SYSTEMD = "/run/systemd/system"
_MOST_NAMES = 5


def notes_of(entry: Entry, zone: str, faithful: bool, homes: Homes) -> list[str]:
    """What is, or may be, different from cron for this job; `zone` is the machine's."""
    notes = [*entry.remarks]
    if entry.schedule is None:
        notes.append("@reboot: a job without a schedule; by hand: schedctl run-now JOB")
    if not faithful:
        notes.append(_OURS if entry.schedule is not None else _OURS_AT_BOOT)
    notes += _about_processes(entry, faithful)
    notes += _about_surroundings(entry, faithful, homes)
    if entry.schedule is not None and entry.zone != zone:
        notes.append(f"CRON_TZ={entry.zone} is followed, as cronie does; Debian's cron ignores it")
    if entry.schedule is not None and both_days(entry.schedule):
        notes.append("day of month and day of week are both given: either is enough, as in cron")
    return notes


def _about_processes(entry: Entry, faithful: bool) -> list[str]:
    notes = []
    if DETACHING.search(entry.command) or _BACKGROUND.search(entry.command):
        fate = "goes on until schedulerd ends" if faithful else "is ended with the run"
        notes.append(f"it puts a process into the background, which {fate}; if it must go on, make it a service")
    if _SYSTEMD in entry.command:
        notes.append("on a machine with systemd this line does nothing: a timer does its work there")
    if "\\\\" in entry.command:
        notes.append("two backslashes stay two here; some crons make one of them")
    return notes


def _about_surroundings(entry: Entry, faithful: bool, homes: Homes) -> list[str]:
    notes = []
    if "TZ" in entry.env:
        notes.append("TZ sets the clock of its process only; the schedule follows `timezone`")
    if any("$" in value for value in entry.env.values()):
        notes.append("`$` in a variable line is taken as it is, by cron too")
    home = entry.env.get("HOME")
    missing = homes.missing(home, entry.user)
    if missing is not None:
        notes.append(f"its home {missing} does not exist: cron starts it in /var/spool/cron, here it is {NOWHERE}")
    elif homes.workdir(home, entry.user) is None:
        notes.append("cron starts it in the home directory of its user; here add `workdir` if that matters")
    if entry.user is not None:
        notes.append(f"it runs as {entry.user}, which needs a daemon that runs as root")
    else:
        whose = f"{homes.owner}: start it as {homes.owner}" if homes.owner else "the owner of the crontab: start it so"
        notes.append(f"it runs as the user of the daemon, in cron as {whose}, or add `user`")
    if not faithful and "PATH" not in entry.env:
        notes.append("cron searches programs in /usr/bin:/bin; here in the usual places, /usr/local and sbin included")
    if not faithful and _CRON_NAMES.search(entry.command) and "LOGNAME" not in entry.env:
        notes.append("cron sets LOGNAME (some set USER); here write it below `env`")
    return notes


def both_days(schedule: str) -> bool:
    """Whether cron takes either of day of month and day of week."""
    parts = schedule.split()
    return len(parts) == 5 and not parts[2].startswith("*") and not parts[4].startswith("*")


def about_lines(left_out: Sequence[LeftOut]) -> list[str]:
    """What was lost, line by line; then what is different for the others, each reason once."""
    lines = []
    told: dict[str, list[str]] = {}
    for one in left_out:
        if one.lost:
            lines += [f"lost: {one.place}: {one.text[:120]}", f"    {one.reason}; {one.hint}"]
        else:
            told.setdefault(f"{one.reason}; {one.hint}", []).append(one.place)
    return lines + [f"{_some(places)}: {words}" for words, places in told.items()]


def grouped(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """One line per note, with the jobs it is about."""
    jobs: dict[str, list[str]] = {}
    for name, lines in notes.items():
        for line in lines:
            jobs.setdefault(line, []).append(name)
    return [
        f"{f'all {len(names)} jobs' if 1 < len(names) == len(notes) else _some(names)}: {line}"
        for line, names in jobs.items()
    ]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def next_times(jobs: Mapping[str, Entry], now: datetime) -> list[str]:
    """When each job runs next: the times that its author should recognise."""
    lines = []
    for name, entry in jobs.items():
        if entry.schedule is None:
            continue
        schedule = Schedule((entry.schedule,), entry.zone or "UTC", "cron", name)
        instant = schedule.after(now)
        when = "never" if instant is None else f"{instant.astimezone(schedule.tzinfo):%a %Y-%m-%d %H:%M}"
        lines.append(f"  {when} {schedule.zone}  {name}")
    return ["", "Next times:", *lines] if lines else []


def boot_unit(names: Sequence[str], schedctl: str) -> list[str]:
    """How jobs of `@reboot` are started at a boot."""
    if not names:
        return []
    return [
        "",
        "What ran at @reboot: a service is best (systemd). Or let a unit start these jobs at each boot, as cron did:",
        "  # /etc/systemd/system/schedulerd-boot.service, then: systemctl enable schedulerd-boot.service",
        "  [Unit]",
        "  Wants=schedulerd.service",
        "  After=schedulerd.service",
        "  [Service]",
        "  Type=oneshot",
        "  RemainAfterExit=yes",
        *(f"  ExecStart={schedctl} run-now {name}" for name in names),
        "  [Install]",
        "  WantedBy=multi-user.target",
    ]


def steps_of(jobs: Mapping[str, Entry], shadow: bool, system: Collection[str]) -> list[str]:
    """How to switch over without a doubled or a missed run. `system`: the files with a column for the user, which no
    `crontab -e` edits."""
    count = len(jobs)
    lines = ["", f"{count} job{'' if count == 1 else 's'}. The switch, with this text as the daemon's jobs.yaml:"]
    where = _some([*dict.fromkeys(_editing(entry.file, system) for entry in jobs.values())])
    steps = [
        "schedctl check jobs.yaml      what is wrong with it, and what this machine lacks",
        "schedulerd --config jobs.yaml, or `schedctl reload` if it runs already",
    ]
    if shadow:
        steps[1] += ": nothing runs, every job is disabled"
        steps += [
            "try a job: schedctl run-now JOB --wait      it does its work: cron does it as well",
            f"job by job, between two of its times: comment its line out ({where}), then at once remove "
            "`enabled: false` and schedctl reload",
        ]
    else:
        steps.insert(1, f"between two of these times: comment the lines out ({where}), then at once")
    steps.append("watch: schedctl status; schedctl runs      (back: schedctl pause --all, then the lines in again)")
    return [*lines, *(f"  {number}. {step}" for number, step in enumerate(steps, 1))]


def _editing(file: str, system: Collection[str]) -> str:
    """How its lines are changed."""
    owner = owner_of(file)
    if owner:
        return f"crontab -e -u {owner}"
    if file == "stdin":
        return "where they came from" if file in system else "crontab -e"
    return file if "/" in file or file in system else "crontab -e"
