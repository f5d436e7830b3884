"""Pieces of constant offset against the TZif files themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from scheduler.core.offsets import LOOK, pieces, start_of_year, transitions
from scheduler.core.zone import zone_names, zone_of

from .brute_force import explicit_transitions

SAMPLE = [
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "Africa/Monrovia",
    "America/Argentina/San_Luis",
    "America/Godthab",
    "America/Havana",
    "America/New_York",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Kwajalein",
]


def second(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp())


@pytest.mark.parametrize("name", SAMPLE)
def test_transitions_are_those_of_the_file(name):
    start, end = start_of_year(1900), start_of_year(2038)
    expected = [change for change in explicit_transitions(name) if start <= change[0] < end]

    found = [(change.at, change.before, change.after) for change in transitions(zone_of(name), start, end)]

    assert found[: len(expected)] == expected


def test_no_zone_changes_its_offset_twice_between_two_looks():
    """The search for transitions would miss a change that is taken back before it looks again."""
    for name in sorted(zone_names()):
        moments = [at for at, _, _ in explicit_transitions(name)]
        assert all(later - earlier > LOOK for earlier, later in pairwise(moments)), name


@pytest.mark.parametrize("name", SAMPLE)
def test_pieces_cover_a_range_without_holes(name):
    start, end = second(1969, 12, 31, 23, 59, 59), second(2040, 1, 1)
    covered = list(pieces(zone_of(name), start, end))

    assert covered[0].start == start
    assert covered[-1].end == end
    assert all(left.end == right.start for left, right in pairwise(covered))


def test_a_gap_and_a_fold_of_half_an_hour():
    zone = zone_of("Australia/Lord_Howe")
    gap = list(pieces(zone, second(2026, 10, 3, 15, 29), second(2026, 10, 3, 15, 31)))
    fold = list(pieces(zone, second(2026, 4, 4, 14, 0), second(2026, 4, 4, 16, 0)))

    assert [(piece.offset, piece.skipped is not None) for piece in gap] == [(37_800, False), (39_600, True)]
    assert [(piece.offset, piece.repeated, piece.end - piece.start) for piece in fold] == [
        (39_600, False, 3_600),
        (37_800, True, 1_800),
        (37_800, False, 1_800),
    ]


def test_a_range_that_begins_inside_a_second_pass_knows_it():
    found = list(pieces(zone_of("America/New_York"), second(2026, 11, 1, 6, 10), second(2026, 11, 1, 8)))

    assert [piece.repeated for piece in found] == [True, False]
    assert found[0].end == second(2026, 11, 1, 7)


@pytest.mark.parametrize("when", [(2011, 12, 30, 10), (1993, 8, 21, 12)])
def test_a_date_line_jump_is_neither_gap_nor_fold(when):
    name = "Pacific/Apia" if when[0] == 2011 else "Pacific/Kwajalein"
    found = list(pieces(zone_of(name), second(*when) - 3_600, second(*when) + 3_600))

    assert len(found) == 2
    assert not any(piece.repeated or piece.skipped for piece in found)
