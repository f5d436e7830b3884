"""`schedctl scan`: one compensation scan, now."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.daemon import part
from scheduler.cli.follow import wait
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import ago, took
from scheduler.cli.verb import verb
from scheduler.cli.verbs.scans import rate, tell_asides, tell_holes
from scheduler.cli.words import waits
from scheduler.core.errors import Refused
from scheduler.core.lifecycle import LOOKED_AT_NOTHING
from scheduler.core.stamp import from_text

Shown = dict[str, Any]

LONG = 5
"""After about so many seconds in which nothing else is to be said, somebody who waits hears that it goes on."""
FOREIGN = "no listed event has come by webhook: either none arrives here, or this is somebody else's list"


@verb("schedctl scan payments-scan", "schedctl scan payments-scan --dry-run")
@click.argument("job", shell_complete=complete_job)
@click.option("--dry-run", is_flag=True, help="Only look what it would find: nothing is stored, no job gets a run.")
def scan(surface: Surface, job: str, dry_run: bool) -> int:
    """Scans now and says what it came to: what the provider lists, what of it the inbox has, what was missing.

    Exit 1 if the scan is not complete."""
    standing = surface.daemon.get("/v1/scans", {"job": job, "limit": 1})["scans"]
    if not standing:
        raise Refused(f"{job} is no scan job any more", hint="a job with `compensate` is one: schedctl scans")
    body: dict[str, Any] = {"cause": "manual", "reason": "scan by hand"}
    if dry_run:
        body |= {"payload": {"dry_run": True}, "reason": "dry run"}
    made = surface.daemon.post(f"/v1/jobs/{part(job)}/runs", body)
    run = made["run_id"]
    if made.get("holdup"):
        surface.say(f"nobody will start it for the time being: {made['holdup']}")
    try:
        seen = wait(surface, run, told=Told(surface))
    except KeyboardInterrupt:
        surface.say(f"\nthe scan goes on; to end it: {command_line('cancel', run[-8:])}")
        raise
    found = surface.daemon.get("/v1/scans", {"job": job, "run": run, "limit": 1})
    report = next(iter(found["reports"]), None)
    code = 0 if report is not None and report["complete"] else 1
    if report is None and (seen["status"] == "COMPLETED" or seen["reason"] == LOOKED_AT_NOTHING):
        code = 0
    if surface.structured(report if report is not None else seen, [run]):
        return code
    if report is None:
        why = seen["error"] or seen["reason"] or (seen["result"] or {}).get("why") or seen["status"]
        surface.say(f"{job}: {why}")
    else:
        _tell(surface, report)
        tell_holes(surface, report["holes"])
        tell_asides(surface, report["asides"])
    surface.then(_next(job, run, report, dry_run=dry_run, good=code == 0))
    return code


class Told:
    """Says once what a scan waits for, and once per attempt why it did not come to its end."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._said: object = None
        self._looked: object = None
        self._running = 0

    def __call__(self, seen: Shown) -> None:
        """Most waiting is over at the next look and not worth a line."""
        if seen["status"] != "PENDING":
            self._running += 1
            if self._running == LONG:
                self._surface.say("the provider is being asked; Ctrl-C leaves it running")
            return
        self._running = 0
        state = seen["attempt"], seen["waits_for"]
        again, self._looked = state == self._looked, state
        if state != self._said and (again or seen["attempt"]):
            self._said = state
            self._surface.say(f"{self._words(seen)}; Ctrl-C leaves it running")

    def _words(self, seen: Shown) -> str:
        if not seen["attempt"]:
            return waits(seen, self._surface.now())
        ended = f"attempt {seen['attempt']} {'failed' if seen['reason'] else 'was put off'}: {seen['error']}"
        when = seen["not_before"]
        return ended if when is None else f"{ended}; next {ago(when, self._surface.now())}"


def _tell(surface: Surface, report: Shown) -> None:
    window = report["window"]
    would = "would be found" if report["dry_run"] else "found"
    ahead = (from_text(window["end"]) - surface.now()).total_seconds()
    clock = "" if ahead <= 0 else f"; the provider's clock is at least {took(ahead)} ahead"
    surface.out(f"window       {surface.when(window['start'])} to {surface.when(window['end'])}{clock}")
    parts = (
        f"{report['known']} known",
        f"{report['injected']} {would}",
        f"{report['too_young']} too young",
        f"{report['undecodable']} unreadable",
    )
    surface.out(f"listed       {report['listed']} = {' + '.join(parts)}")
    asked = f"{counted(report['pages'], 'page')}, {counted(report['calls'], 'call')}, {report['throttled']} throttled"
    surface.out(f"asked        {asked}")
    if report["miss_rate"] is not None:
        surface.out(f"miss rate    {rate(report)}")
    if report["unlisted"]:
        ids = ", ".join(report["unlisted_ids"][:5])
        are = "is" if report["unlisted"] == 1 else "are"
        surface.out(f"unlisted     {report['unlisted']} came by webhook and {are} not in the list: {ids}".rstrip(": "))
    mark = "✓ complete" if report["complete"] else f"✗ not complete: {report['why']}"
    if report["undecodable"]:
        items = counted(report["undecodable"], "item")
        mark += f", but {items} of the list could not be read" if report["complete"] else f"; {items} could not be read"
    surface.say(surface.style("COMPLETED" if report["complete"] else "FAILED", mark))
    if report["known"] == report["late"] and report["known"] + report["injected"]:
        surface.say(FOREIGN)


def _next(job: str, run: str, report: Shown | None, *, dry_run: bool, good: bool) -> str:
    if report is None and good:
        return command_line("scans", job)
    if report is None or not report["complete"]:
        return command_line("logs", run[-8:])
    if dry_run:
        return command_line("scan", job)
    if report["undecodable"]:
        return command_line("scans", job)
    return "schedctl events --missed" if report["injected"] else command_line("scans", job)
