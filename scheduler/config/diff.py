"""What differs between two configurations, job by job and key by key."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scheduler.config.written import canonical
from scheduler.core.channel import Channel
from scheduler.core.job import Configuration, Job, Queue
from scheduler.core.model import Json
from scheduler.core.source import Source
from scheduler.core.value_object import value_object

_HIDDEN = "its address, which is not shown"
"""What differs where nothing that may be shown does."""


@value_object
class KeyChange:
    """One key with another value; None: the key has no value on that side."""

    key: str
    old: Json
    new: Json

    def __str__(self) -> str:
        return f"{self.key}: {_text(self.old)} → {_text(self.new)}"


@value_object
class Difference:
    """`renamed` names for a removed job the added one that is its equal: to the ledger it is a new job. `queues`,
    `sources` and `channels` hold those that differ, added and removed ones included."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[KeyChange, ...]]
    renamed: Mapping[str, str]
    queues: Mapping[str, tuple[KeyChange, ...]]
    sources: Mapping[str, tuple[KeyChange, ...]]
    channels: Mapping[str, tuple[KeyChange, ...]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.queues or self.sources or self.channels)


def diff(old: Configuration, new: Configuration) -> Difference:
    """All differences; jobs in the order of the new configuration, removed ones in that of the old."""
    added = tuple(name for name in new.jobs if name not in old.jobs)
    removed = tuple(name for name in old.jobs if name not in new.jobs)
    changed = {
        name: changes_of(old.jobs[name].definition, job.definition)
        for name, job in new.jobs.items()
        if name in old.jobs and old.jobs[name].fingerprint != job.fingerprint
    }
    equals = {new.jobs[name].fingerprint: name for name in reversed(added)}
    renamed = {name: equals[old.jobs[name].fingerprint] for name in removed if old.jobs[name].fingerprint in equals}
    sources, channels = _entries(old.sources, new.sources), _entries(old.channels, new.channels)
    return Difference(added, removed, changed, renamed, _queues(old.queues, new.queues), sources, channels)


def changes_of(old: Mapping[str, Json], new: Mapping[str, Json]) -> tuple[KeyChange, ...]:
    """The keys in which two definitions differ; of mappings only the parts that differ (`env.PORT`)."""
    changes = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            parts = changes_of(before, after)
            changes += [KeyChange(f"{key}.{part.key}", part.old, part.new) for part in parts]
        else:
            changes.append(KeyChange(key, before, after))
    return tuple(changes)


def describe(old: Configuration | None, new: Configuration) -> dict[str, tuple[str, ...]]:
    """The differences in words, per job; queues appear as `queue NAME`, sources as `source NAME`, channels
    as `channel NAME`. Without `old` every job, source and channel is added."""
    words: dict[str, tuple[str, ...]] = {}
    if old is None:
        words.update((name, (_added(job),)) for name, job in new.jobs.items())
        words.update((f"source {name}", ("added",)) for name in new.sources)
        words.update((f"channel {name}", ("added",)) for name in new.channels)
        return words
    found = diff(old, new)
    words = {name: (_added(new.jobs[name]),) for name in found.added}
    words.update((name, tuple(str(change) for change in changes)) for name, changes in found.changed.items())
    for name in found.removed:
        other = found.renamed.get(name)
        words[name] = (
            ("removed",) if other is None else (f"removed; {other} is its equal, but a new job with its own history",)
        )
    for name, changes in found.queues.items():
        kept = tuple(str(change) for change in changes)
        if name not in new.queues:
            kept = ("removed",)
        elif name not in old.queues:
            kept = ("added", *(f"{change.key}: {change.new}" for change in changes))
        words[f"queue {name}"] = kept
    words |= _entry_words("source", found.sources, old.sources, new.sources)
    words |= _entry_words("channel", found.channels, old.channels, new.channels)
    return words


def _added(job: Job) -> str:
    if job.schedule is None and job.on_event is not None:
        return f"added: on events of {job.on_event.source}"
    if job.schedule is None:
        return "added"
    return f"added: {', '.join(job.schedule.expressions)} {job.schedule.zone}"


def _queues(old: Mapping[str, Queue], new: Mapping[str, Queue]) -> dict[str, tuple[KeyChange, ...]]:
    found = {}
    for name in sorted(old.keys() | new.keys()):
        changes = changes_of(_limits(old.get(name)), _limits(new.get(name)))
        if changes or (name in old) != (name in new):
            found[name] = changes
    return found


def _entry_words(
    what: str, found: Mapping[str, tuple[KeyChange, ...]], old: Collection[str], new: Collection[str]
) -> dict[str, tuple[str, ...]]:
    words: dict[str, tuple[str, ...]] = {}
    for name, changes in found.items():
        if name not in old or name not in new:
            words[f"{what} {name}"] = ("added" if name in new else "removed",)
        else:
            words[f"{what} {name}"] = tuple(str(change) for change in changes) or (_HIDDEN,)
    return words


def _entries(
    old: Mapping[str, Source] | Mapping[str, Channel], new: Mapping[str, Source] | Mapping[str, Channel]
) -> dict[str, tuple[KeyChange, ...]]:
    found = {}
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None or before.fingerprint != after.fingerprint:
            found[name] = changes_of(*({} if one is None else one.definition for one in (before, after)))
    return found


def _limits(queue: Queue | None) -> dict[str, Json]:
    if queue is None:
        return {}
    rate = None if queue.rate is None else f"{queue.rate:g}/s"
    return {"concurrency": queue.concurrency, "rate": rate, "burst": queue.burst}


def _text(value: Json) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else canonical(value)
    return text if len(text) <= 200 else f"{text[:197]}…"
