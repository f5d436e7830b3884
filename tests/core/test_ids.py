from __future__ import annotations

import os
from uuid import RFC_4122, UUID

from scheduler.core.ids import new_id


def test_an_id_is_a_uuid_of_version_7_and_greater_than_the_one_before() -> None:
    made = [new_id() for _ in range(2000)]
    assert sorted(set(made)) == made
    assert {(UUID(one).version, UUID(one).variant, str(UUID(one)) == one) for one in made} == {(7, RFC_4122, True)}


def test_random_bits_are_drawn_once() -> None:
    """They are fetched many at a time."""
    drawn = [UUID(new_id()).int & ((1 << 62) - 1) for _ in range(2000)]
    assert len(set(drawn)) == len(drawn)
    assert min(drawn) < 1 << 60 < 3 << 60 < max(drawn)


def test_what_is_forked_makes_ids_of_its_own() -> None:
    new_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "".join(new_id()[-17:] for _ in range(100)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as file:
        told = file.read()
    theirs = {told[index : index + 17] for index in range(0, len(told), 17)}
    assert len(theirs) == 100
    assert not theirs & {new_id()[-17:] for _ in range(100)}
