"""jobs.yaml → Configuration, all or nothing: every error at once, each with its place, its reason and its remedy."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from scheduler.config.actions.registry import Actions, discover
from scheduler.config.build import Builder, check_name
from scheduler.config.bundle import Bundle, gather
from scheduler.config.chains import check_chains
from scheduler.config.channels import Channels, check_channels
from scheduler.config.interpolation import Interpolation
from scheduler.config.models.job import DefaultsModel, job_model
from scheduler.config.models.queue import DEFAULT_QUEUES, QueueModel
from scheduler.config.problem import ConfigError, Path, Problem
from scheduler.config.scans import check_keep, check_scans
from scheduler.config.schemes import schemes
from scheduler.config.senders import Senders
from scheduler.config.sources import Disk, Stored
from scheduler.config.sources import Source as Texts
from scheduler.config.subscriptions import check_subscriptions
from scheduler.config.suggest import did_you_mean
from scheduler.config.translate import complaints, keys_of
from scheduler.config.written import canonical
from scheduler.core.channel import Channel
from scheduler.core.errors import ScheduleError
from scheduler.core.job import Configuration, Job, Queue
from scheduler.core.secret import Secret
from scheduler.core.source import Source
from scheduler.core.value_object import value_object
from scheduler.core.zone import zone_of


@value_object
class Loaded:
    """A configuration with the texts and trees it came from, for those who tell where a value was written, and the
    secrets of its jobs by their path below the job."""

    configuration: Configuration
    bundle: Bundle
    secrets: Mapping[str, Mapping[Path, Secret]]


def load_file(
    path: str | os.PathLike[str],
    *,
    actions: Actions | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """The configuration of a file, or of all *.yaml files of a folder, with everything that is included.

    `environ` gives `${NAME}` its values (the process's environment), `actions` the kinds of actions (all that are
    found). ConfigError, an InvalidInput, if anything is wrong; nothing else is raised, whatever the bytes are."""
    return load(Disk(path), actions=actions, environ=environ).configuration


def load_texts(
    files: Mapping[str, str],
    main: str | None = None,
    *,
    actions: Actions | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """The same from stored texts. `Configuration.files` knows by itself where to begin; for other texts `main`
    names the first one."""
    return load(Stored(files, main), actions=actions, environ=environ).configuration


def texts_of(path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """All texts of a configuration as `Configuration.files` has them, unjudged: for those who look whether one has
    changed. ConfigError if any of them cannot be read, is not YAML or has no jobs."""
    bundle = gather(Disk(path), Interpolation(environ))
    if bundle.problems:
        raise ConfigError(bundle.problems)
    return bundle.files


def load_sources(
    path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None
) -> tuple[Mapping[str, Source], Sequence[Problem]]:
    """The sources that are right, whatever else is wrong in the file, and what is wrong with the others, or keeps the
    file from being read."""
    interpolation = Interpolation(environ)
    bundle = gather(Disk(path), interpolation)
    return _sources(bundle, interpolation), bundle.problems


def load(source: Texts, *, actions: Actions | None = None, environ: Mapping[str, str] | None = None) -> Loaded:
    """The configuration and where it came from."""
    with _no_collections():
        return _load(source, discover() if actions is None else actions, Interpolation(environ))


def _load(source: Texts, actions: Actions, interpolation: Interpolation) -> Loaded:
    bundle = gather(source, interpolation)
    queues = _queues(bundle)
    defaults, broken = _defaults(bundle, actions, interpolation)
    builder = Builder(bundle, actions, defaults, broken, interpolation)
    jobs: dict[str, Job] = {}
    for name, values in bundle.sections["jobs"].items():
        good = check_name(bundle, "jobs", name)
        job = builder.build(name, values)
        if job is not None and good:
            jobs[name] = job
    for name, queue in builder.queues.items():
        if queue not in queues and queue not in bundle.sections["queues"]:
            hint = f"{did_you_mean(queue, queues)}, or add it below `queues`"
            bundle.complain(
                bundle.origin(name, "queue") or ("jobs", name), f"there is no queue `{queue}`", hint, job=name
            )
    check_chains(bundle, builder.chains)
    channels = _channels(bundle, interpolation)
    check_channels(bundle, builder.channels)
    sources = _sources(bundle, interpolation)
    check_subscriptions(bundle, builder.events, sources)
    if sources:
        check_keep(bundle, builder.scans, sources, schemes(), builder.told)
    check_scans(bundle, builder.scans, sources, interpolation.plugins, builder.told)
    if bundle.problems:
        raise ConfigError(bundle.problems)
    made = {"files": bundle.files, "values": interpolation.used}
    digest = hashlib.sha256(canonical(made).encode("utf-8", "surrogatepass")).hexdigest()
    configuration = Configuration(
        hash=digest, files=bundle.files, jobs=jobs, queues=queues, sources=sources, channels=channels
    )
    return Loaded(configuration, bundle, builder.secrets)


def _queues(bundle: Bundle) -> dict[str, Queue]:
    queues = dict(DEFAULT_QUEUES)
    for name, values in bundle.sections["queues"].items():
        check_name(bundle, "queues", name)
        try:
            queues[name] = QueueModel.model_validate({} if values is None else values).noun(name)
        except ValidationError as error:
            for path, reason, hint, key in complaints(error, QueueModel):
                bundle.complain(("queues", name, *path), reason, hint, key=key)
    return queues


def _channels(bundle: Bundle, interpolation: Interpolation) -> dict[str, Channel]:
    """Those that are right."""
    builder = Channels(bundle, interpolation)
    made: dict[str, Channel] = {}
    for name, values in bundle.sections["notify"].items():
        good = check_name(bundle, "notify", name)
        channel = builder.build(name, values)
        if channel is not None and good:
            made[name] = channel
    return made


def _sources(bundle: Bundle, interpolation: Interpolation) -> dict[str, Source]:
    """Those that are right."""
    written = bundle.sections["sources"]
    if not written:
        return {}
    senders = Senders(bundle, schemes(), interpolation)
    made: dict[str, Source] = {}
    for name, values in written.items():
        good = check_name(bundle, "sources", name)
        source = senders.build(name, values)
        if source is not None and good:
            made[name] = source
    return made


def _defaults(bundle: Bundle, actions: Actions, interpolation: Interpolation) -> tuple[dict[str, Any], set[str]]:
    """The values of `defaults` that are right, and the keys of the others, which are told once, not per job."""
    values = {key: value for key, value in bundle.sections["defaults"].items() if value is not None}
    own = keys_of(job_model(actions)) - keys_of(DefaultsModel)
    for name in sorted(own & values.keys()):
        reason = f"`{name}` belongs to a job, not to `defaults`"
        bundle.complain(("defaults", name), reason, "move it into the job", key=True)
        del values[name]
    broken: set[str] = set()
    try:
        DefaultsModel.model_validate(values, context=interpolation)
    except ValidationError as error:
        for path, reason, hint, key in complaints(error, DefaultsModel):
            bundle.complain(("defaults", *path), reason, hint, key=key)
            broken.update(str(part) for part in path[:1])
    if isinstance(values.get("timezone"), str) and "timezone" not in broken:
        try:
            zone_of(values["timezone"])
        except ScheduleError as error:
            bundle.complain(("defaults", "timezone"), error.reason, error.hint)
            broken.add("timezone")
    return {key: value for key, value in values.items() if key not in broken}, broken


@contextmanager
def _no_collections() -> Iterator[None]:
    """A load makes hundreds of thousands of objects and hardly any garbage; collections would triple its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
