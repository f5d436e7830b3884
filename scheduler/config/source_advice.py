"""What is unwise about sources, and about the jobs that scan them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler.config.codes import Remark
from scheduler.config.load import Loaded
from scheduler.config.problem import Path, Problem
from scheduler.config.schemes import schemes
from scheduler.config.secret_advice import about_secret
from scheduler.core.durations import format_duration
from scheduler.core.job import Job
from scheduler.core.secret import Secret
from scheduler.core.source import Source


def about_sources(loaded: Loaded, environ: Mapping[str, str] | None, *, elsewhere: bool) -> Iterator[Problem]:
    """Their secrets: nothing else of the file or of other sources depends on them."""
    for source in loaded.configuration.sources.values():
        for path, secret in _secrets(loaded, source).items():
            found = about_secret(loaded, path, secret, environ, "this source takes nothing", elsewhere=elsewhere)
            if found is not None:
                yield found


def about_scan(loaded: Loaded, job: Job) -> Iterator[Remark]:
    scan = job.compensate
    if scan is None:
        return
    preset = schemes().presets().get(loaded.configuration.sources[scan.source].preset or "")
    if preset is None or preset.looks_back is None:
        return
    for key in ("first_window", "margin"):
        length = getattr(scan, key)
        if length > preset.looks_back:
            reason = f"{preset.title} lists no more than {format_duration(preset.looks_back)}, and {key} is longer"
            yield Remark(("compensate", key), "beyond-list", reason, "shorten it: the rest is recorded as a hole")


def _secrets(loaded: Loaded, source: Source) -> dict[Path, Secret]:
    """By their paths in the file."""
    written = loaded.bundle.sections["sources"][source.name]
    own: Path = ("secrets",) if written.get("secrets") is not None else ("signature", "secrets")
    found: dict[Path, Secret] = {("sources", source.name, *own, at): one for at, one in enumerate(source.secrets)}
    headers = {} if source.fetch_current is None else source.fetch_current.headers
    below: Path = ("sources", source.name, "fetch_current", "headers")
    return {**found, **{(*below, name): one for name, one in headers.items() if isinstance(one, Secret)}}
