"""The rules of compensation, 19 to 27: what a list proves, whose failure is whose, what is told, and our own queue."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler.core.compensator import ListedEvent, ListingFailed
from scheduler.core.model import Run, Status
from scheduler.core.outcome import Failed
from scheduler.core.scan_json import report_json
from scheduler.engine.arrivals import arrive
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.senders import event, kept, told
from tests.scans.provider import HOUR, MINUTE, Provider, ScanRig, listed_as_webhook


def test_r19_a_list_that_says_it_is_not_whole_settles_nothing(rig: ScanRig) -> None:
    """What it has is taken all the same."""
    rig.provider.trusted = "events are switched off; switch them on in the dashboard"
    rig.provider.happens("found", 30 * MINUTE)
    run = rig.scan()
    assert (run.status, run.error) == (Status.FAILED, rig.provider.trusted)
    assert rig.handled() == ["found"]
    assert rig.stands().watermark is None
    assert not rig.report.complete
    rig.provider.trusted = ""
    assert rig.scan().status is Status.COMPLETED
    assert rig.stands().watermark == START - 5 * MINUTE


def test_r19_an_empty_list_is_no_proof(rig: ScanRig) -> None:
    assert rig.scan().status is Status.COMPLETED  # Nothing came, and nothing is listed: that agrees.
    watermark = rig.stands().watermark
    rig.turn(hours=1)
    rig.webhook("came", 30 * MINUTE)
    assert rig.scan().status is Status.FAILED
    assert "the list is empty, and 1 webhook of this time came" in rig.report.why
    assert rig.stands().watermark == watermark


def test_r19_an_empty_list_is_no_proof_where_webhooks_carry_no_time(rig: ScanRig) -> None:
    """As of GitHub: the number of another hook."""
    rig.undated("a", "b", "c")
    rig.turn(minutes=30)
    for _ in range(2):
        assert rig.scan().status is Status.FAILED
        assert "the list is empty, and 3 webhooks of this time came" in rig.report.why
        assert rig.stands().watermark is None
        rig.turn(minutes=30)


def test_r19_webhooks_without_a_time_that_the_list_lacks_are_reported_once(store: SqlStore) -> None:
    rig = ScanRig(store, {"scan": {"margin": "0s", "first_window": "1h"}})
    for number in range(6):
        rig.provider.happens(f"e{number}")
        rig.undated(f"e{number}", f"forged{number}")
        rig.turn(minutes=4)
        assert rig.scan().status is Status.COMPLETED
    rig.turn(minutes=10)
    rig.scan()
    told = [name for report in reversed(rig.reports()) for name in report.unlisted_ids]
    assert told == [f"forged{number}" for number in range(6)]


@pytest.mark.parametrize(
    ("skew", "tells", "margin"),
    [
        (timedelta(0), "before", "0s"),
        (2 * HOUR, "before", "1h"),
        (-2 * HOUR, "pages", "0s"),
        (2 * HOUR, "pages", "1h"),
        (4 * MINUTE, "never", "0s"),
    ],
)
def test_r19_a_webhook_without_a_time_is_no_alarm_however_late_it_comes(
    sqlite: SqlStore, skew: timedelta, tells: str, margin: str
) -> None:
    """Its event is before the window, in it, or younger than it: one list or another has had it, or will."""
    rig = ScanRig(sqlite, {"scan": {"margin": margin, "first_window": "4h"}})
    rig.provider.skew, rig.provider.size = skew, 100
    rig.provider.tells, rig.provider.silent = tells == "before", tells == "never"
    late: list[tuple[int, str]] = []
    for number in range(60):
        rig.provider.happens(f"e{number}")
        late.append((number + (0, 1, 2, 9, 30)[number % 5], f"e{number}"))
        rig.undated(*(name for due, name in late if due <= number))
        late = [(due, name) for due, name in late if due > number]
        rig.finish()
        if number > 20 and number % 3 == 0:
            rig.turn(minutes=2)
            assert rig.scan().status is Status.COMPLETED
        rig.turn(minutes=4)
    assert len(rig.reports()) > 10
    assert [report.unlisted_ids for report in rig.reports() if report.unlisted] == []


def test_r19_a_webhook_without_a_time_of_an_event_from_before_the_first_list_is_no_alarm(store: SqlStore) -> None:
    """Nor of one from a hole. `margin` says how late one may be."""
    rig = ScanRig(store, {"scan": {"first_window": "2h"}})
    rig.provider.keeps = 2 * HOUR
    for number in range(2):
        rig.turn(hours=12)
        rig.undated(f"before{number}")
        rig.turn(minutes=70)
        rig.provider.happens(f"listed{number}")
        rig.turn(minutes=10)
        assert rig.scan().status is Status.COMPLETED
        assert rig.report.unlisted == 0
    assert len(rig.holes()) == 1


def test_r19_a_dry_run_tells_of_webhooks_without_a_time_as_the_scan_after_it_does(rig: ScanRig) -> None:
    rig.provider.size = 100
    for number in range(5):
        rig.provider.happens(f"e{number}")
        rig.undated(f"e{number}")
        rig.turn(minutes=4)
    rig.undated("forged")
    rig.turn(minutes=11)
    rig.provider.happens("last")
    rig.undated("last")
    rig.turn(minutes=6)
    rig.scan(dry_run=True)
    assert (rig.report.dry_run, rig.report.unlisted) == (True, 1)
    rig.scan()
    assert (rig.report.dry_run, rig.report.unlisted, rig.report.unlisted_ids) == (False, 1, ("forged",))


def test_r19_webhooks_that_the_list_lacks_are_reported(rig: ScanRig) -> None:
    """A broken lister, another account, or somebody else who can sign."""
    rig.provider.happens("both", 30 * MINUTE)
    rig.webhook("both", 30 * MINUTE)
    rig.webhook("forged", 20 * MINUTE)
    rig.webhook("young", MINUTE)
    assert rig.scan().status is Status.COMPLETED
    assert (rig.report.unlisted, rig.report.unlisted_ids) == (1, ("forged",))
    assert [one["count"] for one in rig.named("scan.unlisted")] == [1]
    rig.scan()
    assert rig.report.unlisted == 1


def test_r19_what_the_list_forgot_while_it_was_read_is_a_hole_and_not_unlisted(rig: ScanRig) -> None:
    rig.provider.keeps = HOUR
    rig.provider.happens("there", 10 * MINUTE)
    rig.webhook("forgotten", 58 * MINUTE)

    def slowly(number: int) -> None:
        rig.turn(minutes=5)

    rig.provider.before_page = slowly
    assert rig.scan().status is Status.COMPLETED
    assert rig.report.unlisted == 0
    assert rig.report.holes[0].end == START + 5 * MINUTE - HOUR


def test_r20_one_tenants_failure_moves_no_other_watermark(store: SqlStore) -> None:
    rig = ScanRig(store, {"scan": {}, "other": {}})
    rig.providers["other"].happens("theirs", 30 * MINUTE)
    rig.provider.fails[1] = ListingFailed("401 Unauthorized", final=True)
    assert rig.scan("scan").status is Status.FAILED
    assert rig.scan("other").status is Status.COMPLETED
    assert rig.stands("other").watermark == START - 5 * MINUTE
    assert rig.stands("scan").watermark is None
    assert rig.handled() == ["theirs"]


def test_r21_scans_of_a_job_do_not_overlap_and_a_stale_one_writes_nothing(rig: ScanRig) -> None:
    """Its run was taken over while it read a page: the fence has grown."""
    rig.provider.happens("lost", 30 * MINUTE)
    run = _running(rig)
    job = rig.in_force.current.configuration.jobs["scan"]
    assert job.lock == "job:scan"
    stale = replace(run, fence=run.fence - 1)
    outcome = rig.scanner.scan(stale, job, rig.provider)
    assert isinstance(outcome, Failed)
    assert "is not held here any more" in outcome.error
    assert rig.handled() == []
    with rig.store.read() as tx:
        assert tx.scans.state("scan") is None
        assert tx.scans.reports("scan", 10) == []


def test_r21_a_scan_that_was_taken_over_in_the_middle_stops_there(rig: ScanRig) -> None:
    rig.provider.size = 1
    for minute in (30, 20):
        rig.provider.happens(f"e{minute}", minute * MINUTE)

    def taken_over(number: int) -> None:
        if number == 2:
            with rig.store.begin() as tx:
                tx.scans.save(replace(tx.scans.state("scan"), run="another"))

    rig.provider.before_page = taken_over
    run = rig.scan()
    assert run.status is Status.FAILED
    assert "another run scans for scan now" in (run.error or "")
    assert rig.handled() == ["e30"]


@pytest.mark.parametrize(("state", "status"), [("stopping", Status.COMPLETED), ("dead", Status.RUNNING)])
def test_r21_a_node_that_leaves_ends_its_scan_and_one_that_is_dead_writes_nothing(
    store: SqlStore, state: str, status: Status
) -> None:
    rig = ScanRig(store)
    rig.provider.happens("lost", 30 * MINUTE)

    def meanwhile(number: int) -> None:
        with rig.store.begin() as tx:
            beat = next(one.beat for one in tx.nodes.all() if one.id == rig.node)
            if state == "dead":
                assert tx.nodes.declare_dead(rig.node, beat, rig.store.now())
            else:
                assert tx.nodes.mark(rig.node, state, rig.store.now())

    rig.provider.before_page = meanwhile
    assert rig.scan().status is status
    assert rig.handled() == (["lost"] if state == "stopping" else [])


def test_r22_poison_is_kept_and_holds_up_nothing(rig: ScanRig) -> None:
    """G23: one bad item of a page."""
    for minute in (30, 20, 10):
        rig.provider.happens(f"e{minute}", minute * MINUTE)
    rig.provider.poison('{"no": "id"}', 15 * MINUTE)
    for _ in range(3):
        assert rig.scan().status is Status.COMPLETED
    assert rig.handled() == ["e30", "e20", "e10"]
    assert rig.stands().watermark == START - 5 * MINUTE
    assert rig.report.counts.undecodable == 1
    with rig.store.read() as tx:
        ((job, at, item),) = tx.scans.aside("payments", 10)
    assert (job, at, item.raw, item.why) == ("scan", START, '{"no": "id"}', "no id")


def test_r22_a_failing_call_holds_up_the_window(rig: ScanRig) -> None:
    for minute in (30, 20, 10):
        rig.provider.happens(f"e{minute}", minute * MINUTE)
    rig.provider.fails[2] = ListingFailed("500 Internal Server Error")
    assert rig.scan().status is Status.FAILED
    assert rig.stands().watermark is None
    assert rig.stands().window is not None


def test_r23_a_listed_event_is_the_one_that_its_webhook_would_be(rig: ScanRig) -> None:
    provider = Provider(rig.clock)
    lost = rig.provider.happens("lost", 30 * MINUTE, about="order-7", amount=3)
    rig.provider.events["lost"] = replace(lost, type="", subject="")  # A list that knows less than the body says.
    came = provider.happens("came", 30 * MINUTE, about="order-7", amount=3)
    told(rig, listed_as_webhook(came, rig.clock.now()))
    rig.scan()
    assert isinstance(lost, ListedEvent)
    one, other = kept(rig, "lost"), kept(rig, "came")
    assert one is not None
    assert other is not None
    same = [
        (found.type, found.subject, found.occurred_at, found.content_type or "application/json")
        for found in (one, other)
    ]
    assert same[0] == same[1]
    runs = {run.payload["event"]["id"]: run.payload for run in rig.payloads()}
    assert runs["lost"]["data"] == {**runs["came"]["data"], "id": "lost"}
    assert json.loads(one.body) == lost.body


def test_r24_no_signature_is_made_up(rig: ScanRig) -> None:
    rig.provider.happens("lost", 30 * MINUTE)
    rig.scan()
    found = kept(rig, "lost")
    assert found is not None
    assert (found.vouched_by, found.found_by) == ("api", "scan")
    assert not any("signature" in name for name, _ in found.headers)


def test_r25_what_was_fetched_is_injected_once_and_not_asked_for_again_and_again(rig: ScanRig) -> None:
    """Each page costs its call, once per scan; what is there already makes nothing happen."""
    for minute in (30, 20, 10):
        rig.provider.happens(f"e{minute}", minute * MINUTE)
    for scan in (1, 2, 3):
        rig.scan()
        assert rig.provider.calls == 2 * scan
    assert rig.handled() == ["e30", "e20", "e10"]
    assert rig.report.counts.injected == 0


def test_r26_every_scan_leaves_a_report_whose_sum_is_right(store: SqlStore) -> None:
    rig = ScanRig(store)
    rig.provider.size = 100
    rig.provider.happens("before", 50 * MINUTE)
    rig.scan()
    rig.turn(minutes=30)
    rig.provider.happens("came", 30 * MINUTE)
    rig.webhook("came", 30 * MINUTE)
    rig.provider.happens("lost", 20 * MINUTE)
    rig.provider.poison("?", 10 * MINUTE)
    run = rig.scan()
    counts = rig.report.counts
    assert counts.listed == counts.known + counts.injected + counts.too_young + counts.undecodable == 4
    assert (counts.known, counts.late, counts.injected, counts.undecodable) == (2, 1, 1, 1)
    assert (counts.pages, counts.calls, counts.throttled) == (1, 1, 0)
    assert counts.oldest_unseen == 20 * MINUTE
    assert rig.report.lag == 5 * MINUTE
    assert run.result == report_json(rig.report)
    assert run.result["miss_rate"] == 1 / 3
    assert len(rig.reports()) == 2
    assert rig.named("scan.finished")[-1]["injected"] == 1


def test_r27_a_run_that_is_committed_late_is_not_passed_over(postgres: SqlStore) -> None:
    """Numbers are taken at the insert and seen at the commit: whoever remembers the last number loses this one."""
    rig = ScanRig(postgres)
    loaded = rig.in_force.current
    with rig.store.begin() as tx:
        arrive(tx, loaded, [event("slow", occurred_at=START - HOUR)], START)
        told(rig, event("fast", occurred_at=START))
        rig.tick()
        assert [run.key for run in rig.runs("ticket")] == ["event:payments:fast"]
        assert len(rig.executor.of("ticket")) == 1
    rig.tick(seconds=1)
    assert sorted(launch.run.key for launch in rig.executor.started) == ["event:payments:fast", "event:payments:slow"]
    seq = {run.key[-4:]: run.seq for run in rig.runs("ticket")}
    assert seq["slow"] < seq["fast"]


def _running(rig: ScanRig) -> Run:
    """A run of the scan job that this node holds and whose executor has not begun."""
    held: list[Run] = []
    rig.compensating.start = lambda launch, done: held.append(launch.run)  # type: ignore[method-assign]
    rig.desk.run_now("scan", author="test")
    rig.worker.tick(rig.store.now())
    (run,) = held
    return run
