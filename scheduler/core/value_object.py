"""Values: dataclasses that nobody changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_object(cls: type[T]) -> type[T]:
    """A dataclass with slots, compared and hashed by its fields. That nobody assigns to them the type checker enforces,
    not the object: `frozen=True` makes one of 39 fields in 5 µs instead of 0.4 (Python 3.11), and a run takes dozens
    of them on its way. Where it is a matter of trust, as of the verdicts on signatures, values are frozen."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
