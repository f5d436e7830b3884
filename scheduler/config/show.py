"""Effective values, each with the place that gave it."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.config.bundle import MERGED
from scheduler.config.load import Loaded
from scheduler.config.problem import Path
from scheduler.config.written import with_keys_of_the_file
from scheduler.core.channel import Channel
from scheduler.core.job import Job
from scheduler.core.model import Json
from scheduler.core.source import Source
from scheduler.core.value_object import value_object

DEFAULT = "(default)"
SOURCE = "source "
CHANNEL = "channel "
_KNOWN = ("signature", "event", "tolerance", "keep", "response")
"""What a preset may say."""


@value_object
class Effective:
    """One value of a job, of a source (then `job` is `source NAME`) or of a channel (`channel NAME`): `key` as in
    jobs.yaml (`env.PORT` for a part of a mapping), `where` is `file:line`, or in brackets who else says so:
    `(default)`, `(preset stripe)`."""

    job: str
    key: str
    value: Json
    where: str

    @property
    def default(self) -> bool:
        return self.where == DEFAULT


def show(loaded: Loaded, name: str | None = None) -> list[Effective]:
    """The values of one job, or else one source or channel (`source NAME` and `channel NAME` are never a job), or of
    all, in the order of the file; KeyError if there is no such thing."""
    known = loaded.configuration
    if name is None:
        chosen = [line for channel in known.channels.values() for line in _channel(loaded, channel)]
        chosen += [line for source in known.sources.values() for line in _source(loaded, source)]
        return chosen + [line for job in known.jobs.values() for line in _job(loaded, job)]
    if name in known.jobs:
        return _job(loaded, known.jobs[name])
    source = known.sources.get(name.removeprefix(SOURCE))
    return _channel(loaded, known.channels[name.removeprefix(CHANNEL)]) if source is None else _source(loaded, source)


def _job(loaded: Loaded, job: Job) -> list[Effective]:
    found = []
    for key, value in sorted(with_keys_of_the_file(job.definition).items()):
        if key in MERGED and isinstance(value, dict) and value:
            for name, part in value.items():
                written_at = loaded.bundle.written_at(job.name, (key, name))
                found.append(Effective(job.name, f"{key}.{name}", part, _where(loaded, written_at)))
        else:
            found.append(Effective(job.name, key, value, _where(loaded, loaded.bundle.origin(job.name, key))))
    return found


def _source(loaded: Loaded, source: Source) -> list[Effective]:
    """What a mapping holds is told one by one: some of it is written, some of it known of the provider."""
    written = loaded.bundle.sections["sources"][source.name]
    known = DEFAULT if source.preset is None else f"(preset {source.preset})"
    found = []
    for key, value in sorted(source.definition.items()):
        parts = {f"{key}.{part}": one for part, one in value.items()} if isinstance(value, dict) else {key: value}
        for whole, one in parts.items():
            path = _written_at(written, tuple(whole.split(".", 1)))
            unwritten = known if key in _KNOWN else DEFAULT
            where = unwritten if path is None else _where(loaded, ("sources", source.name, *path))
            found.append(Effective(f"{SOURCE}{source.name}", whole, one, where))
    return found


def _channel(loaded: Loaded, channel: Channel) -> list[Effective]:
    written = loaded.bundle.sections["notify"][channel.name]
    found = []
    for key, value in sorted(channel.definition.items()):
        parts = {f"{key}.{part}": one for part, one in value.items()} if key == channel.kind else {key: value}
        for whole, one in parts.items():
            path = _written_at(written, tuple(whole.split(".", 1)))
            where = DEFAULT if path is None else _where(loaded, ("notify", channel.name, *path))
            found.append(Effective(f"{CHANNEL}{channel.name}", whole, one, where))
    return found


def _written_at(written: Mapping[str, Json], path: tuple[str, ...]) -> Path | None:
    """Below a source, where somebody wrote this; None: nobody did."""
    key, *below = path
    inside = written.get(key)
    if key == "secrets" and inside is None:
        return ("signature", "secrets")
    if inside is None or (below and isinstance(inside, dict) and inside.get(below[0]) is None):
        return None
    return path if isinstance(inside, dict) and below else (key,)


def _where(loaded: Loaded, path: Path | None) -> str:
    place = None if path is None else loaded.bundle.place(path, key=True)
    return DEFAULT if place is None else f"{place[0]}:{place[1][0]}"
