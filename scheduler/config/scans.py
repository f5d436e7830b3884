"""`compensate` and the sources: they exist, the compensator accepts its options, and ids are remembered long enough."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from scheduler.config.bundle import Bundle
from scheduler.config.compensators import compensators
from scheduler.config.problem import Path
from scheduler.config.schemes import Schemes
from scheduler.config.subscriptions import known_source
from scheduler.core.durations import format_duration
from scheduler.core.errors import InvalidInput
from scheduler.core.preset import EventFields, Preset
from scheduler.core.secret import Secret
from scheduler.core.source import Compensate, Source
from scheduler.core.value_object import value_object

_AT = re.compile(r"with(?:\.([^\s:]+))?: (.*)", re.DOTALL)
_PLACEHOLDER = "a-secret"


_ANY = EventFields(id="id", type="type", occurred_at="occurred_at", subject="subject")
"""In place of the fields of a source that is wrong itself."""

Told = Mapping[str, Collection[Path]]
"""By job, the paths below it about which somebody has complained."""


def check_scans(
    bundle: Bundle, scans: Mapping[str, Compensate], sources: Mapping[str, Source], plugins: str | None, told: Told
) -> None:
    """`scans` names for each job what it lists; `plugins` is what SCHEDULER_PLUGINS says."""
    for job, scan in scans.items():
        known_source(bundle, job, ("compensate", "source"), scan.source)
        event = sources[scan.source].event if scan.source in sources else _ANY
        if ("compensate", "with") not in told.get(job, ()):
            _check_options(bundle, job, scan, event, plugins, told.get(job, ()))


def _check_options(
    bundle: Bundle, job: str, scan: Compensate, event: EventFields, plugins: str | None, told: Collection[Path]
) -> None:
    known = compensators()
    secrets = {name for name, value in scan.options.items() if isinstance(value, Secret)}
    try:
        known.build(scan.compensator, _filled(scan.options), asdict(event), known.folders_of(plugins))
    except InvalidInput as error:
        for one in (error, *error.others):
            found = _AT.fullmatch(one.reason)
            path, reason = (tuple((found[1] or "").split(".")), found[2]) if found else ((), one.reason)
            whole = ("compensate", "with", *filter(None, path))
            if whole in told or (path and path[0] in secrets):
                continue  # what was judged is not the secret
            bundle.complain(("jobs", job, *whole), reason, one.hint, job=job)


def _filled(value: Any) -> Any:
    """The options with something in place of each secret."""
    if isinstance(value, Mapping):
        return {name: _filled(one) for name, one in value.items()}
    return _PLACEHOLDER if isinstance(value, Secret) else value


def check_keep(
    bundle: Bundle, scans: Mapping[str, Compensate], sources: Mapping[str, Source], schemes: Schemes, told: Told
) -> None:
    """An id that is forgotten while the provider may still send its event, or a scan still list it, would be handled
    twice. Scans whose lengths were refused are left out: nobody knows what was meant."""
    lengths = {("compensate", name) for name in ("first_window", "margin")}
    scans = {job: scan for job, scan in scans.items() if not lengths & set(told.get(job, ()))}
    presets = schemes.presets()
    for source in sources.values():
        reasons = list(_reasons(source, presets.get(source.preset or ""), scans))
        needed = sum((one.length for one in reasons), timedelta())
        if source.keep >= max(needed, source.tolerance):
            continue
        said = " + ".join(f"{format_duration(one.length)} ({one.why})" for one in reasons)
        if needed < source.tolerance:
            needed, said = source.tolerance, f"the tolerance of {format_duration(source.tolerance)}"
        reason = f"ids are forgotten after {format_duration(source.keep)}, and may come again within {said}"
        hint = f"write keep: {_whole_days(needed)} or more; what is forgotten and comes again runs twice"
        bundle.complain(_place(bundle, source, reasons), reason, hint)


@value_object
class _Reason:
    """Why ids must be kept; `at`: the key that says so, if somebody wrote one."""

    length: timedelta
    why: str
    at: Path | None = None


def _reasons(source: Source, preset: Preset | None, scans: Mapping[str, Compensate]) -> Iterator[_Reason]:
    if preset is not None and preset.retries_for:
        yield _Reason(preset.retries_for, f"{preset.title} sends again")
    for key in ("first_window", "margin"):
        lengths = {job: getattr(one, key) for job, one in scans.items() if one.source == source.name}
        if lengths:
            job = max(lengths, key=lambda one: lengths[one])
            yield _Reason(lengths[job], f"{key} of {job}", ("jobs", job, "compensate", key))


def _place(bundle: Bundle, source: Source, reasons: Sequence[_Reason]) -> Path:
    """Where `keep` is written, else the longest of what is."""
    if (bundle.sections["sources"][source.name] or {}).get("keep") is None:
        longest = max(reasons, key=lambda one: one.length, default=None)
        if longest is not None and longest.at is not None:
            return longest.at
    return ("sources", source.name, "keep")


def _whole_days(length: timedelta) -> str:
    return f"{-(-length // timedelta(days=1))}d"
