"""`hmac`: a code over the body, described by options. For senders that have no file of their own here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler.core.preset import Preset
from scheduler.core.signature import Scheme
from scheduler.signatures.common.mac import SIZES
from scheduler.signatures.common.recipe import Recipe, RecipeScheme


@dataclass(frozen=True, slots=True)
class Hmac(Recipe, RecipeScheme):
    """Its options are those of a recipe; InvalidInput for what cannot be."""

    kind: ClassVar[str] = "hmac"
    preset: ClassVar[Preset | None] = None
    secret_form: ClassVar[str] = "not empty, and in the encoding that `key` names"  # noqa: S105

    @property
    def recipe(self) -> Recipe:
        return self

    def neighbours(self) -> Iterable[tuple[str, Scheme]]:
        changes = [("encoding", one) for one in ("hex", "base64")] + [("algorithm", one) for one in SIZES]
        changes += [("prefix", one) for one in ("", "sha256=", "sha1=", "sha512=", "v1=")]
        for name, value in changes:
            if getattr(self, name) != value:
                change: dict[str, Any] = {name: value}
                yield f"{name}: {value or '(empty)'}", dataclasses.replace(self, **change)
