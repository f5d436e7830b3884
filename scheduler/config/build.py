"""Values of one job → a Job, with everything that can be wrong about it told at once."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from scheduler.config.actions.base import Options
from scheduler.config.actions.compensate import CompensateOptions
from scheduler.config.actions.registry import Actions
from scheduler.config.bundle import MERGED, Bundle
from scheduler.config.elsewhere import check_external
from scheduler.config.fields import NAME_RULE, to_name
from scheduler.config.interpolation import Interpolation
from scheduler.config.models import retries as retries_of
from scheduler.config.models.job import JobModel, job_model
from scheduler.config.models.queue import SCANS
from scheduler.config.problem import Path
from scheduler.config.refusal import shown
from scheduler.config.timing import Timing
from scheduler.config.translate import complaints, meant
from scheduler.config.triggers import check_triggers
from scheduler.config.written import action_of, canonical, definition_of, fingerprint_of
from scheduler.core.job import (
    EXTERNAL,
    After,
    CatchUp,
    Child,
    Job,
    Leftovers,
    Limits,
    OnLost,
    Overlap,
    Watch,
    lock_key,
)
from scheduler.core.model import Status
from scheduler.core.secret import Secret
from scheduler.core.source import Compensate, OnEvent, Order

_PLAIN = Child()
_BACKSTOP = timedelta(hours=24)
_WINDOWS = {"latest": timedelta(days=7), "all": timedelta(hours=24), "none": timedelta(days=7)}

_JUDGED_IN_PARTS = {"on_event": 2, "compensate": 3}
"""Keys of which what is right is judged though a part is wrong: a part lies so deep at most."""


class Builder:
    """Builds one job after the other; problems go to the bundle.

    `queues`, `chains`, `events`, `scans`, `channels` and `secrets` tell what the jobs refer to, also those that are
    wrong otherwise: the queue of each, the job after which it runs, what events start it, what it scans, by which
    channels people are told of it, its secrets by their path below the job. `told`: for each job that was refused, the
    paths below it that are wrong by themselves."""

    def __init__(
        self,
        bundle: Bundle,
        actions: Actions,
        defaults: Mapping[str, Any],
        broken: Set[str],
        interpolation: Interpolation,
    ) -> None:
        """`defaults` are those that are right, `broken` the keys of the others."""
        self.queues: dict[str, str] = {}
        self.chains: dict[str, str] = {}
        self.events: dict[str, OnEvent] = {}
        self.scans: dict[str, Compensate] = {}
        self.channels: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self.secrets: dict[str, dict[Path, Secret]] = {}
        self.told: dict[str, set[Path]] = {}
        self._bundle = bundle
        self._actions = actions
        self._kinds = tuple(actions)
        self._model = job_model(actions)
        self._defaults = defaults
        self._broken = broken
        self._merged_defaults = [key for key in MERGED if isinstance(defaults.get(key), dict)]
        self._interpolation = interpolation
        self._name = ""
        self._own: Mapping[str, Any] = {}

    def build(self, name: str, own: Any) -> Job | None:
        """The job; None if something is wrong with it."""
        self._name = name
        before = len(self._bundle.problems)
        if not isinstance(own, dict):
            reason = "the job is empty" if own is None else f"{shown(own)} where the job's keys are expected"
            self._complain((), reason, "write at least its action, such as `command`, below it", key=True)
            return None
        self._own = own
        model, broken = self._validate(self._merge(own))
        job = self._job(model, broken)
        return None if len(self._bundle.problems) > before else job

    def _merge(self, own: Mapping[str, Any]) -> dict[str, Any]:
        values = {**self._defaults, **own} if None not in own.values() else dict(self._defaults)
        if None in own.values():
            values.update((key, value) for key, value in own.items() if value is not None)
        for key in self._merged_defaults:
            mine = own.get(key)
            if isinstance(mine, dict):
                values[key] = {**self._defaults[key], **mine}
        return values

    def _validate(self, values: dict[str, Any]) -> tuple[JobModel, set[str]]:
        """The model of what is right, and the keys that are not, or not wholly."""
        broken = {key for key in self._broken if key not in self._own}
        told: set[Path] = set()
        while True:
            try:
                return self._model.model_validate(values, context=self._interpolation), broken
            except ValidationError as error:
                found = list(complaints(error, self._model, told))
                for path, reason, hint, key in found:
                    self._complain(path, reason, hint, key=key)
                    told |= {path, meant(path, self._model)} if path and key else {path}
                # What lacks a part that was told of says no more than that.
                wrong = [path for path, *_ in found if path] or [one["loc"][:1] for one in error.errors()]
                wrong = [path[: _JUDGED_IN_PARTS.get(str(path[0]), 1)] for path in wrong if path[0] in values]
                if not wrong:
                    return self._model.model_construct(), broken | set(values)
                told.update(wrong)
                for path in wrong:
                    broken.add(str(path[0]))
                    values = _without(values, path)
                self.told[self._name] = told

    def _complain(self, path: Path, reason: str, hint: str | None, *, key: bool = False) -> None:
        section = "defaults" if path and path[0] not in self._own and path[0] in self._defaults else "jobs"
        whole = (section, *path) if section == "defaults" else (section, self._name, *path)
        self._bundle.complain(whole, reason, hint, key=key, job=self._name)

    def _job(self, model: JobModel, broken: set[str]) -> Job:
        options: Options | None = next(filter(None, (getattr(model, kind, None) for kind in self._kinds)), None)
        scan = options.noun() if isinstance(options, CompensateOptions) else None
        on_event = None if model.on_event is None else model.on_event.noun()
        if model.user is not None and options is not None and options.kind in ("call", "compensate"):
            reason = f"`user` is for `command` only: `{options.kind}` runs as the daemon does"
            self._complain(("user",), reason, "remove it, or write the job as a command")
        queue = self._queue(model, scan)
        self.queues[self._name] = queue
        if model.after is not None:
            self.chains[self._name] = model.after.job
        if on_event is not None:
            self.events[self._name] = on_event
        if scan is not None:
            self.scans[self._name] = scan
        if model.notify:
            self.channels[self._name] = model.notify
        if model.secrets or options is not None or model.heartbeat.ping_url is not None:
            self._note_secrets(model, options)
        zone_written = any("timezone" in keys for keys in (self._own, self._defaults, self._broken))
        timing = Timing(self._name, model, broken, zone_written, self._complain)
        zone = timing.zone()
        schedule = timing.schedule(zone)
        self._one_action(model, broken)
        action, written = action_of(options)
        scheduled = model.schedule is not None or "schedule" in broken
        scans = scan is not None or "compensate" in broken & self._own.keys()
        check_triggers(model, self._own, scans, scheduled, self._complain)
        if action.kind == EXTERNAL:
            check_external(self._own, self._complain)
            overlap = Overlap.ALLOW  # What keeps its runs apart is where it runs.
        else:
            overlap = self._overlap(model, scheduled, broken, scans)
        leftovers = self._leftovers(model, overlap, broken)
        timeout = model.timeout
        if timeout is None:
            timeout = _BACKSTOP if options is None else options.default_timeout
        payload = retries_of.PAYLOAD if model.retries is None else model.retries
        after = model.after
        job = Job(
            name=self._name,
            definition_text="",
            fingerprint="",
            action=action,
            description=model.description,
            enabled=model.enabled,
            schedule=schedule,
            after=None if after is None else After(after.job, Status[after.on.upper()]),
            on_event=on_event,
            overlap=overlap,
            lock=lock_key(self._name, overlap, model.lock),
            catch_up=CatchUp(model.catch_up),
            catch_up_window=model.catch_up_window or _WINDOWS[model.catch_up],
            catch_up_max=model.catch_up_max,
            blackouts=timing.blackouts(zone),
            timeout=timeout,
            kill_after=model.kill_after,
            leftovers=leftovers,
            retries=model.retries or retries_of.NONE,
            payload_retries=payload,
            on_lost=OnLost(model.on_lost),
            queue=queue,
            priority=model.priority,
            keep=model.keep,
            keep_output=model.keep_output,
            log_limit=model.log_limit,
            child=_child(model),
            watch=Watch(
                heartbeat=model.heartbeat.expected,
                grace=model.grace,
                alert_after=model.alert_after,
                notify=model.notify,
                severity=model.severity,
                team=model.team,
                runbook=model.runbook,
                tags=model.tags,
                ping_url=model.heartbeat.url(),
            ),
            compensate=scan,
        )
        text = canonical(definition_of(job, model, written))
        return replace(job, definition_text=text, fingerprint=fingerprint_of(text))

    def _note_secrets(self, model: JobModel, options: Options | None) -> None:
        found: dict[Path, Secret] = {("secrets", name): one.noun() for name, one in model.secrets.items()}
        if options is not None:
            found.update(((options.kind, *path), secret) for path, secret in options.secrets().items())
        ping_url = model.heartbeat.url()
        if isinstance(ping_url, Secret):
            found["heartbeat", "ping_url"] = ping_url
        if found:
            self.secrets[self._name] = found

    def _one_action(self, model: JobModel, broken: set[str]) -> None:
        given = [key for key in self._own if key in self._actions and self._own[key] is not None]
        if not given and not broken & self._later():
            self._complain((), "the job does nothing", f"add one of {', '.join(self._kinds)}", key=True)
        elif len(given) > 1:
            self._complain(
                (given[1],), f"a job has one action, but here are {' and '.join(given)}", "keep one of them", key=True
            )

    def _later(self) -> set[str]:
        """Keys that would have been an action in a later release, or were meant as one."""
        return {key for key in self._own if key not in self._model.model_fields}

    def _queue(self, model: JobModel, scan: Compensate | None) -> str:
        """Scans have one of their own, unless somebody wrote another."""
        written = self._own.get("queue") is not None or "queue" in self._defaults
        return SCANS if scan is not None and not written else model.queue

    def _overlap(self, model: JobModel, scheduled: bool, broken: set[str], scan: bool) -> Overlap:
        word = model.overlap
        if word is not None and "overlap" not in self._own:
            by_subject = model.on_event is not None and model.on_event.order == Order.SUBJECT
            if scan and word == "allow":
                word = None  # two scans of one job would share one memory of how far they came
            elif by_subject:
                word = "allow"  # the subject is the lock
        if word is not None and "overlap" not in self._own and not scheduled and word in ("skip", "replace"):
            word = "queue"  # what comes nearest for a job of which no occurrence can be skipped: one at a time
        if word is None:
            word = "skip" if scheduled else "allow" if model.lock is None and not scan else "queue"
        elif not scheduled and word in ("skip", "replace"):
            reason = f"`overlap: {word}` needs a schedule: only occurrences can be skipped or replaced"
            self._complain(("overlap",), reason, "write queue (one at a time, all wait) or allow")
        if word == "allow" and model.lock is not None and not broken & {"overlap", "lock"}:
            place = "lock" if "lock" in self._own else "overlap"
            self._complain((place,), "`lock` cannot be kept with `overlap: allow`", "remove one of the two")
        return Overlap(word)

    def _leftovers(self, model: JobModel, overlap: Overlap, broken: set[str]) -> Leftovers:
        if model.leftovers == "keep" and overlap is not Overlap.ALLOW:
            if "leftovers" not in self._own:
                return Leftovers.END
            if "overlap" not in broken:
                reason = "what a run leaves behind can be kept only if runs may overlap"
                self._complain(("leftovers",), reason, "add overlap: allow, or remove `leftovers`")
        return Leftovers(model.leftovers)


def _without(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The values without what lies at the path, or the last thing on its way that is there."""
    key, *below = path
    inner = values.get(str(key))
    if below and isinstance(inner, dict) and below[0] in inner:
        return {**values, str(key): _without(inner, tuple(below))}
    return {name: one for name, one in values.items() if name != key}


def check_name(bundle: Bundle, section: str, name: str) -> bool:
    """Whether a job or queue may have this name; complains if not."""
    try:
        to_name(name)
    except ValueError:
        bundle.complain((section, name), f"{shown(name)} is not a good name", NAME_RULE, key=True)
        return False
    return True


def _child(model: JobModel) -> Child:
    made = Child(
        env=model.env,
        secrets={name: one.noun() for name, one in model.secrets.items()},
        workdir=model.workdir,
        user=model.user,
        limits=Limits() if model.limits is None else model.limits.noun(),
        stdin=model.stdin,
    )
    return _PLAIN if made == _PLAIN else made  # Most jobs say nothing: thousands of them share one.
