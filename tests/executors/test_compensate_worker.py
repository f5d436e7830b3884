from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.compensator import (
    Coverage,
    CursorExpired,
    ListedEvent,
    ListingFailed,
    Page,
    Throttled,
    Undecodable,
    Window,
)
from scheduler.core.ids import new_id
from scheduler.executors.workers.conversation import Conversation, Over
from scheduler.executors.workers.pool import Pool
from scheduler.executors.workers.scan_messages import opening
from scheduler.executors.workers.worker import Place
from scheduler.supervisor.owner import Owner
from tests.executors.harness import NODE, living_in, until

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WINDOW = Window(NOON - timedelta(hours=1), NOON)

PLUGIN = """
from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from scheduler.core.compensator import *
from scheduler.core import compensator as seam


@dataclass(frozen=True, slots=True)
class Mine:
    kind: ClassVar[str] = "mine"
    secret_options: ClassVar[tuple[str, ...]] = ("key",)
    source_options: ClassVar[tuple[str, ...]] = ("id",)
    id: str
    key: str = field(default="", repr=False)
    does: str = ""

    def coverage(self):
        print("covering with", self.key, "and", self.id, flush=True)
        if self.does == "refuse":
            raise seam.ListingFailed("the key is wrong; make a new one", final=True)
        return seam.Coverage(timedelta(days=30), provider_now=datetime.fromisoformat("2026-03-01T12:00:00+00:00"))

    def pages(self, window, cursor):
        first = int(cursor or 0)
        for number in range(first, 3):
            print("asked for", number, flush=True)
            if self.does == "expired" and cursor is not None:
                raise seam.CursorExpired("unknown cursor")
            if self.does == "throttled":
                raise seam.Throttled("429 again and again", 12.5)
            if self.does == "raise":
                raise KeyError("surprise")
            if self.does == "naive":
                yield seam.Page((seam.ListedEvent("e", datetime(2026, 3, 1), {}),))
            if self.does == "no json":
                yield seam.Page((seam.ListedEvent("e", window.start, {1, 2}),))
            if self.does == "no number":
                yield seam.Page((seam.ListedEvent("e", window.start, [float("nan")]),))
            if self.does == "no type":
                yield seam.Page((seam.ListedEvent("e", window.start, {}, type=b"x"),))
            if self.does == "no page":
                yield "x"
            if self.does == "exit":
                os._exit(7)
            if self.does == "thread":
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            if self.does == "hang":
                time.sleep(60)
            event = seam.ListedEvent(
                f"e{number}", window.start, {"n": number}, "t", "s", {"x-kind": os.environ.get("KIND", "")}
            )
            poison = seam.Undecodable("raw\\0", "no id", window.end)
            yield seam.Page((event, poison), str(number + 1) if number < 2 else None, window.end, 2, 1)
"""

Open = Callable[..., Conversation]


@pytest.fixture
def pool(children: Owner) -> Iterator[Pool]:
    made = Pool("compensate", children, {"PATH": "/usr/bin:/bin"}, per_worker=1, most=4)
    yield made
    made.close()


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "mine.py").write_text(PLUGIN)
    return folder / "mine.py"


@pytest.fixture
def talk(pool: Pool, plugin: Path, tmp_path: Path) -> Open:
    def begin(does: str = "", *, kind: str = "mine", run: str = "", **options: Any) -> Conversation:
        message = opening(
            run or new_id(),
            kind,
            {"key": "s3cret", "does": does, **options},
            {"id": "data.id"},
            plugins=[str(plugin.parent)],
            environment={"PATH": "/usr/bin:/bin", "KIND": "blue"},
            output=str(tmp_path / "output"),
        )
        return Conversation(pool, NODE, Place(str(tmp_path)), message, 1.0)

    return begin


def test_pages_come_as_they_were_given(talk: Open, tmp_path: Path) -> None:
    scan = talk()
    assert scan.coverage() == Coverage(timedelta(days=30), provider_now=NOON)
    pages = list(scan.pages(WINDOW, None))
    assert [one.next for one in pages] == ["1", "2", None]
    event = ListedEvent("e0", WINDOW.start, {"n": 0}, "t", "s", {"x-kind": "blue"})
    assert pages[0] == Page((event, Undecodable("raw\ufffd", "no id", NOON)), "1", NOON, 2, 1)
    answer = scan.close()
    assert answer.message is not None
    assert answer.span is not None
    output = (tmp_path / "output").read_text()
    assert output.startswith("covering with s3cret and data.id\n")
    assert (
        "listing 2026-03-01T11:00:00+00:00 to 2026-03-01T12:00:00+00:00\nasked for 0\na page of 2 items by 2 calls\n"
        in output
    )


def test_a_page_is_asked_for_when_the_one_before_is_taken_care_of(talk: Open, tmp_path: Path) -> None:
    scan = talk()
    pages = scan.pages(WINDOW, None)
    next(pages)
    next(pages)
    scan.close()
    assert (tmp_path / "output").read_text().count("asked for") == 2


def test_nothing_has_to_be_listed(talk: Open, tmp_path: Path) -> None:
    assert talk().close().message is not None
    assert (tmp_path / "output").read_text().count("asked for") == 0


def test_several_windows_are_listed_by_one_worker(talk: Open, pool: Pool) -> None:
    scan = talk()
    later = Window(NOON, NOON + timedelta(hours=1))
    assert [one.items[0].occurred_at for one in scan.pages(WINDOW, "2")] == [WINDOW.start]
    assert [one.items[0].occurred_at for one in scan.pages(later, "1")] == [later.start] * 2
    scan.close()
    assert len(pool) == 1


def test_what_a_compensator_raises_is_raised_here_and_another_window_may_follow(talk: Open) -> None:
    scan = talk("expired")
    with pytest.raises(CursorExpired, match="unknown cursor"):
        list(scan.pages(WINDOW, "1"))
    assert len(list(scan.pages(WINDOW, None))) == 3
    scan.close()
    scan = talk("throttled")
    with pytest.raises(Throttled, match="again and again") as throttled:
        list(scan.pages(WINDOW, None))
    assert throttled.value.retry_after == 12.5
    scan.close()


@pytest.mark.parametrize(
    ("does", "why", "final"),
    [
        ("raise", "KeyError: 'surprise'", False),
        ("naive", "a time is a datetime with a zone", True),
        ("no json", "the body of e: Object of type set is not JSON serializable; it has to be JSON", True),
        ("no number", "the body of e: Out of range float values are not JSON compliant", True),
        ("no type", "a page: Object of type bytes is not JSON serializable; it has to be JSON", True),
        ("no page", "the compensator gave a str; yield Page", True),
    ],
)
def test_what_is_not_as_the_seam_says_is_a_failure_of_the_list(talk: Open, does: str, why: str, final: bool) -> None:
    scan = talk(does)
    with pytest.raises(ListingFailed) as failed:
        list(scan.pages(WINDOW, None))
    assert why in str(failed.value)
    assert failed.value.final is final
    assert scan.close().message is not None


def test_a_traceback_is_in_the_output(talk: Open, tmp_path: Path, plugin: Path) -> None:
    scan = talk("raise")
    with pytest.raises(ListingFailed):
        list(scan.pages(WINDOW, None))
    scan.close()
    output = (tmp_path / "output").read_text()
    assert f'File "{plugin}"' in output
    assert "compensate_worker" not in output


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"kind": "mien"}, "there is no compensator mien; did you mean mine?"),
        ({"other": 1}, "with.other: mine has no such option"),
        ({"does": "refuse"}, "the key is wrong"),
    ],
)
def test_what_cannot_be_opened_is_final_and_over(talk: Open, options: dict[str, Any], why: str) -> None:
    scan = talk(**options)
    with pytest.raises(ListingFailed) as failed:
        scan.coverage()
    assert why in str(failed.value)
    assert failed.value.final
    assert scan.close().message is not None
    with pytest.raises(Over):
        scan.coverage()


def test_a_worker_that_dies_is_over_with_its_fate(talk: Open) -> None:
    scan = talk("exit")
    with pytest.raises(Over) as over:
        list(scan.pages(WINDOW, None))
    assert over.value.answer.died is not None
    assert over.value.answer.died.code == 7
    assert scan.close() is over.value.answer


def test_a_run_that_is_ended_ends_the_wait_and_its_process(talk: Open, pool: Pool, tmp_path: Path) -> None:
    run = new_id()
    scan = talk("hang", run=run)
    pages = scan.pages(WINDOW, None)
    heard: list[Over] = []

    def wait() -> None:
        try:
            next(pages)
        except Over as over:
            heard.append(over)

    waiting = threading.Thread(target=wait)
    scan.coverage()
    waiting.start()
    until(lambda: "asked for 0" in (tmp_path / "output").read_text(), "the page to be asked for")
    pool.end(run, "cancel")
    waiting.join(30)
    assert [over.answer.why for over in heard] == ["cancel"]
    until(lambda: not living_in(tmp_path), "the process to be gone")


def test_a_worker_is_used_again_unless_something_was_left_behind(talk: Open, pool: Pool, tmp_path: Path) -> None:
    for _ in range(2):
        scan = talk()
        assert len(list(scan.pages(WINDOW, None))) == 3
        scan.close()
    [kept] = living_in(tmp_path)
    scan = talk("thread")
    assert len(list(scan.pages(WINDOW, None))) == 3
    message = scan.close().message
    assert message is not None
    assert message["threads"] == 3
    until(lambda: kept not in living_in(tmp_path), "the process with a thread to be gone")


def test_a_plugin_that_was_changed_is_read_anew(talk: Open, plugin: Path) -> None:
    scan = talk()
    scan.coverage()
    scan.close()
    plugin.write_text(PLUGIN.replace("timedelta(days=30)", "timedelta(days=3)"))
    scan = talk()
    assert scan.coverage().reaches_back == timedelta(days=3)
    scan.close()
