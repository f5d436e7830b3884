"""A compensator asks the inbox which bodies it need not fetch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from scheduler.core.compensator import Cursor, ListedEvent, Page, Window, known_to_inbox
from scheduler.core.model import Status
from tests.scans.provider import MINUTE, Provider, ScanRig


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[str], set[str]]]:
    """What was asked and told. The provider gives what is known without its body."""
    found: list[tuple[set[str], set[str]]] = []
    pages = Provider.pages

    def sparing(self: Provider, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        for page in pages(self, window, cursor):
            ids = {one.id for one in page.items if isinstance(one, ListedEvent)}
            known = known_to_inbox(ids)
            found.append((ids, known))
            bare = (
                replace(one, body=None) if isinstance(one, ListedEvent) and one.id in known else one
                for one in page.items
            )
            yield replace(page, items=tuple(bare))

    monkeypatch.setattr(Provider, "pages", sparing)
    return found


def test_what_came_is_known_and_the_rest_is_stored_with_its_body(
    rig: ScanRig, asked: list[tuple[set[str], set[str]]]
) -> None:
    for name in ("came", "lost"):
        rig.provider.happens(name, 30 * MINUTE)
    rig.webhook("came", 30 * MINUTE)
    assert rig.scan().status is Status.COMPLETED
    assert asked == [({"came", "lost"}, {"came"})]
    assert rig.handled() == ["came", "lost"]
    assert (rig.report.counts.known, rig.report.counts.injected, rig.report.unlisted) == (1, 1, 0)
    assert {run.payload["data"]["id"] for run in rig.payloads()} == {"came", "lost"}


def test_one_that_is_deleted_meanwhile_is_not_stored_without_its_body(
    rig: ScanRig, asked: list[tuple[set[str], set[str]]]
) -> None:
    rig.provider.happens("old", 30 * MINUTE)
    rig.webhook("old", 30 * MINUTE)
    forget = rig.scanner._take

    def take(one: object, page: Page) -> None:
        with rig.store.begin() as tx:
            tx.events.session.connection.exec_driver_sql("DELETE FROM events")
        forget(one, page)  # type: ignore[arg-type]

    rig.scanner._take = take  # type: ignore[method-assign]
    run = rig.scan()
    assert run.status is not Status.COMPLETED
    assert "deleted while its page was read" in str(run.error)
    assert asked == [({"old"}, {"old"})]
