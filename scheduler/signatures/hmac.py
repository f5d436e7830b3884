"""`hmac`: a code over the body, described by options. For senders that have no file of their own here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from scheduler.core.preset import Preset
from scheduler.core.signature import Scheme
from scheduler.signatures.common.mac import SIZES
from scheduler.signatures.common.recipe import Recipe, RecipeScheme


@dataclass(frozen=True, slots=True)
class Hmac(RecipeScheme):
    """Options as in `Recipe`; InvalidInput for what cannot be."""

    kind: ClassVar[str] = "hmac"
    preset: ClassVar[Preset | None] = None
    secret_form: ClassVar[str] = "not empty, and in the encoding that `key` names"  # noqa: S105

    header: str
    prefix: str = ""
    separator: str = ""
    encoding: str = "hex"
    algorithm: str = "sha256"
    key: str = "utf8"
    template: str = "{body}"
    timestamp: str = ""
    timestamp_unit: str = "s"
    id: str = ""
    made: Recipe = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "made", Recipe(**self._given()))

    @property
    def recipe(self) -> Recipe:
        return self.made

    def _given(self) -> dict[str, str]:
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.init}

    def neighbours(self) -> Iterable[tuple[str, Scheme]]:
        changes = [("encoding", one) for one in ("hex", "base64")] + [("algorithm", one) for one in SIZES]
        changes += [("prefix", one) for one in ("", "sha256=", "sha1=", "sha512=", "v1=")]
        for name, value in changes:
            if getattr(self, name) != value:
                yield f"{name}: {value or '(empty)'}", Hmac(**{**self._given(), name: value})
