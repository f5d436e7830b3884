"""`schedctl list`: all jobs in a table."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import ago, clock_note, narrow_column, read
from scheduler.cli.verb import verb
from scheduler.cli.words import brief_result_of, run_took

Shown = dict[str, Any]

WORST = ("alarm", "missed", "failing", "late")


@verb("schedctl list", "schedctl list report", "schedctl list --failing -o name", name="list", watched=True)
@click.argument("text", required=False, default="")
@click.option("--missed", "states", flag_value="missed", help="Only jobs without a success by their deadline.")
@click.option("--failing", "states", flag_value="failing", help="Only jobs that fail.")
@click.option("--running", "states", flag_value="running", help="Only jobs that run now.")
@click.option("--paused", "states", flag_value="paused", help="Only paused jobs, and those whose source is paused.")
@click.option("--state", multiple=True, metavar="WORD", help="Only jobs in this state, as the last column says it.")
@click.option("--team", metavar="TEAM", help="Only jobs of this team.")
@click.option("--tag", metavar="TAG", help="Only jobs with this tag.")
def list_jobs(
    surface: Surface, text: str, states: str | None, state: tuple[str, ...], team: str | None, tag: str | None
) -> int:
    """Lists the jobs whose name contains TEXT (default: all)."""
    wanted = [*state, *([states] if states else [])]
    if "missed" in wanted:
        wanted.append("late")
    found = surface.daemon.get("/v1/jobs", {"q": text, "state": wanted, "team": team, "tag": tag})
    jobs = found["jobs"]
    if surface.structured(jobs, [job["name"] for job in jobs]):
        return 0
    if not jobs:
        narrowed = bool(text or wanted or team or tag)
        surface.say("no job matches" if narrowed else "there are no jobs yet: write the first into jobs.yaml")
        surface.then(command_line("list") if narrowed else command_line("diff"))
        return 0
    columns = [
        Column("JOB", 20),
        Column(f"NEXT ({surface.zone})", spare=1),
        Column("LEFT"),
        Column("LAST", spare=2),
        Column("RESULT", 14),
        Column("TOOK", spare=3),
        Column("STATE", 16),
    ]
    times = narrow_column([_coming(job) for job in jobs], surface.zone, surface.now())
    rows = [_row(job, surface, time) for job, time in zip(jobs, times, strict=True)]
    surface.table(columns, rows, [job["state"] for job in jobs])
    surface.say(_sum(jobs))
    note = clock_note(found["now"], surface.now())
    if note is not None:
        surface.say(note)
    if any(job["state"] == "overdue" for job in jobs):
        surface.say("overdue: due and not yet planned; `schedctl status` says what keeps the daemon from it")
    worst = next((job for job in jobs if job["state"] in WORST), None)
    surface.then(command_line("describe", (worst or jobs[0])["name"]))
    return 0


def _coming(job: Shown) -> str | None:
    """When it runs next; what falls into a pause does not."""
    pause, due = job["pause"], read(job["next_run_at"])
    if not job["enabled"] or due is None:
        return None
    ends = None if pause is None else read(pause["until"])
    paused = pause is not None and (ends is None or due < ends)
    return None if paused else str(job["next_run_at"])


def _row(job: Shown, surface: Surface, time: str) -> list[str]:
    now, last = surface.now(), job["last"]
    return [
        job["name"],
        time,
        "-" if time == "-" else ago(job["next_run_at"], now),
        "never" if last is None else ago(last["started_at"], now),
        "-" if last is None else brief_result_of(last, now),
        "-" if last is None else run_took(last, now),
        _state(job, surface),
    ]


def _state(job: Shown, surface: Surface) -> str:
    now, word = surface.now(), job["state"]
    if word in ("missed", "late", "unknown") and job["state_since"]:
        return f"{word} {ago(job['state_since'], now)}"
    if word == "failing":
        return f"failing {job['consecutive_failures']}×"
    if word == "alarm":
        return f"alarm: {job['alarm']}"
    if job["pause"] is not None:
        until = job["pause"]["until"]
        return "paused" if until is None else f"paused, {ago(until, now).removeprefix('in ')} left"
    if job["paused_source"] is not None and word in ("new", "up", "waiting"):
        return "source paused"
    if word == "waiting":
        return f"{job['waiting']} waiting"
    return str(word)


def _sum(jobs: list[Shown]) -> str:
    counts: dict[str, int] = {}
    for job in jobs:
        counts[job["state"]] = counts.get(job["state"], 0) + 1
    states = ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), key=lambda one: -one[1]))
    return f"{counted(len(jobs), 'job')}: {states}"
