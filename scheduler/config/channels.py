"""`notify:` → channels, and whether the jobs name channels that there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from scheduler.config.bundle import Bundle
from scheduler.config.interpolation import Interpolation
from scheduler.config.models.channel import ChannelModel
from scheduler.config.problem import Path
from scheduler.config.suggest import did_you_mean
from scheduler.config.translate import complaints
from scheduler.config.written import canonical, fingerprint_of
from scheduler.core.channel import Channel
from scheduler.core.value_object import value_object


@value_object
class Channels:
    """Builds one channel after the other; problems go to the bundle."""

    bundle: Bundle
    interpolation: Interpolation

    def build(self, name: str, values: Any) -> Channel | None:
        """The channel; None if something is wrong with it."""
        try:
            model = ChannelModel.model_validate({} if values is None else values, context=self.interpolation)
        except ValidationError as error:
            for path, reason, hint, key in complaints(error, ChannelModel):
                self.bundle.complain(("notify", name, *path), reason, hint, key=key)
            return None
        text = canonical(model.written())
        # What is hidden in the text counts, too: a channel with another address is another one.
        fingerprint = fingerprint_of(canonical([text, model.options()]))
        return Channel(name, model.kind, text, fingerprint, model.options(), model.secrets())


def check_channels(bundle: Bundle, used: Mapping[str, Mapping[str, Any]]) -> None:
    """Complains of channels that jobs name and nobody has; of one that `defaults` names once. `used`: per job."""
    known = bundle.sections["notify"]
    told = set()
    for job, channels in used.items():
        for channel in channels:
            if channel in known:
                continue
            path = bundle.origin(job, "notify") or ("jobs", job)
            if (path, channel) in told:
                continue
            told.add((path, channel))
            hint = f"{did_you_mean(channel, known)} Or add it below `notify`" if known else "add it below `notify`"
            of_all = path[0] == "defaults"
            place = _place(bundle, path, channel)
            bundle.complain(place, f"there is no channel `{channel}`", hint, job=None if of_all else job)


def secret_paths(bundle: Bundle, channel: Channel) -> Iterator[tuple[Path, str]]:
    """Where in the file each secret of the channel is named, with its name."""
    below: Path = ("http",) if channel.kind == "http" else ()
    for name in channel.secrets:
        yield ("notify", channel.name, *below, *name.split(".", 1)), name


def _place(bundle: Bundle, path: Path, channel: str) -> Path:
    """The item of a list, or the key of a mapping, that names the channel."""
    value: Any = bundle.sections
    for part in path:
        value = value[part]
    if isinstance(value, list) and channel in value:
        return (*path, value.index(channel))
    return (*path, channel) if isinstance(value, dict) and channel in value else path
