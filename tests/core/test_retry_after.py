from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.retry_after import INSTEAD, wait

NOW = datetime(2026, 10, 21, 7, 26, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 120),
        ("Wed, 21 Oct 2026 07:28:00 -0000", 120),
        ("Wed, 21 Oct 2026 07:20:00 GMT", 0),
        ("1772438400", INSTEAD.total_seconds()),
        ("3600", 3600),
        ("-5", 0),
        ("1.5", 2),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("１２", None),
        (None, None),
    ],
)
def test_all_forms(text: str | None, seconds: float | None) -> None:
    assert wait(text, NOW) == (None if seconds is None else timedelta(seconds=seconds))
