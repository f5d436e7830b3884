"""`on_event` and the sources: they exist, and can give what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from scheduler.config.bundle import Bundle
from scheduler.config.models.on_event import OnEventModel, expand
from scheduler.config.suggest import suggestion
from scheduler.core.model import Json
from scheduler.core.source import OnEvent, Order, Source
from scheduler.core.type_globs import type_matches


def check_subscriptions(bundle: Bundle, events: Mapping[str, OnEvent], sources: Mapping[str, Source]) -> None:
    """`events` names for each job what starts it."""
    for job, on_event in events.items():
        if not known_source(bundle, job, ("on_event", "source"), on_event.source):
            continue
        source = sources.get(on_event.source)
        if source is None:
            continue
        if on_event.order is Order.SUBJECT and not source.event.subject:
            reason = f"the source `{source.name}` does not say what its events are about"
            hint = f"write event: {{subject: …}} in sources.{source.name}"
            bundle.complain(("jobs", job, "on_event", "order"), reason, hint, job=job)
        if not source.event.type and not type_matches(on_event.types, ""):
            reason = f"the source `{source.name}` does not say of which type its events are: none would match"
            hint = f"write event: {{type: …}} in sources.{source.name}, or use `where`"
            bundle.complain(("jobs", job, "on_event", "types"), reason, hint, job=job)


def subscription_of(definition: Json) -> OnEvent | None:
    """What a job's stored definition says of the events that start it; None where this release cannot read that."""
    try:
        return OnEventModel.model_validate(expand(definition)).noun()
    except ValidationError:
        return None


def known_source(bundle: Bundle, job: str, path: tuple[str, ...], name: str) -> bool:
    """Whether there is this source, be it right or wrong; complains about the job if not."""
    known = bundle.sections["sources"]
    if name in known:
        return True
    near = suggestion(name, known)
    hint = f"did you mean `{near}`?" if near is not None else f"add {name[:100]} below `sources`, or correct the name"
    bundle.complain(("jobs", job, *path), f"there is no source `{name[:100]}`", hint, job=job)
    return False
